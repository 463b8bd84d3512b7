"""Exact top-k on the CPU: products of blocks propose scores, heaps keep the best, float64 decides.

Each query has a heap of a few more than its k best keys so far; the worst of them is the query's threshold.
A block of products is small enough to stay in a core's cache while every score is compared with the
threshold of its row. Products of 8-bit rows count with their largest error, and what passes is scored again
in float32. In the end a heap's keys are scored in float64. No key outside it exceeds the threshold by more
than the error bound of float32, so a row whose k-th best score does is exact. The few other rows (masses of
equal scores) go through `bilex.search.plain`.

Many queries share the threads by rows, and torch multiplies. A few queries at a time, as a server has them,
share them by keys, and loops of our own multiply 8-bit rows, without torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.machine import processor
from bilex.search import plain
from bilex.search.heaps import COLUMNS, Heaps, exact_scores, scan
from bilex.search.low_precision.int8_keys import Int8Keys
from bilex.search.low_precision.operands import (
    Operand,
    float32_error,
    int8_pays,
    multiply,
    operand,
    quantization_error,
)
from bilex.search.search import Floats, Rows, placed
from bilex.search.threads import in_threads, single_threaded_torch, worker_count

if TYPE_CHECKING:
    import torch

_BLOCK_ROWS = 1024
_FEWEST_BLOCK_ROWS = 16
_SPARE = 6  # keys in a heap beyond the k best, which decide near ties
_SERVED_QUERIES = 32  # at a time: more gain little, and the keys that they read of a file take memory
_SERVED_KEYS = 8192  # whose products are looked at together
_ROUNDED = 1024  # keys that are read and rounded together
_LARGEST = 127  # 8-bit number that loops of our own multiply
Visit = Callable[[npt.NDArray[np.generic], int, int], None]


class KeySearch:
    """Keys prepared once for any number of searches; see `bilex.search.KeySearch`."""

    def __init__(self, keys: Floats, penalty: Floats | None, int8: bool | None = None) -> None:
        self.keys, self.penalty, self.int8 = _read_only(keys), penalty, int8
        self.prepared: dict[bool, Operand] = {}

    def top_k(self, queries: Floats, k: int, memory: int) -> tuple[Floats, Rows]:
        """Exact top-k of some queries."""
        int8 = int8_pays(len(queries), len(self.keys), k) if self.int8 is None else self.int8
        if int8 not in self.prepared:
            self.prepared[int8] = operand(self.keys, int8=int8)
        scaled, shift = _scaled(queries, self.penalty, len(self.keys))
        left, right = operand(scaled, int8=int8), self.prepared[int8]
        errors = quantization_error(left, right, _largest(shift))
        heaps = Heaps.empty(len(queries), min(k + _SPARE, len(self.keys)))
        given = left.scale, right.scale, *errors, shift, scaled, self.keys, *heaps, left.exact
        row_blocks(left.rows, right.rows, memory, lambda block, row, key: scan(block, row, key, *given))
        bound = heaps.threshold + float32_error(left, right, _largest(shift))
        return _best(heaps.key, bound, queries, scaled, self.keys, shift, self.penalty, k)


class ServedKeys:
    """Keys prepared once for any number of searches by a few queries, in a quarter of their memory.

    Args:
        keys: One float32 row per key; only the few rows that come near the best are read later.
        penalty: CSLS's term of each key.
        read: Called after rows of `keys` were read, so that the caller may release a file's pages.
        instruction: Whether AVX-512 VNNI multiplies; None decides by the processor.

    Raises:
        BilexError: A row is not finite.
    """

    def __init__(
        self,
        keys: Floats,
        penalty: Floats | None = None,
        read: Callable[[], None] = lambda: None,
        *,
        instruction: bool | None = None,
    ) -> None:
        count, width = keys.shape
        self.keys, self._penalty, self._read = _read_only(keys), penalty, read
        self._low = Int8Keys(count, width, instruction)
        measures = np.zeros(count, np.float32), np.zeros(count), np.zeros(count)
        self._prepared = Operand(np.zeros(0, np.int8), *measures, longest=0.0)
        self._threads = processor().threads
        self._pool = ThreadPoolExecutor(self._threads, "served-keys")
        for start in range(0, count, _ROUNDED):
            at = slice(start, start + _ROUNDED)
            part = operand(self.keys[at], int8=True, limit=_LARGEST, first=start)
            self._low.put(part.rows[:, :width], start)
            for name in ("scale", "error", "norm"):
                getattr(self._prepared, name)[at] = getattr(part, name)
            self._prepared = self._prepared._replace(longest=max(self._prepared.longest, part.longest))
            read()

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
        scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
        for start in range(0, len(queries), _SERVED_QUERIES):
            at = slice(start, start + _SERVED_QUERIES)
            scores[at], rows[at] = self._some(queries[at], k, self._penalty if penalised else None)
            self._read()
        return scores, rows

    def _some(self, queries: Floats, k: int, penalty: Floats | None) -> tuple[Floats, Rows]:
        """The best keys of a few queries: each thread has a part of the keys, and heaps of its own."""
        if not np.isfinite(queries).all():
            raise BilexError("a query holds NaN or infinite values; nothing can be near it.")
        scaled, shift = _scaled(queries, penalty, len(self.keys))
        left, right = operand(scaled, int8=True, limit=_LARGEST), self._prepared
        errors = quantization_error(left, right, _largest(shift))
        given = left.scale, right.scale, *errors, shift, scaled, self.keys
        asked = left.rows[:, : self.keys.shape[1]]
        blocks = range(0, len(self.keys), _SERVED_KEYS)
        parts = max(1, min(self._threads, len(self.keys) // (k + _SERVED_KEYS)))

        def search(part: int) -> Heaps:
            heaps = Heaps.empty(len(queries), min(k + _SPARE, len(self.keys)))
            memory = np.empty(len(queries) * _SERVED_KEYS, np.int32)
            for start in blocks[len(blocks) * part // parts : len(blocks) * (part + 1) // parts]:
                width = min(_SERVED_KEYS, len(self.keys) - start)
                block = memory[: len(queries) * width].reshape(len(queries), width)
                self._low.products(asked, start, block)
                scan(block, 0, start, *given, *heaps, False)
            return heaps

        others = [self._pool.submit(search, part) for part in range(1, parts)]
        found = [search(0), *(other.result() for other in others)]
        bound = np.max([heaps.threshold for heaps in found], axis=0)
        bound += float32_error(left, right, _largest(shift))
        keys = np.concatenate([heaps.key for heaps in found], axis=1)
        return _best(keys, bound, queries, scaled, self.keys, shift, penalty, k)


def top_k(
    queries: Floats, keys: Floats, k: int, penalty: Floats | None, memory: int, int8: bool | None = None
) -> tuple[Floats, Rows]:
    """Exact top-k of one set against another; see `bilex.search.top_k`."""
    return KeySearch(keys, penalty, int8).top_k(queries, k, memory)


def row_blocks(rows: npt.NDArray[Any], others: npt.NDArray[Any], memory: int, visit: Visit) -> None:
    """Call `visit(products, first row, first column)` for every block of the product of two sides.

    A thread goes through all columns of its rows before it takes the next rows; threads start at different
    columns, so that they seldom want the same ones.
    """
    import torch

    left, right, workers = as_tensor(rows), as_tensor(others), worker_count()
    most = min(_BLOCK_ROWS, memory // (workers * COLUMNS * 4), -(-len(left) // workers))
    height = max(_FEWEST_BLOCK_ROWS, most)
    starts, columns = range(0, len(left), height), range(0, len(right), COLUMNS)
    kind = torch.int32 if left.dtype == torch.int8 else left.dtype
    local = threading.local()

    def work(number: int) -> None:
        if not hasattr(local, "memory"):
            local.memory = torch.empty(height * COLUMNS, dtype=kind)
        strip = left[starts[number] : starts[number] + height]
        for turn in range(len(columns)):
            first = columns[(turn + number * len(columns) // workers) % len(columns)]
            keys = right[first : first + COLUMNS]
            out = local.memory[: len(strip) * len(keys)].view(len(strip), len(keys))
            visit(multiply(strip, keys, out).numpy(), starts[number], first)

    with single_threaded_torch() as one_thread, ThreadPoolExecutor(workers, initializer=one_thread) as pool:
        for done in [pool.submit(work, number) for number in range(len(starts))]:
            done.result()


def _scaled(queries: Floats, penalty: Floats | None, keys: int) -> tuple[Floats, Floats]:
    """Queries and an addend per key, so that a score is their product and the addend."""
    if penalty is None:
        return _read_only(queries), np.zeros(keys, np.float32)
    return _read_only(queries * np.float32(2)), -np.ascontiguousarray(penalty, np.float32)


def _largest(shift: Floats) -> float:
    return float(np.abs(shift).max(initial=0.0))


def _best(
    candidates: npt.NDArray[np.int32],
    bound: Floats,
    queries: Floats,
    scaled: Floats,
    keys: Floats,
    shift: Floats,
    penalty: Floats | None,
    k: int,
) -> tuple[Floats, Rows]:
    """The k best candidates of each query by their scores in float64; the lower of equal ones first.

    No other key exceeds `bound`. A query whose k-th best score does not either is searched plainly.
    """
    count = len(queries)
    scores, rows = np.empty((count, k), np.float32), np.empty((count, k), np.int64)

    def rescore(start: int, stop: int) -> None:
        found = np.sort(candidates[start:stop], axis=1)
        exact = np.empty(found.shape, np.float32)
        exact_scores(found, scaled[start:stop], keys, shift, exact)
        order = np.argsort(-exact, axis=1, kind="stable")[:, :k]
        scores[start:stop] = np.take_along_axis(exact, order, axis=1)
        rows[start:stop] = np.take_along_axis(found, order, axis=1)

    in_threads(count, rescore, 1024)
    if candidates.shape[1] < len(keys):
        undecided = np.flatnonzero(scores[:, -1] <= bound)
        scores[undecided], rows[undecided] = plain.top_k(queries[undecided], keys, k, penalty)
    return scores, rows


def _read_only(rows: Floats) -> Floats:
    """Rows as one type of array, so that the loops are compiled once."""
    view = np.ascontiguousarray(rows, np.float32).view(np.ndarray)[:]
    view.flags.writeable = False
    return view


def as_tensor(rows: npt.NDArray[Any]) -> torch.Tensor:
    """An array as a tensor for reading."""
    import torch

    return torch.from_numpy(rows) if rows.dtype == np.int8 else placed(rows, torch.device("cpu"))
