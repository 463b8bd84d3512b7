"""Data sets: their dictionaries, their vectors, and where to download them."""

from bilex_bench.datasets.folder import NO_SEEDS, DataFolder, load_vectors

__all__ = ["NO_SEEDS", "DataFolder", "load_vectors"]
