"""The CPU side of `bilex.similarity.stochastic`: threads that multiply and scan strips of the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from bilex.similarity import stochastic_kernels as kernels
from bilex.similarity.cpu import _as_numpy

if TYPE_CHECKING:
    from bilex.similarity.stochastic import ScoreBlocks

Floats = npt.NDArray[np.float32]

_STRIP = 256
"""Rows multiplied at a time; their scores are scanned while they are still in the cache."""

_TILE = 64
"""Rows scanned at a time, and columns in a group: about as many as it takes until a look is worth while."""


class CpuMatching:
    """One matching of two sets of rows; see `StochasticMatcher`.

    Each thread takes a fixed share of the source rows and keeps its own results for the columns; these
    are merged at the end, so that the outcome does not depend on which thread was faster.

    Args:
        x: Source rows, float32 or bfloat16.
        y: Target rows likewise.
        k: Neighbours in CSLS's terms.
        keep: The probability that a score is kept.
        keys: Where chance starts, for the forward and for the backward direction.
    """

    def __init__(self, x: torch.Tensor, y: torch.Tensor, k: int, keep: float, keys: tuple[int, int]) -> None:
        n, m = len(x), len(y)
        self.x, self.y = x, y
        self.keys = np.array(keys, np.uint64)
        self.limit = np.uint64(round(keep * 2**32))
        self.threads = torch.get_num_threads()
        self.of_rows = np.full((n, min(k, m)), kernels.LOWEST, np.float32)
        self.of_columns = np.full((self.threads, m, min(k, n)), kernels.LOWEST, np.float32)
        self.group_best = np.empty((self.threads, _TILE, -(-m // _TILE)), np.float32)
        self.column_best = np.empty((self.threads, m), np.float32)
        self.forward, self.forward_score = np.zeros(n, np.int64), np.full(n, kernels.LOWEST, np.float32)
        self.backward = np.zeros((self.threads, m), np.int64)
        self.backward_score = np.full((self.threads, m), kernels.LOWEST, np.float32)
        self.row_penalty, self.column_penalty = np.zeros(n, np.float32), np.zeros(m, np.float32)

    def run(self, blocks: ScoreBlocks) -> tuple[torch.Tensor, torch.Tensor, float]:
        """Forward partners, backward partners and the objective."""
        try:
            with ThreadPoolExecutor(self.threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                for start, room in blocks.rooms(self.x, self.y):
                    self._share(pool, self._multiply_and_rank, start, room)
                columns = np.sort(np.concatenate(self.of_columns, axis=1), axis=1)[
                    :, -self.of_columns.shape[2] :
                ]
                self.row_penalty, self.column_penalty = (
                    self.of_rows.mean(axis=1) / 2,
                    columns.mean(axis=1) / 2,
                )
                matching = self._match if blocks.hold_all(self.x) else self._multiply_and_match
                for start, room in blocks.rooms(self.x, self.y):
                    self._share(pool, matching, start, room)
        finally:
            torch.set_num_threads(self.threads)
        winner = self.backward_score.argmax(axis=0)[None]
        backward = np.take_along_axis(self.backward, winner, 0)[0]
        backward_score = np.take_along_axis(self.backward_score, winner, 0)[0]
        kernels.zero_wins(self.forward_score, self.forward, len(self.y), self.keys[0], self.limit)
        kernels.zero_wins(backward_score, backward, len(self.x), self.keys[1], self.limit)
        objective = (self.of_rows[:, -1].mean(dtype=np.float64) + columns[:, -1].mean(dtype=np.float64)) / 2
        return torch.from_numpy(self.forward), torch.from_numpy(backward), float(objective)

    def _share(
        self,
        pool: ThreadPoolExecutor,
        work: Callable[[int, slice, torch.Tensor], None],
        start: int,
        room: torch.Tensor,
    ) -> None:
        """Let each thread call `work(its number, source rows, room for their scores)` strip by strip."""

        def loop(thread: int, first: int, last: int) -> None:
            for begin in range(first, last, _STRIP):
                end = min(begin + _STRIP, last)
                work(thread, slice(start + begin, start + end), room[begin:end])

        bounds = np.linspace(0, len(room), self.threads + 1).astype(int)
        shares = [pool.submit(loop, t, bounds[t], bounds[t + 1]) for t in range(self.threads)]
        for share in shares:
            share.result()

    def _multiply_and_rank(self, thread: int, rows: slice, scores: torch.Tensor) -> None:
        torch.mm(self.x[rows], self.y.T, out=scores)
        for own, tile, group_best, column_best in self._surveyed(thread, rows, scores):
            kernels.highest(tile, self.of_rows[own], self.of_columns[thread], group_best, column_best)

    def _multiply_and_match(self, thread: int, rows: slice, scores: torch.Tensor) -> None:
        torch.mm(self.x[rows], self.y.T, out=scores)
        self._match(thread, rows, scores)

    def _match(self, thread: int, rows: slice, scores: torch.Tensor) -> None:
        forward = self.keys[0], self.limit, self.forward, self.forward_score
        backward = self.keys[1], self.limit, self.backward[thread], self.backward_score[thread]
        for own, tile, group_best, column_best in self._surveyed(thread, rows, scores):
            kernels.match_rows(tile, own.start, self.column_penalty, group_best, *forward)
            kernels.match_columns(tile, own.start, self.row_penalty[own], column_best, *backward)

    def _surveyed(
        self, thread: int, rows: slice, scores: torch.Tensor
    ) -> Iterator[tuple[slice, npt.NDArray[np.generic], Floats, Floats]]:
        """The scores tile by tile: source rows, their scores, the best of groups and of columns."""
        block = _as_numpy(scores)
        for first in range(0, len(block), _TILE):
            tile = block[first : first + _TILE]
            own = slice(rows.start + first, rows.start + first + len(tile))
            group_best, column_best = self.group_best[thread, : len(tile)], self.column_best[thread]
            kernels.survey(tile, self.row_penalty[own], self.column_penalty, group_best, column_best)
            yield own, tile, group_best, column_best
