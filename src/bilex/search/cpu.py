"""Exact top-k on the CPU: a fast product proposes, a bound decides what is looked at, float64 disposes.

The product of two blocks is computed in the fastest precision that the processor has, and a bound on the
error of what it proposes is known (`bilex.search.proposals`). Every key within twice that bound of a
row's k-th best proposal is kept and re-scored from the float32 vectors in float64. What comes out is
therefore exact, and does not depend on block sizes, threads or the precision of the proposals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import torch

from bilex.search import kernels
from bilex.search.arithmetic import cells, multiply
from bilex.search.proposals import Proposer, coarse_parts, float32_slack, precision_for, proposer
from bilex.search.search import Floats, Rows
from bilex.search.threads import in_threads, single_threaded_torch, worker_count

_BLOCK_ROWS, _BLOCK_COLUMNS = 1024, 512
_FEWEST_BLOCK_ROWS = 16
_ROOM = 16


def list_capacity(k: int, keys: int) -> int:
    """Candidates that a list has room for: few, so that its bar rises often."""
    return min(keys, k + _ROOM)


def new_lists(
    queries: Floats,
    keys: Floats,
    k: int,
    left: Proposer,
    right: Proposer,
    *,
    scale: float = 1.0,
    shift: Floats | None = None,
) -> kernels.Lists:
    """Empty candidate lists for `queries`, whose proposals will be those of `left` with `right`.

    The score of a query and a key is `scale` times their product, plus the key's shift; the scale must be in
    `left` already.
    """
    n = len(queries)
    capacity = list_capacity(k, len(keys))
    shift = np.zeros(len(keys), np.float32) if shift is None else np.ascontiguousarray(shift, np.float32)
    largest_shift = float(np.abs(shift).max(initial=0.0))
    coarse, key_coarse = np.zeros(n, np.float32), np.zeros(len(keys), np.float32)
    slacks = float32_slack(left, right, largest_shift)
    if left.rows.dtype != torch.float32:
        coarse, key_coarse = coarse_parts(left, right)
        coarse += slacks
    return kernels.Lists(
        candidate=np.empty((n, capacity), np.int32),
        value=np.empty((n, capacity), np.float32),
        filled=np.zeros(n, np.int32),
        best=np.full((n, k), -np.inf, np.float32),
        bar=np.full(n, -np.inf, np.float32),
        slack=slacks,
        coarse=coarse,
        key_coarse=key_coarse,
        query_scale=left.scale,
        key_scale=right.scale,
        queries=kernels.read_only(queries),
        keys=kernels.read_only(keys),
        shift=shift,
        scale=float(scale),
        k=k,
    )


def block_shape(rows: int, memory: int, workers: int) -> tuple[int, int]:
    """Rows and columns of a block: small enough for a core's cache and for `memory`, work for all workers."""
    most = min(_BLOCK_ROWS, memory // (workers * _BLOCK_COLUMNS * 4), -(-rows // workers))
    return max(_FEWEST_BLOCK_ROWS, most), _BLOCK_COLUMNS


class Sweep:
    """One pass over the product of two sides, block by block, by several threads."""

    def __init__(self, left: Proposer, right: Proposer, memory: int) -> None:
        self.left, self.right = left, right
        self.workers = worker_count()
        self.rows, self.columns = block_shape(len(left.rows), memory, self.workers)
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
            visit(as_numpy(multiply(left, right, out)), start, first, number)

    def _buffer(self, rows: int, columns: int) -> torch.Tensor:
        """This thread's block, reused from one product to the next."""
        if not hasattr(self.local, "memory"):
            self.local.memory = torch.empty(self.rows * self.columns, dtype=cells(self.left.rows.dtype))
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
    in_threads(n, lambda start, stop: kernels.settle(lists, start, stop, scores, keys), 1024)
    return scores, keys


class KeySearch:
    """Keys made ready once for any number of searches; see `bilex.search.KeySearch`."""

    def __init__(self, keys: Floats, penalty: Floats | None, dtype: torch.dtype | None = None) -> None:
        self.keys, self.penalty, self.dtype = np.ascontiguousarray(keys, np.float32), penalty, dtype
        self.ready: dict[torch.dtype, Proposer] = {}

    def top_k(self, queries: Floats, k: int, memory: int) -> tuple[Floats, Rows]:
        """Exact top-k of some queries."""
        dtype = self.dtype or precision_for(len(queries), len(self.keys), k)
        if dtype not in self.ready:
            self.ready[dtype] = proposer(self.keys, dtype)
        scale, shift = (1.0, None) if self.penalty is None else (2.0, -self.penalty)
        left, right = proposer(queries, dtype).times(scale), self.ready[dtype]
        lists = new_lists(queries, self.keys, k, left, right, scale=scale, shift=shift)
        Sweep(left, right, memory).run(
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
    """Exact top-k of one set against another; see `bilex.search.top_k`."""
    return KeySearch(keys, penalty, dtype).top_k(queries, k, memory)


def top_k_both_ways(
    source: Floats, target: Floats, k: int, memory: int, dtype: torch.dtype | None = None
) -> tuple[Floats, Rows, Floats, Rows]:
    """Exact top-k of source against target and of target against source, from one pass."""
    dtype = dtype or precision_for(len(source), len(target), k, directions=2)
    left, right = proposer(source, dtype), proposer(target, dtype)
    forward = new_lists(source, target, min(k, len(target)), left, right)
    backward = new_lists(target, source, min(k, len(source)), right, left)
    sweep = Sweep(left, right, memory)
    locks = [threading.Lock() for _ in range(0, len(target), sweep.columns)]

    def visit(block: npt.NDArray[np.generic], row: int, key: int, column: int) -> None:
        with locks[column]:
            kernels.scan_both_ways(block, row, key, forward, backward)

    sweep.run(visit)
    return *_settle(forward), *_settle(backward)
