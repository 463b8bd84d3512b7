"""Exact top-k on the CPU: products of blocks propose scores, heaps keep the best, float64 decides.

Each query has a heap of a few more than its k best keys so far; the worst of them is the query's threshold.
A block of products is small enough to stay in a core's cache while every score is compared with the
threshold of its row. Products of 8-bit rows count with their largest error, and what passes is scored again
in float32. In the end a heap's keys are scored in float64. No
key outside it exceeds the threshold by more than the error bound of float32, so a row whose k-th best
score does is exact. The few other rows (masses of equal scores) go through `bilex.search.plain`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bilex.core.compiling import njit
from bilex.search import plain
from bilex.search.heaps import Heaps, flagged, float32_dot, new_flags, push
from bilex.search.low_precision.operands import (
    Operand,
    float32_error,
    int8_pays,
    multiply,
    operand,
    product_dtype,
    quantization_error,
)
from bilex.search.search import Floats, Rows, placed
from bilex.search.threads import in_threads, single_threaded_torch, worker_count

_BLOCK_ROWS, BLOCK_COLUMNS = 1024, 512
_FEWEST_BLOCK_ROWS = 16
_SPARE = 6  # keys in a heap beyond the k best, which decide near ties
_CPU = torch.device("cpu")
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
            self.prepared[int8] = operand(placed(self.keys, _CPU), int8=int8)
        factor, shift = (1, np.zeros(len(self.keys), np.float32))
        if self.penalty is not None:
            factor, shift = 2, -np.ascontiguousarray(self.penalty, np.float32)
        scaled = _read_only(queries * np.float32(factor))
        left, right = operand(placed(scaled, _CPU), int8=int8), self.prepared[int8]
        largest_shift = float(np.abs(shift).max(initial=0.0))
        errors = quantization_error(left, right, largest_shift)
        given = left.scale, right.scale, *errors, shift, scaled, self.keys
        heaps = Heaps.empty(len(queries), min(k + _SPARE, len(self.keys)))

        def visit(block: npt.NDArray[np.generic], row: int, key: int) -> None:
            _scan(block, row, key, *given, *heaps, left.exact)

        row_blocks(left.rows, right.rows, memory, visit)
        scores, rows = _rescored(heaps, scaled, self.keys, shift, k)
        if heaps.key.shape[1] < len(self.keys):
            bound = float32_error(left, right, largest_shift)
            undecided = np.flatnonzero(scores[:, -1] <= heaps.threshold + bound)
            scores[undecided], rows[undecided] = plain.top_k(queries[undecided], self.keys, k, self.penalty)
        return scores, rows


def top_k(
    queries: Floats, keys: Floats, k: int, penalty: Floats | None, memory: int, int8: bool | None = None
) -> tuple[Floats, Rows]:
    """Exact top-k of one set against another; see `bilex.search.top_k`."""
    return KeySearch(keys, penalty, int8).top_k(queries, k, memory)


def row_blocks(left: torch.Tensor, right: torch.Tensor, memory: int, visit: Visit) -> None:
    """Call `visit(products, first row, first column)` for every block of the product of two sides.

    A thread goes through all columns of its rows before it takes the next rows; threads start at different
    columns, so that they seldom want the same ones.
    """
    workers = worker_count()
    most = min(_BLOCK_ROWS, memory // (workers * BLOCK_COLUMNS * 4), -(-len(left) // workers))
    height = max(_FEWEST_BLOCK_ROWS, most)
    starts, columns = range(0, len(left), height), range(0, len(right), BLOCK_COLUMNS)
    local = threading.local()

    def strip(number: int) -> None:
        if not hasattr(local, "memory"):
            local.memory = torch.empty(height * BLOCK_COLUMNS, dtype=product_dtype(left))
        rows = left[starts[number] : starts[number] + height]
        for turn in range(len(columns)):
            first = columns[(turn + number * len(columns) // workers) % len(columns)]
            others = right[first : first + BLOCK_COLUMNS]
            out = local.memory[: len(rows) * len(others)].view(len(rows), len(others))
            visit(multiply(rows, others, out).numpy(), starts[number], first)

    with single_threaded_torch() as one_thread, ThreadPoolExecutor(workers, initializer=one_thread) as pool:
        for done in [pool.submit(strip, number) for number in range(len(starts))]:
            done.result()


def _rescored(heaps: Heaps, queries: Floats, keys: Floats, shift: Floats, k: int) -> tuple[Floats, Rows]:
    """The k best keys of every heap by their scores in float64; the lower of equal ones first."""
    count = len(queries)
    scores, rows = np.empty((count, k), np.float32), np.empty((count, k), np.int64)

    def rescore(start: int, stop: int) -> None:
        found = np.sort(heaps.key[start:stop], axis=1)
        exact = np.empty(found.shape, np.float32)
        _exact_scores(found, queries[start:stop], keys, shift, exact)
        order = np.argsort(-exact, axis=1, kind="stable")[:, :k]
        scores[start:stop] = np.take_along_axis(exact, order, axis=1)
        rows[start:stop] = np.take_along_axis(found, order, axis=1)

    in_threads(count, rescore, 1024)
    return scores, rows


def _read_only(rows: Floats) -> Floats:
    """Rows as one type of array, so that the loops are compiled once."""
    view = np.ascontiguousarray(rows, np.float32).view(np.ndarray)[:]
    view.flags.writeable = False
    return view


@njit(nogil=True, cache=True)
def _scan(
    block: Any,
    first_row: int,
    first_key: int,
    row_scale: Any,
    key_scale: Any,
    row_error: Any,
    key_error: Any,
    shift: Any,
    queries: Any,
    keys: Any,
    heap_scores: Any,
    heap_keys: Any,
    thresholds: Any,
    exact: bool,
) -> None:
    """Put the scores of a block that exceed the threshold of their row into its heap."""
    last = first_key + block.shape[1]
    scales, raised = key_scale[first_key:last], shift[first_key:last] + key_error[first_key:last]
    flags, hits = new_flags(block.shape[1])
    for r in range(block.shape[0]):
        row = first_row + r
        _flag(block, r, row_scale[row], scales, raised, thresholds[row] - row_error[row], flags)
        for h in range(flagged(flags, hits)):
            key = first_key + hits[h]
            if exact:
                score = np.float32(block[r, hits[h]]) + shift[key]
            else:
                score = float32_dot(queries, row, keys, key) + shift[key]
            if score > thresholds[row]:
                push(heap_scores, heap_keys, thresholds, row, key, score)


@njit(nogil=True, cache=True)
def _flag(block: Any, row: int, scale: Any, scales: Any, raised: Any, threshold: Any, flags: Any) -> None:
    """Say which scores of a row may exceed its threshold; compiled to vectors."""
    for c in range(block.shape[1]):
        flags[c] = np.uint8(np.float32(block[row, c]) * scale * scales[c] + raised[c] >= threshold)


@njit(nogil=True, cache=True, fastmath=True)
def _exact_scores(candidates: Any, queries: Any, keys: Any, shift: Any, out: Any) -> None:
    """The scores of each query's candidates, summed in float64."""
    for row in range(candidates.shape[0]):
        for c in range(candidates.shape[1]):
            key = candidates[row, c]
            total = 0.0
            for d in range(queries.shape[1]):
                total += np.float64(queries[row, d]) * np.float64(keys[key, d])
            out[row, c] = np.float32(total + np.float64(shift[key]))
