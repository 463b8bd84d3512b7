"""Pairs of words: reading, cutting, splitting, coverage and leaks."""

from bilex.lexicon.core import Lexicon
from bilex.lexicon.coverage import Coverage
from bilex.lexicon.entries import Entry
from bilex.lexicon.leaks import LeakReport
from bilex.lexicon.ranks import RankSummary
from bilex.lexicon.reading import ReadReport

__all__ = ["Coverage", "Entry", "LeakReport", "Lexicon", "RankSummary", "ReadReport"]
