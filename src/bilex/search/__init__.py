"""Exact nearest neighbours and CSLS between two sets of vectors, in bounded memory.

The only package that multiplies two vocabularies. `plain` says with numpy what is computed; `cpu` and `gpu`
compute it fast, with rows that `low_precision` rounds; `search` chooses between these. `matching` serves
VecMap, `negatives` stage C1.
"""

from bilex.search.search import KeySearch, csls_top_k, mean_of_best, neighbourhoods, ranks_of, top_k

__all__ = ["KeySearch", "csls_top_k", "mean_of_best", "neighbourhoods", "ranks_of", "top_k"]
