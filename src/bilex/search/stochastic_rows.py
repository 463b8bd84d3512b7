"""Rows as `bilex.search.stochastic` multiplies them on a CPU."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from bilex.search import arithmetic, int8_tiles
from bilex.search.proposals import proposer

Lines = npt.NDArray[np.intp]


class RoundedRows:
    """Rows of one language as they are multiplied; the target's serve as long as the same rows come.

    Args:
        rows: The true rows.
        dtype: The precision of the product.
    """

    def __init__(self, rows: torch.Tensor, dtype: torch.dtype) -> None:
        self.given, self.version = rows, rows._version
        self.rows = rows.contiguous()
        self.low = proposer(self.rows, dtype, rotate=False)
        self.kind = arithmetic.tile_kind() if dtype == torch.int8 else None

    def are(self, rows: torch.Tensor, dtype: torch.dtype) -> bool:
        """Whether these are the rows, unchanged, and in this precision."""
        same = rows is self.given and rows._version == self.version
        return same and dtype == self.low.rows.dtype

    @cached_property
    def queries(self) -> tuple[int8_tiles.Numbers, int8_tiles.Sums]:
        """8-bit rows that are multiplied with tiles, and what is taken off their sums."""
        return self.some_queries(np.arange(len(self.rows)))

    @cached_property
    def tiles(self) -> tuple[int8_tiles.Numbers, int8_tiles.Sums]:
        """8-bit rows as tiles, and what is taken off their sums."""
        return self.some_tiles(np.arange(len(self.rows)))

    def some_queries(self, lines: Lines) -> tuple[int8_tiles.Numbers, int8_tiles.Sums]:
        """The queries of some rows."""
        low, kind = self._of_tiles(lines)
        return int8_tiles.filled_up(low, kind), int8_tiles.taken_off(low, kind, "queries")

    def some_tiles(self, lines: Lines) -> tuple[int8_tiles.Numbers, int8_tiles.Sums]:
        """The tiles of some rows."""
        low, kind = self._of_tiles(lines)
        tiles = int8_tiles.empty(low.shape[0], low.shape[1], kind)
        int8_tiles.put(low, tiles, 0)
        return tiles, int8_tiles.taken_off(low, kind, "keys")

    def _of_tiles(self, lines: Lines) -> tuple[npt.NDArray[np.int8], int8_tiles.Kind]:
        """Some rows without padding, which tiles have of their own, and the kind of these."""
        assert self.kind is not None
        return self.low.rows.numpy()[lines, : self.rows.shape[1]], self.kind
