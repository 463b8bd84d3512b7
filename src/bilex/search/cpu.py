"""Exact top-k on the CPU: products of blocks propose scores, heaps keep the best, float64 decides.

Each query has a heap of a few more than its k best keys so far; the worst of them is the query's threshold.
A block of products is small enough to stay in a core's cache while every score is compared with the
threshold of its row, and of its column if both sides are queries. Products of 8-bit rows count with their
largest error, and what passes is scored again in float32. In the end a heap's keys are scored in float64. No
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
        heaps = Heaps.empty(len(queries), min(k + _SPARE, len(self.keys)))
        _search(left, right, scaled, self.keys, shift, heaps, Heaps.closed(len(self.keys)), memory)
        bound = float32_error(left, right, float(np.abs(shift).max(initial=0.0)))
        scores, rows, unsure = _rescored(heaps, scaled, self.keys, shift, bound, k)
        if len(unsure):
            scores[unsure], rows[unsure] = plain.top_k(queries[unsure], self.keys, k, self.penalty)
        return scores, rows


def top_k(
    queries: Floats, keys: Floats, k: int, penalty: Floats | None, memory: int, int8: bool | None = None
) -> tuple[Floats, Rows]:
    """Exact top-k of one set against another; see `bilex.search.top_k`."""
    return KeySearch(keys, penalty, int8).top_k(queries, k, memory)


def top_k_both_ways(
    source: Floats, target: Floats, k: int, memory: int, int8: bool | None = None
) -> tuple[Floats, Rows, Floats, Rows]:
    """Exact top-k of source against target and of target against source, from one product."""
    int8 = int8_pays(len(source), len(target), k, directions=2) if int8 is None else int8
    sides = _read_only(source), _read_only(target)
    left, right = (operand(placed(side, _CPU), int8=int8) for side in sides)
    shift = np.zeros(max(len(source), len(target)), np.float32)
    forward, backward = (
        Heaps.empty(len(own), min(k + _SPARE, len(other))) for own, other in (sides, sides[::-1])
    )
    _search(left, right, *sides, shift, forward, backward, memory)
    found: list[Any] = []
    for heaps, own, other, operands in (
        (forward, *sides, (left, right)),
        (backward, *sides[::-1], (right, left)),
    ):
        wanted = min(k, len(other))
        scores, rows, unsure = _rescored(heaps, own, other, shift, float32_error(*operands), wanted)
        if len(unsure):
            scores[unsure], rows[unsure] = plain.top_k(own[unsure], other, wanted, None)
        found += [scores, rows]
    return found[0], found[1], found[2], found[3]


def _search(
    left: Operand,
    right: Operand,
    queries: Floats,
    keys: Floats,
    shift: Floats,
    rows: Heaps,
    columns: Heaps,
    memory: int,
) -> None:
    """Fill the heaps of the rows and of the columns from one product of the two sides."""
    largest = float(np.abs(shift).max(initial=0.0))
    errors = quantization_error(left, right, largest)
    locks = [threading.Lock() for _ in range(0, len(keys), BLOCK_COLUMNS)]

    def visit(block: npt.NDArray[np.generic], row: int, key: int) -> None:
        with locks[key // BLOCK_COLUMNS]:
            _scan(
                block, row, key, left.scale, right.scale, *errors, shift, queries, keys, rows, columns,
                left.exact,
            )  # fmt: skip

    row_blocks(left.rows, right.rows, memory, visit)


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


def _rescored(
    heaps: Heaps, queries: Floats, keys: Floats, shift: Floats, bound: Floats, k: int
) -> tuple[Floats, Rows, Rows]:
    """The exact k best of every query, and the queries for which the heap does not decide them."""
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
    if heaps.key.shape[1] == len(keys):
        return scores, rows, np.empty(0, np.int64)
    return scores, rows, np.flatnonzero(scores[:, -1] <= heaps.threshold + bound)


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
    rows: Any,
    columns: Any,
    exact: bool,
) -> None:
    """Put the scores of a block that exceed the threshold of their row or column into the heaps."""
    width = block.shape[1]
    last = first_key + width
    scales, raised = key_scale[first_key:last], shift[first_key:last] + key_error[first_key:last]
    row_scores, row_keys, row_threshold = rows.score, rows.key, rows.threshold
    column_scores, column_keys, column_threshold = columns.score, columns.key, columns.threshold
    thresholds = column_threshold[first_key:last]
    flags, hits = new_flags(width)
    for r in range(block.shape[0]):
        row = first_row + r
        scale, error = row_scale[row], row_error[row]
        _flag(block, r, scale, scales, raised, row_threshold[row] - error, error, thresholds, flags)
        for h in range(flagged(flags, hits)):
            key = first_key + hits[h]
            if exact:
                score = np.float32(block[r, hits[h]]) + shift[key]
            else:
                score = float32_dot(queries, row, keys, key) + shift[key]
            if score > row_threshold[row]:
                push(row_scores, row_keys, row_threshold, row, key, score)
            if score > column_threshold[key]:
                push(column_scores, column_keys, column_threshold, key, row, score)


@njit(nogil=True, cache=True)
def _flag(
    block: Any,
    row: int,
    scale: Any,
    scales: Any,
    raised: Any,
    threshold: Any,
    error: Any,
    thresholds: Any,
    flags: Any,
) -> None:
    """Say which scores of a row may exceed its threshold or that of their column; compiled to vectors."""
    for c in range(block.shape[1]):
        score = np.float32(block[row, c]) * scale * scales[c] + raised[c]
        flags[c] = np.uint8(score >= threshold) | np.uint8(score + error >= thresholds[c])


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
