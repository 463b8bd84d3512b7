"""Exact nearest neighbours and CSLS between two sets of vectors, in bounded memory.

The only package that multiplies two vocabularies.
"""

from bilex.search.search import KeySearch, csls_top_k, mean_of_best, neighbourhoods, ranks_of, top_k

__all__ = ["KeySearch", "csls_top_k", "mean_of_best", "neighbourhoods", "ranks_of", "top_k"]
