"""Hard negatives on the CPU: pools, compiled scoring, and a product with all keys where a pool runs out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from bilex.search import cpu, negatives_kernels
from bilex.search.locality import near_together
from bilex.search.negatives import Forbidden, Moment, Nearest, updates_ahead
from bilex.search.threads import in_threads

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

# A pool aims at this many times the wanted neighbours: deeper pools live longer but cost more at every
# update, which pays the more keys a search has to go through.
_POOL_FACTORS, _KEYS_PER_FACTOR = (3, 6), 10_000
# Guards the bounds against float32 rounding of scores, norms and steps.
_ROUNDING = 2e-6
_QUERIES_PER_TASK = 256
_ROWS_PER_TASK = 2048
_BLOCK_MEMORY = 1 << 26


class CpuHardNegatives:
    """See `bilex.search.negatives`."""

    def __init__(self, keys: torch.Tensor, n: int, temperature: float, forbidden: Forbidden) -> None:
        self.keys = np.ascontiguousarray(keys.numpy(), np.float32)
        self.temperature = temperature
        self.searched = 0
        # How far a float32 product of two unit rows may be off.
        self.error = np.float32(2.0**-23 * (self.keys.shape[1] + 4) * (1 + 1e-5) + _ROUNDING)
        self.looked_at: Moment | None = None
        self.order: Indices | None = None
        queries = len(forbidden.starts) - 1
        factor = min(_POOL_FACTORS[1], max(_POOL_FACTORS[0], len(self.keys) // _KEYS_PER_FACTOR))
        self.pool_size = min(len(self.keys), max(factor * n, n + forbidden.most + 1))
        capacity = 2 * self.pool_size
        self.pools = negatives_kernels.Pools(
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
        self.output = negatives_kernels.Output(
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
        """See `HardNegatives.nearest`.

        The n-th best score of all keys has moved by at most a step since the last call. A pool that can only
        serve if it has risen is filled anew without being looked at.
        """
        if self.looked_at is not now:
            self.look(now)
        if self.order is None:
            self.order = near_together(now.query_units.numpy())
        pools, step = self.pools, self.step
        known = pools.level > -np.inf
        sure = np.where(known, pools.level + np.float32(3) * step, np.float32(np.inf))
        kept = pools.outside + pools.drift < pools.level
        np.subtract(pools.level, step, out=pools.level, where=~kept)
        pools.settled[~kept] = False
        self._attend(now, self.order[kept[self.order]], pools.level - step, sure)
        unsettled = int(np.count_nonzero(~pools.settled))
        if unsettled:
            ahead = updates_ahead(unsettled, len(self.order))
            margin = pools.level - (pools.outside + pools.drift)
            due = self.order[(~pools.settled | (margin <= ahead * step))[self.order]]
            self._search(now, due, step[due])
            self._remember_depth(due)
            tied = due[~pools.settled[due]]
            if len(tied):
                self._search_exactly(now, tied)
        return Nearest(*(torch.from_numpy(part) for part in self.output))

    def _attend(self, now: Moment, wanted: Indices, bars: Floats, sure_bars: Floats) -> None:
        queries, inverse = now.queries.contiguous().numpy(), now.inverse_norm.contiguous().numpy()
        in_threads(
            len(wanted),
            lambda start, stop: negatives_kernels.attend(
                queries,
                self.keys,
                inverse,
                self.temperature,
                self.pools,
                wanted,
                start,
                stop,
                bars,
                sure_bars,
                self.output,
            ),
            _QUERIES_PER_TASK,
        )

    def _search(self, now: Moment, wanted: Indices, step: Floats) -> None:
        """Give the `wanted` queries new pools from a product with all keys.

        At least n allowed keys reach a query's known level. A pool as deep under it as the first one is asked
        for, unless the query moves so fast that it could not serve a second time.
        """
        self.searched += len(wanted)
        level, depth = self.pools.level[wanted], self.depth[wanted]
        deeper = np.where(2 * step < depth, depth, np.float32(_ROUNDING))
        new = negatives_kernels.Refill(
            wanted=wanted,
            filled=np.zeros(len(wanted), np.int64),
            threshold=np.asarray(level - self.error - deeper, np.float32),
            error=np.full(len(wanted), self.error, np.float32),
            size=self.pool_size,
        )
        cpu.row_blocks(
            now.query_units[torch.from_numpy(wanted)],
            now.key_units.contiguous(),
            _BLOCK_MEMORY,
            lambda block, row, key: negatives_kernels.refill(block, row, key, self.pools, new),
        )
        self._take_over(now, new)

    def _take_over(self, now: Moment, new: negatives_kernels.Refill) -> None:
        """Finish pools that were filled anew, and find the nearest keys in them."""
        bars, sure_bars = np.empty((2, len(self.step)), np.float32)
        n = self.output.chosen.shape[1]
        in_threads(
            len(new.wanted),
            lambda start, stop: negatives_kernels.close(self.pools, new, n, start, stop, bars, sure_bars),
            _QUERIES_PER_TASK,
        )
        self._attend(now, new.wanted, bars, sure_bars)

    def _remember_depth(self, wanted: Indices) -> None:
        """Note how far below the n-th neighbour a pool reaches, the first time that one is filled."""
        new = wanted[self.depth[wanted] == 0]
        with np.errstate(invalid="ignore"):  # where scores are NaN nothing was found
            depth = self.pools.level[new] - self.pools.outside[new]
        self.depth[new] = np.where(np.isfinite(depth), np.maximum(depth, np.float32(_ROUNDING)), np.inf)

    def _search_exactly(self, now: Moment, wanted: Indices) -> None:
        """For queries with masses of equal scores: as many nearest keys as a pool holds, by exact search."""
        units = now.query_units[torch.from_numpy(wanted)].numpy()
        scores, keys = cpu.top_k(units, now.key_units.numpy(), self.pool_size, None, _BLOCK_MEMORY)
        self.pools.candidate[wanted, : self.pool_size] = keys
        self.pools.stale[wanted, : self.pool_size] = scores
        none, rounding = (
            np.full(len(wanted), -np.inf, np.float32),
            np.full(len(wanted), _ROUNDING, np.float32),
        )
        filled = np.full(len(wanted), self.pool_size)
        self._take_over(now, negatives_kernels.Refill(wanted, filled, none, rounding, self.pool_size))
        self.pools.outside[wanted] = np.inf


def make_units(
    image: torch.Tensor, previous: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See `bilex.search.negatives.to_units`; `image` is overwritten."""
    count = len(image)
    inverse, step = torch.empty(count), torch.empty(count)
    arrays = [t.numpy() for t in (image, image if previous is None else previous, inverse, step)]
    in_threads(count, lambda start, stop: negatives_kernels.make_units(*arrays, start, stop), _ROWS_PER_TASK)
    return inverse, image, step
