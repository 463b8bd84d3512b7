"""Word vectors: words and a matrix, and the formats they are kept in."""

from bilex.vectors.core import WordVectors
from bilex.vectors.report import LoadReport
from bilex.vectors.subwords import Subwords

__all__ = ["LoadReport", "Subwords", "WordVectors"]
