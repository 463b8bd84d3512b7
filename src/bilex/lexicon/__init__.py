"""Pairs of words: reading, cutting, splitting, coverage and leaks."""

from bilex.lexicon.core import Lexicon
from bilex.lexicon.entries import Entry
from bilex.lexicon.files import ReadReport
from bilex.lexicon.statistics import Coverage, LeakReport, RankSummary

__all__ = ["Coverage", "Entry", "LeakReport", "Lexicon", "RankSummary", "ReadReport"]
