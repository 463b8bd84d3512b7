"""Hard negatives on a GPU: the pools of the CPU's way, as batched products over gathered rows."""

from __future__ import annotations

import torch

from bilex.similarity import gpu
from bilex.similarity.hard_negatives import Forbidden, Moment, Nearest

# A pool holds this many times the wanted neighbours.
_POOL_FACTOR = 2
# Guards the bounds against float32 rounding of scores, norms and steps.
_ROUNDING = 2e-6
# Bytes of gathered key rows, and of proposed scores, at a time.
_BLOCK_MEMORY = 1 << 29


class GpuHardNegatives:
    """See `bilex.similarity.hard_negatives`."""

    def __init__(self, keys: torch.Tensor, n: int, temperature: float, forbidden: Forbidden) -> None:
        self.keys, self.n, self.temperature = keys.contiguous(), n, temperature
        self.searched = 0
        queries = len(forbidden.starts) - 1
        self.pool_size = min(len(keys), max(_POOL_FACTOR * n, n + forbidden.most + 1))
        device = keys.device
        self.pool = torch.zeros(queries, self.pool_size, dtype=torch.int64, device=device)
        self.barred = torch.zeros(queries, self.pool_size, dtype=torch.bool, device=device)
        self.outside = torch.full((queries,), torch.inf, device=device)
        self.drift = torch.zeros(queries, device=device)
        self.forbidden = _padded_rows(forbidden).to(device)
        self.output = Nearest(
            torch.zeros(queries, device=device),
            torch.zeros(queries, keys.shape[1], device=device),
            torch.zeros(queries, n, dtype=torch.int64, device=device),
            torch.zeros(queries, n, device=device),
        )

    def nearest(self, now: Moment) -> Nearest:
        """See `HardNegatives.nearest`."""
        self.drift += now.query_step + (now.key_step + _ROUNDING)
        everyone = torch.arange(len(self.drift), device=self.drift.device)
        unsettled = everyone
        if bool(torch.isfinite(self.outside).any()):
            unsettled = everyone[~self._attend(now, everyone)]
        if len(unsettled):
            self._search(now, unsettled)
            tied = unsettled[~self._attend(now, unsettled)]
            if len(tied):
                self._search_exactly(now, tied)
        return self.output

    def _attend(self, now: Moment, wanted: torch.Tensor) -> torch.Tensor:
        """Score the pools of the `wanted` queries; which of them are proved sufficient is returned."""
        step = max(1, _BLOCK_MEMORY // (self.pool_size * self.keys.shape[1] * 4))
        settled = [self._attend_part(now, part) for part in wanted.split(step)]
        return torch.cat(settled)

    def _attend_part(self, now: Moment, part: torch.Tensor) -> torch.Tensor:
        pool = self.pool[part]
        rows = self.keys[pool]
        inverse = now.inverse_norm[pool]
        scores = torch.bmm(rows, now.queries[part][:, :, None])[:, :, 0] * inverse
        scores.masked_fill_(self.barred[part], -torch.inf)
        best, place = scores.topk(self.n, dim=1, sorted=False)
        settled = self.outside[part] + self.drift[part] < best.amin(1)
        weight = (best / self.temperature).exp()
        over_pool = torch.zeros_like(scores).scatter_(1, place, weight * inverse.gather(1, place))
        self.output.total[part] = weight.sum(1)
        self.output.context[part] = torch.bmm(over_pool[:, None, :], rows)[:, 0]
        self.output.index[part] = pool.gather(1, place)
        self.output.score[part] = best
        return settled

    def _search(self, now: Moment, wanted: torch.Tensor) -> None:
        """Give the `wanted` queries new pools from a product with all keys."""
        self.searched += len(wanted)
        right = gpu.unit_proposer(now.key_units)
        keys = gpu.padded(right.rows)
        for part in wanted.split(max(1, _BLOCK_MEMORY // (2 * len(keys)))):
            left = gpu.unit_proposer(now.query_units[part])
            pool, worst = gpu.best_proposals(left.rows, keys, len(self.keys), self.pool_size)
            bound = worst + gpu.error_bound(left, right)
            self._fill(
                part, pool, bound if self.pool_size < len(self.keys) else torch.full_like(bound, -torch.inf)
            )

    def _search_exactly(self, now: Moment, wanted: torch.Tensor) -> None:
        """For queries with masses of equal scores: pools by exact search, good for this update alone."""
        _, pool = gpu.top_k(now.query_units[wanted], now.key_units, self.pool_size, None, _BLOCK_MEMORY)
        self._fill(wanted, pool, torch.full((len(wanted),), -torch.inf, device=wanted.device))
        self._attend(now, wanted)
        self.outside[wanted] = torch.inf

    def _fill(self, part: torch.Tensor, pool: torch.Tensor, outside: torch.Tensor) -> None:
        self.pool[part] = pool
        self.barred[part] = (pool[:, :, None] == self.forbidden[part][:, None, :]).any(2)
        self.outside[part] = outside
        self.drift[part] = 0


def _padded_rows(forbidden: Forbidden) -> torch.Tensor:
    """The forbidden keys of each query as rows of equal length, filled up with −1."""
    starts, keys = torch.from_numpy(forbidden.starts), torch.from_numpy(forbidden.keys)
    counts = starts.diff()
    table = torch.full((len(counts), max(1, forbidden.most)), -1, dtype=torch.int64)
    who = torch.repeat_interleave(torch.arange(len(counts)), counts)
    table[who, torch.arange(len(keys)) - starts[:-1][who]] = keys
    return table
