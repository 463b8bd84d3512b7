"""Pairs of words: reading, cutting, splitting, coverage and leaks."""

from bilex.lexicon.core import Lexicon
from bilex.lexicon.coverage import Coverage
from bilex.lexicon.leaks import LeakReport
from bilex.lexicon.parsing import ReadReport
from bilex.lexicon.ranks import RankSummary

__all__ = ["Coverage", "LeakReport", "Lexicon", "RankSummary", "ReadReport"]
