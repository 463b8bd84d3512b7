"""Exact top-k on the CPU: a fast product proposes, a bound decides what is looked at, float64 disposes.

The product of two blocks is computed in the fastest precision that the processor has. The rounding
errors of both sides are known exactly (they are measured row by row), so Cauchy-Schwarz bounds how far
a proposed score can lie from the true one. Every key within twice that bound of a row's k-th best
proposal is kept and re-scored from the float32 vectors in float64. What comes out is therefore exact,
and does not depend on block sizes, threads or the precision of the proposals.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bilex.errors import BilexError
from bilex.similarity import kernels
from bilex.similarity.search import Floats, Rows, placed

_FLOAT32_ROUNDING = 2.0**-23


class Proposer(NamedTuple):
    """One side of the product: rows in low precision, and how far they are from the truth.

    Attributes:
        rows: The rows as torch will multiply them.
        error: Per row, the Euclidean distance between the true row and `rows`.
        norm: Per row, the Euclidean length of `rows`.
    """

    rows: torch.Tensor
    error: npt.NDArray[np.float64]
    norm: npt.NDArray[np.float64]


@lru_cache(maxsize=1)
def fastest_precision() -> torch.dtype:
    """bfloat16 where the processor multiplies it faster than float32, else float32; timed once, best of 8."""
    sides = {
        dtype: (torch.ones(256, 320, dtype=dtype), torch.ones(320, 2048, dtype=dtype))
        for dtype in (torch.float32, torch.bfloat16)
    }
    times = dict.fromkeys(sides, math.inf)
    for _ in range(8):
        for dtype, (a, b) in sides.items():
            started = time.perf_counter()
            torch.mm(a, b)
            times[dtype] = min(times[dtype], time.perf_counter() - started)
    return min(times, key=lambda dtype: times[dtype])


def proposer(rows: Floats, extra: Floats | None, scale: float, dtype: torch.dtype) -> Proposer:
    """Round `scale`·rows, with `extra` columns beside them, to `dtype`, and measure what was lost.

    Rows that need neither rounding nor scaling nor columns are not copied.
    """
    as_it_is = dtype == torch.float32 and extra is None and scale == 1 and rows.flags.c_contiguous
    width = rows.shape[1] + (0 if extra is None else extra.shape[1])
    rounded = placed(rows, torch.device("cpu")) if as_it_is else torch.empty(len(rows), width, dtype=dtype)
    error, norm = np.zeros(len(rows)), np.empty(len(rows))
    for start in range(0, len(rows), 8192):
        true = torch.from_numpy(np.array(rows[start : start + 8192], np.float32)).mul_(scale)
        if extra is not None:
            true = torch.cat([true, torch.from_numpy(extra[start : start + 8192])], dim=1)
        low = true.to(dtype)
        if not as_it_is:
            rounded[start : start + 8192] = low
        low = low.double()
        if dtype != torch.float32:
            error[start : start + 8192] = torch.linalg.vector_norm(true.double() - low, dim=1).numpy()
        norm[start : start + 8192] = torch.linalg.vector_norm(low, dim=1).numpy()
    if not np.isfinite(norm).all():
        row = int(np.flatnonzero(~np.isfinite(norm))[0])
        raise BilexError(f"row {row} of the vectors holds NaN or infinite values; remove that word.")
    return Proposer(rounded, error, norm)


def slack(own: Proposer, other: Proposer) -> Floats:
    """Per row of `own`, twice the largest error that a proposed score with a row of `other` can have."""
    if not len(other.norm):
        return np.zeros(len(own.norm), np.float32)
    largest_norm, largest_error = other.norm.max(), other.error.max()
    bound = own.error * (largest_norm + largest_error) + own.norm * largest_error
    largest_score = own.norm * largest_norm * (1 + own.rows.shape[1] * _FLOAT32_ROUNDING)
    bound += own.rows.shape[1] * _FLOAT32_ROUNDING * largest_score
    if own.rows.dtype == torch.bfloat16:
        bound += bfloat16_rounding(largest_score)
    return np.asarray(2.0 * bound * (1 + 1e-6), np.float32)


def bfloat16_rounding(largest: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The furthest that rounding to bfloat16 moves a number of at most this size.

    With p the power of two at or under `largest`: numbers under p move by at most p/512, those from p on
    by at most p/256 and no further than back to p.
    """
    power = np.ldexp(1.0, np.frexp(largest)[1] - 1)
    return np.asarray(np.maximum(power / 512, np.minimum(largest - power, power / 256)), np.float64)


def split_penalty(penalty: Floats, dtype: torch.dtype) -> Floats:
    """Write a column as two columns whose sum survives rounding to `dtype`."""
    high = torch.from_numpy(penalty).to(dtype).float().numpy()
    return np.stack([high, penalty - high], axis=1)


@contextmanager
def single_threaded_torch() -> Iterator[Callable[[], None]]:
    """Let our own threads be the parallelism; each calls what is yielded before its first product."""
    before = torch.get_num_threads()
    try:
        yield lambda: torch.set_num_threads(1)
    finally:
        torch.set_num_threads(before)


def worker_count() -> int:
    """How many threads torch would use, which is what the user allows."""
    return max(1, min(torch.get_num_threads(), os.cpu_count() or 1))


def list_capacity(k: int, keys: int) -> int:
    """Candidates that a list has room for: enough that its bar rises seldom."""
    return min(keys, 2 * k + 64)


def new_lists(
    queries: Floats, keys: Floats, k: int, slacks: Floats, scale: float = 1.0, shift: Floats | None = None
) -> kernels.Lists:
    """Empty candidate lists for `queries`."""
    capacity = list_capacity(k, len(keys))
    n = len(queries)
    return kernels.Lists(
        candidate=np.empty((n, capacity), np.int32),
        value=np.empty((n, capacity), np.float32),
        filled=np.zeros(n, np.int32),
        bar=np.full(n, -np.inf, np.float32),
        slack=slacks,
        queries=np.ascontiguousarray(queries, np.float32),
        keys=np.ascontiguousarray(keys, np.float32),
        shift=np.zeros(len(keys), np.float32) if shift is None else np.ascontiguousarray(shift, np.float32),
        scale=float(scale),
        k=k,
    )


def block_shape(memory: int, workers: int) -> tuple[int, int]:
    """Rows and columns of a block: small enough for a core's cache, and for `memory`."""
    columns = 4096
    rows = max(16, min(256, memory // (workers * columns * 4)))
    return rows, columns


class Sweep:
    """One pass over the product of two sides, block by block, by several threads."""

    def __init__(self, left: Proposer, right: Proposer, memory: int) -> None:
        self.left, self.right = left, right
        self.workers = worker_count()
        self.rows, self.columns = block_shape(memory, self.workers)
        self.local = threading.local()

    def run(self, visit: Callable[[npt.NDArray[np.generic], int, int, int], None]) -> None:
        """Call `visit(block, first row, first column, column block)` for every block.

        A thread goes through all columns of its rows before it takes the next rows; threads start at
        different columns so that they seldom want the same ones.
        """
        starts = range(0, len(self.left.rows), self.rows)
        with single_threaded_torch() as calm, ThreadPoolExecutor(self.workers, initializer=calm) as pool:
            for done in [
                pool.submit(self._strip, number, start, visit) for number, start in enumerate(starts)
            ]:
                done.result()

    def _strip(
        self, number: int, start: int, visit: Callable[[npt.NDArray[np.generic], int, int, int], None]
    ) -> None:
        left = self.left.rows[start : start + self.rows]
        blocks = -(-len(self.right.rows) // self.columns)
        offset = number * blocks // max(1, self.workers)
        for turn in range(blocks):
            number = (turn + offset) % blocks
            first = number * self.columns
            right = self.right.rows[first : first + self.columns]
            out = self._buffer(len(left), len(right))
            torch.mm(left, right.T, out=out)
            visit(as_numpy(out), start, first, number)

    def _buffer(self, rows: int, columns: int) -> torch.Tensor:
        """This thread's block, reused from one product to the next."""
        if not hasattr(self.local, "memory"):
            self.local.memory = torch.empty(self.rows * self.columns, dtype=self.left.rows.dtype)
        memory: torch.Tensor = self.local.memory
        return memory[: rows * columns].view(rows, columns)


def as_numpy(block: torch.Tensor) -> npt.NDArray[np.generic]:
    """The memory of a block as the compiled loops read it: bfloat16, which numpy lacks, as uint16."""
    if block.dtype == torch.bfloat16:
        return block.view(torch.uint16).numpy()
    return block.numpy()


def _settle(lists: kernels.Lists) -> tuple[Floats, Rows]:
    """The exact k best of every row."""
    n = len(lists.filled)
    scores, keys = np.empty((n, lists.k), np.float32), np.empty((n, lists.k), np.int64)
    with ThreadPoolExecutor(worker_count()) as pool:
        step = 1024
        for done in [
            pool.submit(kernels.settle, lists, start, min(start + step, n), scores, keys)
            for start in range(0, n, step)
        ]:
            done.result()
    return scores, keys


class KeySearch:
    """Keys made ready once for any number of searches; see `bilex.similarity.KeySearch`."""

    def __init__(self, keys: Floats, penalty: Floats | None, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype or fastest_precision()
        self.keys, self.penalty = np.ascontiguousarray(keys, np.float32), penalty
        extra = None if penalty is None else split_penalty(penalty, self.dtype)
        self.right = proposer(self.keys, extra, 1.0, self.dtype)

    def top_k(self, queries: Floats, k: int, memory: int) -> tuple[Floats, Rows]:
        """Exact top-k of some queries."""
        if self.penalty is None:
            scale, shift, extra = 1.0, None, None
        else:
            scale, shift, extra = 2.0, -self.penalty, np.full((len(queries), 2), -1, np.float32)
        left = proposer(queries, extra, scale, self.dtype)
        lists = new_lists(queries, self.keys, k, slack(left, self.right), scale, shift)
        Sweep(left, self.right, memory).run(
            lambda block, row, key, _: kernels.scan_one_way(block, row, key, lists)
        )
        return _settle(lists)


def top_k(
    queries: Floats,
    keys: Floats,
    k: int,
    penalty: Floats | None,
    memory: int,
    dtype: torch.dtype | None = None,
) -> tuple[Floats, Rows]:
    """Exact top-k of one set against another; see `bilex.similarity.top_k`."""
    return KeySearch(keys, penalty, dtype).top_k(queries, k, memory)


def top_k_both_ways(
    source: Floats, target: Floats, k: int, memory: int, dtype: torch.dtype | None = None
) -> tuple[Floats, Rows, Floats, Rows]:
    """Exact top-k of source against target and of target against source, from one pass."""
    dtype = dtype or fastest_precision()
    left, right = proposer(source, None, 1.0, dtype), proposer(target, None, 1.0, dtype)
    forward = new_lists(source, target, min(k, len(target)), slack(left, right))
    backward = new_lists(target, source, min(k, len(source)), slack(right, left))
    sweep = Sweep(left, right, memory)
    locks = [threading.Lock() for _ in range(0, len(target), sweep.columns)]

    def visit(block: npt.NDArray[np.generic], row: int, key: int, column: int) -> None:
        with locks[column]:
            kernels.scan_both_ways(block, row, key, forward, backward)

    sweep.run(visit)
    return *_settle(forward), *_settle(backward)
