"""The exact nearest keys of queries that move a little at a time, and their softmax-weighted sum.

At every update of its maps, stage C1 needs the nearest words of the other language of each query
(`bilex.search.plain.nearest` finds them plainly). The maps move little between updates, so each query keeps a
*pool*: the keys that scored best when it was last searched in full, with an upper bound on the score of every
key outside. A score cannot change by more than its query moved plus the furthest that any key moved. While
the n-th best score in the pool stays above the bound, the n best of the pool are the n best of all keys; a
query for which this fails is searched in full again. Nothing is approximated.

Scores are q·y/‖yW‖ with the *unmapped* key y: the query carries the map. So the keys stay put, and the
weighted sum over the nearest keys of a query comes from the same rows as the scores.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bilex.core.device import in_blocks
from bilex.search.gpu import best_proposals, padded
from bilex.search.low_precision.bfloat16 import UNIT_ERROR, full_sums, rounded_units
from bilex.search.search import top_k
from bilex.search.threads import in_threads

# On a CPU and on a GPU: the size of a pool in multiples of n (deeper pools last longer but cost more per
# update, on a GPU more than on a CPU), and the bytes of scores or rows that are computed at a time.
_POOL_FACTOR, _BLOCK_MEMORY = (6, 4), (1 << 26, 1 << 30)
# Guards the bounds against float32 rounding of scores, norms and steps.
_ROUNDING = 2e-6
_QUERIES_PER_TASK = 256
# On a GPU, a search for less than this share of the queries includes those that would be due within this
# number of updates.
_FEW, _UPDATES_AHEAD = 0.1, 2.0
_FORBIDDEN = -1e30  # the score of a forbidden key; finite, so that its weight times its score is zero


class Nearest(NamedTuple):
    """What an update needs of the nearest keys."""

    total: torch.Tensor  # per query, the sum of exp(score/τ) over its n nearest keys
    context: torch.Tensor  # per query, the sum of exp(score/τ)·y/‖yW‖ over them
    key: torch.Tensor  # the n nearest keys, unordered
    score: torch.Tensor  # their scores


class Moment(NamedTuple):
    """Queries and keys under the maps of one update."""

    queries: torch.Tensor  # one row per query, in the keys' unmapped space: score = query·key/‖key W‖
    inverse_norm: torch.Tensor  # 1/‖key W‖ of every key
    query_units: torch.Tensor  # the queries' words mapped to unit length: score = query unit·key unit
    key_units: torch.Tensor  # the keys mapped to unit length
    query_step: torch.Tensor  # how far each query unit moved since the last call
    key_step: torch.Tensor  # the furthest that any key unit moved since the last call


class Forbidden(NamedTuple):
    """Keys that a query may not have: those at `keys[starts[i]:starts[i + 1]]` for query i."""

    starts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]

    @property
    def most(self) -> int:
        """The most forbidden keys of one query."""
        return int(np.diff(self.starts).max(initial=0))

    def table(self) -> torch.Tensor:
        """The forbidden keys of each query as rows of equal length, filled up with −1."""
        counts = np.diff(self.starts)
        table = np.full((len(counts), max(1, self.most)), -1, np.int64)
        table[np.arange(table.shape[1]) < counts[:, None]] = self.keys
        return torch.from_numpy(table)


class HardNegatives:
    """The pools of all queries among some unmapped keys, on their device and in their precision.

    Every pool has a row in each of four tensors: `pool`, its keys; `scores`, upper bounds on their scores;
    `outside`, an upper bound on the score of every other key; `level`, a lower bound on the n-th best score.
    `searched` counts the queries that were searched in full so far, `all` has the indices of all queries.
    """

    def __init__(self, keys: torch.Tensor, n: int, temperature: float, forbidden: Forbidden) -> None:
        self.keys, self.temperature = keys.contiguous(), temperature
        self.n = max(1, min(n, len(keys) - forbidden.most))
        self.searched = 0
        self.forbidden = forbidden.table().to(keys.device)
        self.on_gpu = keys.device.type == "cuda"
        self.fused = self.on_gpu and keys.dtype == torch.float32 and find_spec("triton") is not None
        self.memory = _BLOCK_MEMORY[self.on_gpu]
        # How far a product of two unit rows may be off.
        self.error = UNIT_ERROR if self.on_gpu else 2.0**-23 * (keys.shape[1] + 4)
        queries = len(self.forbidden)
        size = max(_POOL_FACTOR[self.on_gpu] * self.n, self.n + forbidden.most + 1)
        self.all = torch.arange(queries, device=keys.device)
        self.pool = torch.zeros(queries, min(len(keys), size), dtype=torch.int64, device=keys.device)
        self.scores = keys.new_zeros(self.pool.shape)
        self.outside = keys.new_full((queries,), torch.inf)
        self.level = keys.new_full((queries,), -torch.inf)
        self.key = torch.zeros(queries, self.n, dtype=torch.int64, device=keys.device)
        self.score = keys.new_zeros(self.key.shape)

    def nearest(self, now: Moment) -> Nearest:
        """The n nearest keys of every query, without its forbidden keys.

        On a CPU, a pool that could serve only if its n-th best score has risen is filled again unscored.
        """
        step = now.query_step + (now.key_step + _ROUNDING)
        self.outside += step
        if self.on_gpu:  # scoring all pools takes less time than choosing some
            due = self.all[~self._decide(now, self.all)]
            if 0 < len(due) < _FEW * len(self.all):  # a few more cost nothing
                soon = _UPDATES_AHEAD * (now.query_step + now.key_step)
                due = self.all[self.level - self.outside <= soon]
        else:
            self.scores += step[:, None]
            promising = ~(self.outside >= self.level)
            self.level -= step
            undecided = ~promising
            undecided[promising] = ~self._decide(now, torch.nonzero(promising)[:, 0])
            due = torch.nonzero(undecided)[:, 0]
        if len(due):
            self.searched += len(due)
            self._search(now, due)
            tied = due[~self._decide(now, due)]
            if len(tied):
                self._search_exactly(now, tied)
        weight = (self.score / self.temperature).exp()
        context = torch.nn.functional.embedding_bag(
            self.key, self.keys, mode="sum", per_sample_weights=weight * now.inverse_norm[self.key]
        )
        return Nearest(weight.sum(1), context, self.key, self.score)

    def _decide(self, now: Moment, wanted: torch.Tensor) -> torch.Tensor:
        """Find the n nearest keys in the pools of the `wanted` queries; whether no other key can be nearer.

        NaN counts as decided, so that the loss shows it.
        """
        if not self.on_gpu and self.keys.dtype == torch.float32:
            from bilex.search.cpu import score_pools

            tensors = now.queries, self.keys, now.inverse_norm, self.pool, self.scores, self.level, wanted
            arrays = [tensor.contiguous().numpy() for tensor in tensors]
            in_threads(len(wanted), lambda start, stop: score_pools(*arrays, start, stop), _QUERIES_PER_TASK)
        elif self.fused and len(wanted):
            from bilex.search import triton_pools

            norms = now.inverse_norm
            triton_pools.score_pools(
                now.queries, self.keys, norms, self.pool, wanted, self.scores, _FORBIDDEN
            )
        else:
            size = self.memory // (self.pool.shape[1] * self.keys.shape[1] * 4)
            in_blocks(len(wanted), size, lambda block: self._score(now, wanted[block]))
        rows = slice(None) if wanted is self.all else wanted
        score, place = self.scores[rows].topk(self.n, dim=1, sorted=False)
        self.score[rows], self.key[rows] = score, self.pool[rows].gather(1, place).clamp_min_(0)
        self.level[rows] = score.amin(1)
        return ~(self.outside[rows] >= self.level[rows])

    def _score(self, now: Moment, part: torch.Tensor) -> None:
        """Score the pools of some queries by torch alone."""
        pool = self.pool[part]
        scores = torch.bmm(self.keys[pool], now.queries[part][:, :, None])[:, :, 0] * now.inverse_norm[pool]
        self.scores[part] = scores.masked_fill_(pool < 0, _FORBIDDEN)

    def _search(self, now: Moment, wanted: torch.Tensor) -> None:
        """Fill the pools of the `wanted` queries from a product with all keys."""
        low = rounded_units if self.on_gpu else torch.Tensor.contiguous
        keys = padded(low(now.key_units))

        def search(block: slice) -> None:
            part = wanted[block]
            scores, rows = best_proposals(
                low(now.query_units[part]), keys, len(self.keys), self.pool.shape[1]
            )
            self._fill(part, rows, scores, self.error)

        with full_sums():
            in_blocks(len(wanted), self.memory // (4 * len(keys)), search)

    def _search_exactly(self, now: Moment, wanted: torch.Tensor) -> None:
        """Fill pools of queries with many equal scores by an exact search; they serve this update only."""
        device = self.keys.device
        found = top_k(now.query_units[wanted], now.key_units, self.pool.shape[1], device=device)
        scores, rows = (torch.from_numpy(part).to(device) for part in found)
        self._fill(wanted, rows, scores, 0.0)
        self._decide(now, wanted)
        self.outside[wanted] = torch.inf

    def _fill(self, part: torch.Tensor, rows: torch.Tensor, scores: torch.Tensor, error: float) -> None:
        """Make the best keys of some queries their pools; scores may be off by `error`."""
        error += _ROUNDING
        whole = self.pool.shape[1] == len(self.keys)
        self.outside[part] = -torch.inf if whole else scores.amin(1).to(self.outside.dtype) + error
        barred = (rows[:, :, None] == self.forbidden[part][:, None, :]).any(2)
        scores = scores.to(self.scores.dtype).masked_fill(barred, _FORBIDDEN) + error
        self.pool[part], self.scores[part] = rows.masked_fill(barred, -1), scores
        self.level[part] = scores.topk(self.n, dim=1, sorted=False).values.amin(1) - 2 * error


def to_units(
    image: torch.Tensor, previous: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """1/length of mapped rows, the unit rows in their place, and how far each lies from its previous one."""
    inverse = image.norm(dim=1).clamp_min_(1e-37).reciprocal_()
    image.mul_(inverse[:, None])
    step = torch.zeros_like(inverse) if previous is None else (image - previous).norm(dim=1)
    return inverse, image, step
