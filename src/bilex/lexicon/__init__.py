"""Pairs of words: reading, cutting, splitting, coverage and leaks."""

from bilex.lexicon.core import Coverage, Lexicon

__all__ = ["Coverage", "Lexicon"]
