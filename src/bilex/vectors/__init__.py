"""Word vectors: words and a matrix, and the formats they are kept in."""

from bilex.vectors.core import Subwords, WordVectors
from bilex.vectors.formats import LoadReport

__all__ = ["LoadReport", "Subwords", "WordVectors"]
