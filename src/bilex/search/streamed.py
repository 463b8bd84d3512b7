"""Exact top-k for a few queries at a time against keys that stay: what a server needs.

The keys are rotated and rounded to 8 bits once, a quarter of their size in float32, and a batch of twenty
queries costs little more than one, since the keys stream through the cores only once for all of them. Where
the processor has an instruction for 8-bit products, queries are rounded too (`int8_tiles`); elsewhere they
stay float32 (`tiles`). Every key whose score may belong to a query's k best is scored again from the float32
vectors in float64, so that what comes out is exact. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit, overload
from bilex.core.errors import BilexError
from bilex.core.machine import processor
from bilex.search import int8_tiles, kernels, rounding, tiles
from bilex.search.search import Floats, Rows
from bilex.search.settling import settle

_LIMIT = np.float32(127)
_LARGER_TILE = max(tiles.LANES, int8_tiles.LANES)
_PART = 8 * _LARGER_TILE  # keys that are rounded at a time
_COLUMNS = 8 * _LARGER_TILE  # keys whose scores are looked at while they are in a core's cache
_ROOM = 240  # candidates beyond k that a list has room for before keys of the file are read to empty it
_AT_A_TIME = 32  # queries: more gain little, and the keys that they read of a file take memory
_FLOAT32_ROUNDING = 2.0**-23


class _Queries(NamedTuple):
    """Queries as they are multiplied, and what there is to know about their scores.

    Attributes:
        rows: One query a row, rotated: 8-bit or float32.
        scale: What a query's products are multiplied with.
        off: How far a score may be off whatever the key.
        reach: How far it may be off for each unit that a key moved when it was rounded.
    """

    rows: npt.NDArray[Any]
    scale: Floats
    off: Floats
    reach: Floats


class StreamedKeys:
    """Keys made ready once for any number of small searches.

    Args:
        keys: One float32 row per key; only the few rows that come near the best are read later.
        penalty: CSLS's term of each key.
        read: Called whenever rows of `keys` were read, so that the caller may let go of a file's pages.
        int8_products: Whether queries are rounded to 8 bits too; None decides by the processor.

    Raises:
        BilexError: A row is not finite.
    """

    def __init__(
        self,
        keys: Floats,
        penalty: Floats | None = None,
        read: Callable[[], None] = lambda: None,
        *,
        int8_products: bool | None = None,
    ) -> None:
        self.keys, self._read = kernels.read_only(keys), read
        self._rounds_queries = int8_tiles.kind() == "vnni" if int8_products is None else int8_products
        self._threads = processor().threads
        self._pool = ThreadPoolExecutor(self._threads, "streamed-keys")
        count, self._width = keys.shape
        self._none = np.zeros(count, np.float32)
        self._shift = self._none if penalty is None else -np.ascontiguousarray(penalty, np.float32)
        self._largest_shift = float(np.abs(self._shift).max(initial=0))
        self._rotation = rounding.rotation(self._width)
        self._tiles: npt.NDArray[Any] = self._layout.empty(count, self._width)
        self._scale, self._error = np.zeros(count, np.float32), np.zeros(count, np.float32)
        self._longest = 0.0
        for start in range(0, count, _PART):
            self._round(start, min(start + _PART, count))
            read()
        self._largest_error = float(self._error.max())

    @property
    def _layout(self) -> Any:
        return int8_tiles if self._rounds_queries else tiles

    def _round(self, start: int, stop: int) -> None:
        low, scale, error, norm = _rounded(np.asarray(self.keys[start:stop]) @ self._rotation)
        if not np.isfinite(norm).all():
            row = start + int(np.flatnonzero(~np.isfinite(norm))[0])
            raise BilexError(f"row {row} of the vectors holds NaN or infinite values; remove that word.")
        error += rounding.rotation_error(self._width) * (norm + error)
        self._scale[start:stop], self._error[start:stop] = scale, error * (1 + 1e-6)
        self._longest = max(self._longest, float((norm + error).max()))
        self._layout.put(low, self._tiles, start)

    def top_k(self, queries: Floats, k: int, *, penalised: bool = True) -> tuple[Floats, Rows]:
        """For each query the k keys of highest score, best first.

        Args:
            queries: One float32 row per query.
            k: How many keys; at most as many as there are.
            penalised: Whether the score is twice the similarity less the key's penalty, if there are any,
                or the similarity.

        Raises:
            BilexError: A query is not finite.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
        for start in range(0, len(queries), _AT_A_TIME):
            at = slice(start, start + _AT_A_TIME)
            self._some(queries[at], scores[at], rows[at], penalised=penalised)
            self._read()
        return scores, rows

    def _some(self, queries: Floats, scores: Floats, rows: Rows, *, penalised: bool) -> None:
        """Write the best keys of as many queries as are searched together.

        Each thread goes through its part of the keys, with a list of its own for every query.
        """
        count, k = scores.shape
        parts = max(1, min(self._threads, len(self.keys) // (k + 2 * _COLUMNS)))
        prepared, lists = self._prepared(queries, k, parts, penalised=penalised)
        blocks = -(-len(self.keys) // _COLUMNS)

        def scan(part: int) -> None:
            first, last = (_COLUMNS * (blocks * place // parts) for place in (part, part + 1))
            _scan(self._tiles, prepared.rows, first, min(last, len(self.keys)), part * count, count, lists)

        others = [self._pool.submit(scan, part) for part in range(1, parts)]
        scan(0)
        for other in others:
            other.result()
        settle(lists, parts, prepared.off, prepared.reach, self._error, scores, rows)

    def _prepared(
        self, queries: Floats, k: int, parts: int, *, penalised: bool
    ) -> tuple[_Queries, kernels.Lists]:
        """The queries with bounds on how far their scores can be off, and empty lists of candidates."""
        norm = np.linalg.norm(queries.astype(np.float64), axis=1)
        if not np.isfinite(norm).all():
            raise BilexError("a query holds NaN or infinite values; nothing can be near it.")
        scale, shift = (
            (2.0, self._shift) if penalised and self._shift is not self._none else (1.0, self._none)
        )
        off = _FLOAT32_ROUNDING * (self._width + 16) * scale * norm * self._longest
        off += 4 * _FLOAT32_ROUNDING * self._largest_shift
        off += scale * norm * rounding.rotation_error(self._width) * self._longest
        rotated = np.empty(queries.shape, np.float32)
        rounding.rotate(queries, self._rotation, rotated)
        factor = np.ones(len(queries), np.float32)
        rows: npt.NDArray[Any] = tiles.filled_up(rotated)
        if self._rounds_queries:
            low, factor, error, _ = _rounded(rotated)
            off += scale * error * self._longest
            rows = int8_tiles.filled_up(low)
        off, reach = (np.asarray(bound * (1 + 1e-6), np.float32) for bound in (off, scale * norm))
        prepared = _Queries(rows, np.asarray(scale * factor, np.float32), off, reach)
        return prepared, self._lists(queries, prepared, k, parts, scale, shift)

    def _lists(
        self, queries: Floats, prepared: _Queries, k: int, parts: int, scale: float, shift: Floats
    ) -> kernels.Lists:
        """Empty candidate lists: those of all queries for the first part of the keys, then the second."""
        rows, capacity = parts * len(queries), min(len(self.keys), k + _ROOM)
        slack = 2 * (prepared.off + prepared.reach * np.float32(self._largest_error))
        return kernels.Lists(
            candidate=np.empty((rows, capacity), np.int32),
            value=np.empty((rows, capacity), np.float32),
            filled=np.zeros(rows, np.int32),
            best=np.full((rows, k), -np.inf, np.float32),
            bar=np.full(rows, -np.inf, np.float32),
            slack=np.tile(slack * np.float32(1 + 1e-6), parts),
            coarse=np.zeros(rows, np.float32),
            key_coarse=self._none,
            query_scale=np.tile(prepared.scale, parts),
            key_scale=self._scale,
            queries=kernels.read_only(np.tile(queries, (parts, 1))),
            keys=self.keys,
            shift=shift,
            scale=scale,
            k=k,
        )


def _rounded(rows: Floats) -> tuple[npt.NDArray[np.int8], Floats, npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows as 8-bit numbers, the scale of each, how far each moved, and its length."""
    count = len(rows)
    low, scale = np.empty(rows.shape, np.int8), np.empty(count, np.float32)
    error, norm = np.empty(count), np.empty(count)
    rounding.to_int8(rows, _LIMIT, low, scale, error, norm, 0, count)
    return low, scale, error, norm


def _products(keys: Any, queries: Any, scale: Any, first_key: int, out: Any) -> None:
    """Products with keys in either kind of tiles."""
    raise NotImplementedError


@overload(_products, strict=False)
def _products_overload(keys: Any, queries: Any, scale: Any, first_key: int, out: Any) -> Any:
    if keys.ndim == 4:
        return lambda keys, queries, scale, first_key, out: int8_tiles.products(
            keys, queries, scale, first_key // int8_tiles.LANES, out
        )
    return lambda keys, queries, scale, first_key, out: tiles.products(
        keys, queries, scale, first_key // tiles.LANES, out
    )


@njit(nogil=True, cache=True)
def _scan(keys: Any, queries: Any, first: int, last: int, row: int, count: int, lists: Any) -> None:
    """Put the keys from `first` to `last` that may be among the best on lists.

    Args:
        keys: Tiles.
        queries: Queries as they are multiplied.
        first: A key that begins a tile.
        last: The key after the last.
        row: The list of the first query.
        count: How many queries.
        lists: `kernels.Lists`.
    """
    memory = np.empty(count * _COLUMNS, np.float32)
    for start in range(first, last, _COLUMNS):
        columns = min(_COLUMNS, last - start)
        block = memory[: count * columns].reshape((count, columns))
        _products(keys, queries, lists.key_scale, start, block)
        kernels.scan_one_way(block, row, start, lists)
