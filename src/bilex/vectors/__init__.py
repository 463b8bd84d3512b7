"""Word vectors: words and a matrix, and the formats they are kept in."""

from bilex.vectors.core import WordVectors
from bilex.vectors.fasttext import Subwords
from bilex.vectors.formats import LoadReport

__all__ = ["LoadReport", "Subwords", "WordVectors"]
