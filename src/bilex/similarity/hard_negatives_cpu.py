"""Hard negatives on the CPU: pools, compiled scoring, low-precision searches where a pool runs out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from bilex.similarity import cpu, pool_kernels
from bilex.similarity.hard_negatives import Forbidden, Moment, Nearest, updates_ahead
from bilex.similarity.kernels import Lists, scan_one_way
from bilex.similarity.locality import near_together
from bilex.similarity.proposals import precision_for, proposer
from bilex.similarity.threads import in_threads

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

# A pool aims at this many times the wanted neighbours: deeper pools live longer but cost more to fill.
_POOL_FACTOR = 3
# Guards the bounds against float32 rounding of scores, norms and steps.
_ROUNDING = 2e-6
_QUERIES_PER_TASK = 256
_ROWS_PER_TASK = 2048
_BLOCK_MEMORY = 1 << 26


class CpuHardNegatives:
    """See `bilex.similarity.hard_negatives`."""

    def __init__(self, keys: torch.Tensor, n: int, temperature: float, forbidden: Forbidden) -> None:
        self.keys = np.ascontiguousarray(keys.numpy(), np.float32)
        self.temperature = temperature
        self.searched = 0
        self.looked_at: Moment | None = None
        self.order: Indices | None = None
        queries = len(forbidden.starts) - 1
        self.pool_size = min(len(self.keys), max(_POOL_FACTOR * n, n + forbidden.most + 1))
        capacity = cpu.list_capacity(self.pool_size, len(self.keys))
        self.pools = pool_kernels.Pools(
            candidate=np.zeros((queries, capacity), np.int32),
            stale=np.zeros((queries, capacity), np.float32),
            size=np.zeros(queries, np.int64),
            outside=np.full(queries, np.inf, np.float32),
            drift=np.zeros(queries, np.float32),
            level=np.full(queries, -np.inf, np.float32),
            settled=np.zeros(queries, np.bool_),
            forbidden_starts=forbidden.starts,
            forbidden_keys=forbidden.keys,
        )
        self.depth, self.step = np.zeros(queries, np.float32), np.zeros(queries, np.float32)
        self.output = pool_kernels.Output(
            total=np.zeros(queries, np.float32),
            context=np.zeros((queries, self.keys.shape[1]), np.float32),
            chosen=np.zeros((queries, n), np.int64),
            score=np.zeros((queries, n), np.float32),
        )

    def look(self, now: Moment) -> None:
        """See `HardNegatives.look`."""
        self.looked_at = now
        self.step = now.query_step.numpy() + np.float32(float(now.key_step) + _ROUNDING)
        np.add(self.pools.drift, self.step, out=self.pools.drift)

    def nearest(self, now: Moment) -> Nearest:
        """See `HardNegatives.nearest`."""
        if self.looked_at is not now:
            self.look(now)
        if self.order is None:
            self.order = near_together(now.query_units.numpy())
        self._attend(now, self.order, self.step)
        unsettled = int(np.count_nonzero(~self.pools.settled))
        if unsettled:
            ahead = updates_ahead(unsettled, len(self.order))
            margin = self.pools.level - (self.pools.outside + self.pools.drift)
            due = self.order[(~self.pools.settled | (margin <= ahead * self.step))[self.order]]
            self._search(now, due, self.step[due])
            self._attend(now, due, np.zeros_like(self.step))
            self._remember_depth(due)
            tied = due[~self.pools.settled[due]]
            if len(tied):
                self._search_exactly(now, tied)
        return Nearest(*(torch.from_numpy(part) for part in self.output))

    def _attend(self, now: Moment, wanted: Indices, fallen: Floats) -> None:
        queries, inverse = now.queries.contiguous().numpy(), now.inverse_norm.contiguous().numpy()
        in_threads(
            len(wanted),
            lambda start, stop: pool_kernels.attend(
                queries,
                self.keys,
                inverse,
                self.temperature,
                self.pools,
                wanted,
                start,
                stop,
                fallen,
                self.output,
            ),
            _QUERIES_PER_TASK,
        )

    def _search(self, now: Moment, wanted: Indices, step: Floats) -> None:
        """Give the `wanted` queries new pools from a product with all keys."""
        self.searched += len(wanted)
        dtype = precision_for(len(wanted), len(self.keys), self.pool_size)
        units = now.query_units[torch.from_numpy(wanted)]
        left, right = proposer(units, dtype), proposer(now.key_units, dtype)
        lists = cpu.new_lists(units.numpy(), now.key_units.numpy(), self.pool_size, left, right)
        lists.slack[:] += np.float32(_ROUNDING)
        self._raise_bars(lists, wanted, step)
        cpu.Sweep(left, right, _BLOCK_MEMORY).run(
            lambda block, row, key, _: scan_one_way(block, row, key, lists)
        )
        self._store(
            wanted, lists.candidate, lists.value, lists.filled, lists.bar, lists.slack / np.float32(2)
        )

    def _store(self, wanted: Indices, *found: npt.NDArray[np.generic]) -> None:
        in_threads(
            len(wanted),
            lambda start, stop: pool_kernels.store(self.pools, wanted, *found, start, stop),
            _QUERIES_PER_TASK,
        )

    def _raise_bars(self, lists: Lists, wanted: Indices, step: Floats) -> None:
        """Start the lists at the bars that the old pools prove right.

        At least n allowed keys reach the n-th best score of the old pool. A pool as deep as the last
        one is asked for, unless the query moves so fast that it could not serve a second time.
        """
        level, depth = self.pools.level[wanted], self.depth[wanted]
        worth_it = 2 * step < depth
        lists.bar[:] = level - lists.slack - np.where(worth_it, depth, np.float32(0))

    def _remember_depth(self, wanted: Indices) -> None:
        """Note how far below the n-th neighbour a pool reaches, the first time that one is filled."""
        new = wanted[self.depth[wanted] == 0]
        depth = self.pools.level[new] - self.pools.outside[new]
        self.depth[new] = np.where(np.isfinite(depth), np.maximum(depth, np.float32(_ROUNDING)), np.inf)

    def _search_exactly(self, now: Moment, wanted: Indices) -> None:
        """For queries with masses of equal scores: as many nearest keys as a pool holds, by exact search."""
        units = now.query_units[torch.from_numpy(wanted)].numpy()
        scores, keys = cpu.top_k(units, now.key_units.numpy(), self.pool_size, None, _BLOCK_MEMORY)
        everything = np.full(len(wanted), self.pool_size), np.full(len(wanted), -np.inf, np.float32)
        self._store(wanted, keys, scores, *everything, np.full(len(wanted), _ROUNDING, np.float32))
        self._attend(now, wanted, np.zeros_like(self.step))
        self.pools.outside[wanted] = np.inf


def make_units(
    image: torch.Tensor, previous: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See `bilex.similarity.hard_negatives.to_units`; `image` is overwritten."""
    count = len(image)
    inverse, step = torch.empty(count), torch.empty(count)
    arrays = [t.numpy() for t in (image, image if previous is None else previous, inverse, step)]
    in_threads(count, lambda start, stop: pool_kernels.make_units(*arrays, start, stop), _ROWS_PER_TASK)
    return inverse, image, step
