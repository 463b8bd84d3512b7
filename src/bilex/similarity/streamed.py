"""Exact top-k for a few queries at a time against keys that stay: what a server needs.

The keys are rotated and rounded to 8 bits once, a quarter of their size in float32, and a batch of twenty
queries costs little more than one, since the keys stream through the cores only once for all of them. Where
the processor has instructions for 8-bit products, torch multiplies; elsewhere a compiled loop does, and
torch is not needed at all. Every key whose score may belong to a query's k best is scored again from the
float32 vectors in float64, so that what comes out is exact.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.errors import BilexError
from bilex.machine import processor
from bilex.similarity import few, rounding, tiles
from bilex.similarity.search import Floats, Rows

_INT8_PRODUCTS = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})
_WORTH_TORCH = 50_000  # fewer keys are multiplied sooner than torch is loaded
_LIMIT = np.float32(127)
_PART = 8 * tiles.LANES  # keys that are rounded at a time
_CELLS = 1 << 20  # products that are computed at a time: few blocks, since threads take turns between them
_EXACT_AT_A_TIME = 8  # queries whose best keys are read from the file before its pages are given back
_ROOM = 240
_AT_A_TIME = 128
_CACHE_LINE = 64  # rows that torch multiplies are filled up to whole ones
_FLOAT32_ROUNDING = 2.0**-23


class RoundedKeys(NamedTuple):
    """Keys of 8 bits: `rows` of whole keys (or `tiles` of them, and then no rows) times a `scale` a key.

    The true key is at most `error` away from that.
    """

    rows: npt.NDArray[np.int8]
    tiles: npt.NDArray[np.int8]
    scale: Floats
    error: Floats


class PreparedQueries(NamedTuple):
    """Queries as they are compared with rounded keys.

    Attributes:
        rotated: Float32 queries, rotated as the keys are.
        cell_scale: What a query's products are multiplied with.
        coarse: How far a product is off because the query was rounded; 0 where it was not.
        slack: Twice how far a score may be off because the keys were.
        arithmetic: How far it may be off at most through float32.
        reach: How far it may be off for each unit that a key moved when it was rounded.
        shift: What is added to the score of each key.
        scale: What the product of vectors is multiplied with.
        k: How many keys are wanted.
    """

    rotated: Floats
    cell_scale: Floats
    coarse: Floats
    slack: Floats
    arithmetic: Floats
    reach: Floats
    shift: Floats
    scale: np.float32
    k: int


class Candidates(NamedTuple):
    """For each query the keys that may be among its best; `bar` is shared by all threads."""

    key: npt.NDArray[np.int32]
    value: Floats
    filled: npt.NDArray[np.int32]
    bar: Floats
    overflow: npt.NDArray[np.bool_]


class StreamedKeys:
    """Keys made ready once for any number of small searches.

    Args:
        keys: One float32 row a key; only the few rows that come near the best are read later.
        read: Called whenever rows of `keys` were read, so that the caller may let go of a file's pages.
        int8_products: Whether torch multiplies; None decides by the processor and their number.

    Raises:
        BilexError: A row is not finite.
    """

    def __init__(
        self, keys: Floats, read: Callable[[], None] = lambda: None, *, int8_products: bool | None = None
    ) -> None:
        self.keys, self._read = keys, read
        found = processor()
        if int8_products is None:
            promising = len(keys) >= _WORTH_TORCH and bool(found.features & _INT8_PRODUCTS)
            int8_products = promising and _sums_come_out_right()
        self._with_torch, self._threads = int8_products, found.threads
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(self._threads, "streamed-keys", initializer=self._calm)
        count, self._width = keys.shape
        multiple = _CACHE_LINE if self._with_torch else tiles.STEP
        self._padded = -(-self._width // multiple) * multiple
        self._rotation = np.zeros((self._width, self._padded), np.float32)
        self._rotation[:, : self._width] = rounding.rotation(self._width)
        self._rounded = self._empty(count)
        self._error = self._norm = 0.0
        for start in range(0, count, _PART):
            self._round(start, min(start + _PART, count))
            read()

    def _empty(self, count: int) -> RoundedKeys:
        whole = -(-count // tiles.LANES)
        rows = (count if self._with_torch else 0, self._padded)
        shape = (0 if self._with_torch else whole, self._padded, tiles.LANES)
        scale, error = np.zeros((2, count), np.float32)
        return RoundedKeys(np.zeros(rows, np.int8), np.zeros(shape, np.int8), scale, error)

    def _calm(self) -> None:
        """Let our own threads be the only parallelism."""
        if self._with_torch:
            import torch

            torch.set_num_threads(1)

    def _round(self, start: int, stop: int) -> None:
        rotated = np.asarray(self.keys[start:stop], np.float32) @ self._rotation
        low, scale, error, norm = _rounded(rotated)
        if not np.isfinite(norm).all():
            row = start + int(np.flatnonzero(~np.isfinite(norm))[0])
            raise BilexError(f"row {row} of the vectors holds NaN or infinite values; remove that word.")
        error += rounding.rotation_error(self._width) * (norm + error)
        self._rounded.scale[start:stop], self._rounded.error[start:stop] = scale, error * (1 + 1e-6)
        self._error, self._norm = max(self._error, float(error.max())), max(self._norm, float(norm.max()))
        if self._with_torch:
            self._rounded.rows[start:stop] = low
            return
        for first in range(0, len(low), tiles.LANES):
            part = low[first : first + tiles.LANES]
            self._rounded.tiles[(start + first) // tiles.LANES, :, : len(part)] = part.T

    def top_k(self, queries: Floats, k: int, penalty: Floats | None = None) -> tuple[Floats, Rows]:
        """For each query the k keys of highest score, best first.

        Args:
            queries: One float32 row a query.
            k: How many keys; at most as many as there are.
            penalty: CSLS's term of each key: the score is then twice the similarity less this.

        Raises:
            BilexError: A query is not finite.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
        for start in range(0, len(queries), _AT_A_TIME):
            at = slice(start, start + _AT_A_TIME)
            scores[at], rows[at] = self._some(queries[at], k, penalty)
        return scores, rows

    def _some(self, queries: Floats, k: int, penalty: Floats | None) -> tuple[Floats, Rows]:
        prepared, multiply = self._prepared(queries, k, penalty)
        count, capacity = len(queries), min(len(self.keys), k + _ROOM)
        bar, overflow = np.full(count, -np.inf, np.float32), np.zeros(count, bool)
        most, share = _CELLS // count, -(-len(self.keys) // self._threads)
        columns = min(most // tiles.LANES, -(-share // tiles.LANES)) * tiles.LANES
        blocks = range(0, len(self.keys), columns)

        def part(number: int) -> Candidates:
            found = Candidates(
                np.empty((count, capacity), np.int32),
                np.empty((count, capacity), np.float32),
                np.zeros(count, np.int32),
                bar,
                overflow,
            )
            for first in blocks[number :: self._threads]:
                block = multiply(first, min(first + columns, len(self.keys)))
                tiles.scan(block, first, self._rounded, prepared, found)
            return found

        parts = list(self._pool.map(part, range(self._threads)))
        scores, rows = np.empty((count, k), np.float32), np.empty((count, k), np.int64)
        for q in range(count):
            if overflow[q]:  # too many keys are about equally good
                scores[q : q + 1], rows[q : q + 1] = few.top_k(queries[q : q + 1], self.keys, k, penalty)
            else:
                scores[q], rows[q] = self._exact(queries[q], q, parts, prepared)
            if q % _EXACT_AT_A_TIME == _EXACT_AT_A_TIME - 1:
                self._read()
        self._read()
        return scores, rows

    def _exact(
        self, query: Floats, q: int, parts: list[Candidates], prepared: PreparedQueries
    ) -> tuple[Floats, Rows]:
        """The k best of one query's candidates by their true scores."""
        values = np.concatenate([part.value[q, : part.filled[q]] for part in parts])
        keys = np.concatenate([part.key[q, : part.filled[q]] for part in parts])
        off = prepared.arithmetic[q] + prepared.reach[q] * self._rounded.error[keys]
        least = np.partition(values - off, -prepared.k)[-prepared.k]
        near = np.sort(keys[values + off >= least])
        products = (np.asarray(self.keys[near], np.float32).astype(np.float64) * query).sum(axis=1)
        scores = (float(prepared.scale) * products + prepared.shift[near]).astype(np.float32)
        best = np.argsort(-scores, kind="stable")[: prepared.k]
        return scores[best], near[best].astype(np.int64)

    def _prepared(
        self, queries: Floats, k: int, penalty: Floats | None
    ) -> tuple[PreparedQueries, Callable[[int, int], npt.NDArray[Any]]]:
        """The queries with their error bounds, and a function that multiplies them with a range of keys."""
        norm = np.linalg.norm(queries.astype(np.float64), axis=1)
        if not np.isfinite(norm).all():
            raise BilexError("a query holds NaN or infinite values; nothing can be near it.")
        scale = 1.0 if penalty is None else 2.0
        shift = np.zeros(len(self.keys), np.float32) if penalty is None else -penalty
        reach = self._norm + self._error
        arithmetic = _FLOAT32_ROUNDING * (self._padded + 8) * scale * norm * reach
        arithmetic += 4 * _FLOAT32_ROUNDING * float(np.abs(shift).max(initial=0))
        arithmetic += scale * norm * rounding.rotation_error(self._width) * reach
        bound = arithmetic + scale * norm * self._error
        rotated = np.empty((len(queries), self._padded), np.float32)
        rounding.rotate(queries, self._rotation, rotated)
        low, cell_scale, error, _ = _rounded(rotated) if self._with_torch else _untouched(rotated)
        coarse = scale * error * reach + (2 * arithmetic if self._with_torch else 0.0)
        prepared = PreparedQueries(
            rotated,
            np.asarray(scale * cell_scale, np.float32),
            np.asarray(coarse * (1 + 1e-6), np.float32),
            np.asarray(2 * bound * (1 + 1e-6), np.float32),
            np.asarray(2 * arithmetic, np.float32),
            np.asarray(scale * norm * (1 + 1e-6), np.float32),
            np.ascontiguousarray(shift, np.float32),
            np.float32(scale),
            k,
        )
        return prepared, self._by_torch(low) if self._with_torch else self._by_tiles(rotated)

    def _buffer(self, rows: int, columns: int) -> Floats:
        """This thread's memory for products: fresh memory for each would cost more than they do."""
        if not hasattr(self._local, "memory"):
            self._local.memory = np.empty(_CELLS, np.float32)
        memory: Floats = self._local.memory
        return memory[: rows * columns].reshape(rows, columns)

    def _by_torch(self, low: npt.NDArray[np.int8]) -> Callable[[int, int], npt.NDArray[Any]]:
        import torch

        left, right = torch.from_numpy(low), torch.from_numpy(self._rounded.rows)

        def multiply(first: int, last: int) -> npt.NDArray[Any]:
            out = self._buffer(len(low), last - first).view(np.int32)
            torch._int_mm(left, right[first:last].T, out=torch.from_numpy(out))
            return out

        return multiply

    def _by_tiles(self, rotated: Floats) -> Callable[[int, int], npt.NDArray[Any]]:
        def multiply(first: int, last: int) -> npt.NDArray[Any]:
            start, stop = first // tiles.LANES, -(-last // tiles.LANES)
            out = self._buffer(len(rotated), (stop - start) * tiles.LANES)
            tiles.products(self._rounded.tiles, rotated, start, stop, out)
            return out[:, : last - first]

        return multiply


def _sums_come_out_right() -> bool:
    """Whether torch adds up products of the largest 8-bit numbers without loss here."""
    from bilex.arithmetic import int8_limit

    return bool(int8_limit() >= _LIMIT)


def _rounded(rows: Floats) -> tuple[npt.NDArray[np.int8], Floats, npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows as 8-bit numbers, the scale of each, how far each moved, and its length."""
    count = len(rows)
    low, scale = np.empty(rows.shape, np.int8), np.empty(count, np.float32)
    error, norm = np.empty(count), np.empty(count)
    rounding.to_int8(rows, _LIMIT, low, scale, error, norm, 0, count)
    return low, scale, error, norm


def _untouched(rows: Floats) -> tuple[npt.NDArray[np.int8], Floats, npt.NDArray[Any], npt.NDArray[Any]]:
    """What `_rounded` gives for rows that stay as they are."""
    none = np.zeros(len(rows))
    return np.empty((0, 0), np.int8), np.ones(len(rows), np.float32), none, none
