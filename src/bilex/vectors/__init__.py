"""Word vectors: words and a matrix."""

from bilex.vectors.core import WordVectors

__all__ = ["WordVectors"]
