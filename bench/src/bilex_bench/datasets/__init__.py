"""Data sets by name and folder: their dictionaries, their vectors, where to get them."""

from bilex_bench.datasets.folder import NO_SEEDS, DataFolder
from bilex_bench.datasets.loading import load_vectors

__all__ = ["NO_SEEDS", "DataFolder", "load_vectors"]
