"""Hard negatives by torch, on a GPU: the CPU's pools, scored by fused kernels where Triton is there."""

from __future__ import annotations

import importlib.util

import numpy as np
import torch

from bilex.core.device import in_blocks
from bilex.search import gpu
from bilex.search.negatives import Forbidden, Moment, Nearest

# A pool holds this many times the wanted neighbours.
_POOL_FACTOR = 4
# Guards the bounds against float32 rounding of scores, norms and steps.
_ROUNDING = 2e-6
# When fewer than this share of the pools have run out, those that will within so many updates of the present
# size are searched along with them, which makes fewer, larger searches.
_FEW, _UPDATES_AHEAD = 0.1, 2.0
# Bytes of gathered key rows, and of proposed scores, at a time.
_BLOCK_MEMORY = 1 << 30


class GpuHardNegatives:
    """See `bilex.search.negatives`."""

    def __init__(self, keys: torch.Tensor, n: int, temperature: float, forbidden: Forbidden) -> None:
        self.keys, self.n, self.temperature = keys.contiguous(), n, temperature
        on_gpu = keys.device.type == "cuda" and keys.dtype == torch.float32
        self.fused = on_gpu and importlib.util.find_spec("triton") is not None
        self.searched = 0
        self.looked_at: Moment | None = None
        queries = len(forbidden.starts) - 1
        self.pool_size = min(len(keys), max(_POOL_FACTOR * n, n + forbidden.most + 1))
        device, dtype = keys.device, keys.dtype
        self.everyone = torch.arange(queries, device=device)
        self.margin = torch.full((queries,), -torch.inf, device=device)
        self.pool = torch.zeros(queries, self.pool_size, dtype=torch.int64, device=device)
        self.barred = torch.zeros(queries, self.pool_size, dtype=torch.bool, device=device)
        self.scores = torch.zeros(queries, self.pool_size, dtype=dtype, device=device)
        self.place = torch.zeros(queries, n, dtype=torch.int64, device=device)
        self.outside = torch.full((queries,), torch.inf, dtype=dtype, device=device)
        self.drift = torch.zeros(queries, dtype=dtype, device=device)
        self.forbidden = _padded_rows(forbidden).to(device)
        self.output = Nearest(
            torch.zeros(queries, dtype=dtype, device=device),
            torch.zeros(queries, keys.shape[1], dtype=dtype, device=device),
            torch.zeros(queries, n, dtype=torch.int64, device=device),
            torch.zeros(queries, n, dtype=dtype, device=device),
        )

    def look(self, now: Moment) -> None:
        """See `HardNegatives.look`: all of it is queued on the GPU, nothing is waited for."""
        self.looked_at = now
        self.drift += now.query_step + (now.key_step + _ROUNDING)
        if self.searched:
            self.margin = self._settle(now, self.everyone)

    def nearest(self, now: Moment) -> Nearest:
        """See `HardNegatives.nearest`."""
        if self.looked_at is not now:
            self.look(now)
        unsettled = len(self.everyone) - int((self.margin > 0).sum())
        if unsettled:
            ahead = _UPDATES_AHEAD if unsettled < _FEW * len(self.everyone) else 0.0
            due = self.everyone[~(self.margin > ahead * (now.query_step + now.key_step))]
            self._search(now, due)
            tied = due[~(self._settle(now, due) > 0)]
            if len(tied):
                self._search_exactly(now, tied)
        self._weigh(now)
        return self.output

    def _settle(self, now: Moment, wanted: torch.Tensor) -> torch.Tensor:
        """Find the n nearest in the pools of the `wanted` queries, and how surely each pool suffices."""
        self._score(now, wanted)
        if wanted is self.everyone:
            torch.topk(self.scores, self.n, dim=1, sorted=False, out=(self.output.score, self.place))
            torch.gather(self.pool, 1, self.place, out=self.output.key)
            return self.output.score.amin(1) - (self.outside + self.drift)
        best, place = self.scores[wanted].topk(self.n, dim=1, sorted=False)
        self.output.key[wanted] = self.pool[wanted].gather(1, place)
        self.output.score[wanted] = best
        return best.amin(1) - (self.outside[wanted] + self.drift[wanted])

    def _score(self, now: Moment, wanted: torch.Tensor) -> None:
        """Exact scores of the pooled keys of the `wanted` queries."""
        if self.fused:
            from bilex.search import negatives_triton

            negatives_triton.score_pools(
                now.queries, self.keys, now.inverse_norm, self.pool, self.barred, wanted, self.scores
            )
            return

        def score(block: slice) -> None:
            part = wanted[block]
            pool = self.pool[part]
            scores = torch.bmm(self.keys[pool], now.queries[part][:, :, None])[:, :, 0]
            scores *= now.inverse_norm[pool]
            self.scores[part] = scores.masked_fill_(self.barred[part], -torch.inf)

        in_blocks(len(wanted), _BLOCK_MEMORY // (self.pool_size * self.keys.shape[1] * 4), score)

    def _weigh(self, now: Moment) -> None:
        """The softmax weights of all queries' nearest keys: their sum, and the weighted sum of rows."""
        out = self.output
        if self.fused:
            from bilex.search import negatives_triton

            negatives_triton.weigh_nearest(
                self.keys,
                now.inverse_norm,
                out.key,
                out.score,
                self.everyone,
                out.total,
                out.context,
                self.temperature,
            )
            return

        def weigh(block: slice) -> None:
            index = out.key[block]
            weight = (out.score[block] / self.temperature).exp()
            out.total[block] = weight.sum(1)
            weight = weight * now.inverse_norm[index]
            out.context[block] = torch.bmm(weight[:, None, :], self.keys[index])[:, 0]

        in_blocks(len(self.everyone), _BLOCK_MEMORY // (self.n * self.keys.shape[1] * 4), weigh)

    def _search(self, now: Moment, wanted: torch.Tensor) -> None:
        """Give the `wanted` queries new pools from a product with all keys."""
        self.searched += len(wanted)
        keys = gpu.padded(gpu.rounded_units(now.key_units))
        whole = self.pool_size == len(self.keys)

        def search(block: slice) -> None:
            part = wanted[block]
            queries = gpu.rounded_units(now.query_units[part])
            pool, worst = gpu.best_proposals(queries, keys, len(self.keys), self.pool_size)
            bound = worst + gpu.UNIT_ERROR
            self._fill(part, pool, torch.full_like(bound, -torch.inf) if whole else bound)

        in_blocks(len(wanted), _BLOCK_MEMORY // (2 * len(keys)), search)

    def _search_exactly(self, now: Moment, wanted: torch.Tensor) -> None:
        """For queries with masses of equal scores: pools by exact search, good for this update alone."""
        _, pool = gpu.top_k(now.query_units[wanted], now.key_units, self.pool_size, None, _BLOCK_MEMORY)
        self._fill(wanted, pool, torch.full((len(wanted),), -torch.inf, device=wanted.device))
        self._settle(now, wanted)
        self.outside[wanted] = torch.inf

    def _fill(self, part: torch.Tensor, pool: torch.Tensor, outside: torch.Tensor) -> None:
        self.pool[part] = pool
        self.barred[part] = (pool[:, :, None] == self.forbidden[part][:, None, :]).any(2)
        self.outside[part] = outside.to(self.outside.dtype)
        self.drift[part] = 0


def _padded_rows(forbidden: Forbidden) -> torch.Tensor:
    """The forbidden keys of each query as rows of equal length, filled up with −1."""
    counts = np.diff(forbidden.starts)
    table = np.full((len(counts), max(1, forbidden.most)), -1, np.int64)
    who = np.repeat(np.arange(len(counts)), counts)
    table[who, np.arange(len(forbidden.keys)) - forbidden.starts[who]] = forbidden.keys
    return torch.from_numpy(table)
