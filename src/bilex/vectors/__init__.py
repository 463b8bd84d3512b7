"""Word vectors: words and a matrix (`core`, `stored`), and one module per file format (`formats` chooses)."""

from bilex.vectors.core import WordVectors
from bilex.vectors.fasttext import Subwords
from bilex.vectors.formats import LoadReport

__all__ = ["LoadReport", "Subwords", "WordVectors"]
