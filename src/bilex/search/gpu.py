"""Exact top-k and random matching on a GPU: bfloat16 products propose scores, float64 decides.

A strip of queries meets all keys in one product. The k best keys of a query lie in the k groups of keys with
the highest maxima, so only group maxima are ranked; the best groups' proposals are ranked in turn, and the
leading ones are scored again in float64. A row whose last proposal could still hide a better key behind it
(by the measured rounding errors) is searched again with twice as many.
"""

from __future__ import annotations

import torch

from bilex.core.device import in_blocks
from bilex.search.low_precision import bfloat16

_GROUP = 16
_FEWEST_ROWS = 256
_STRIP = 1 << 26  # scores that are penalised and hidden at a time


class GpuSearch:
    """Keys prepared once for any number of searches; see `bilex.search.KeySearch`."""

    def __init__(self, keys: torch.Tensor, penalty: torch.Tensor | None) -> None:
        self.keys, self.scale = keys, 1.0 if penalty is None else 2.0
        extra = None
        if penalty is not None:
            high = penalty.to(torch.bfloat16).float()
            extra = torch.stack([high, penalty - high], 1)
        rounded = bfloat16.operand(keys, extra, 1.0)
        self.right = rounded._replace(rows=padded(rounded.rows))
        self.shift = torch.zeros(len(keys), device=keys.device) if penalty is None else -penalty

    def top_k(self, queries: torch.Tensor, k: int, memory: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Exact top-k of some queries, in strips that fit the memory."""
        extra = None if self.scale == 1 else -torch.ones(len(queries), 2, device=queries.device)
        left = bfloat16.operand(queries, extra, self.scale)
        bound = bfloat16.error_bound(left, self.right)
        scores = torch.empty(len(queries), k, device=queries.device)
        rows = torch.empty(len(queries), k, dtype=torch.int64, device=queries.device)
        wanted, count = torch.arange(len(queries), device=queries.device), k + max(22, k // 2)
        undecided: list[torch.Tensor] = []

        def search(block: slice) -> None:
            """Write the k best of the `count` best proposals of some wanted queries."""
            part = wanted[block]
            proposed, candidates = best_proposals(left.rows[part], self.right.rows, len(self.keys), count)
            worst, candidates = proposed.amin(1).float(), candidates.sort(dim=1).values
            exact = torch.einsum("qd,qcd->qc", queries[part].double(), self.keys[candidates].double())
            exact = (exact * self.scale + self.shift[candidates].double()).float()
            exact, order = exact.sort(dim=1, descending=True, stable=True)
            scores[part], rows[part] = exact[:, :k], candidates.gather(1, order[:, :k])
            sure = (exact[:, k - 1] > worst + bound[part]) | (count == len(self.keys))
            undecided.append(part[~sure])

        with bfloat16.full_sums():
            while len(wanted):
                count = min(count, len(self.keys))
                cost = len(self.right.rows) * 2 + count * (_GROUP * 16 + self.keys.shape[1] * 12)
                in_blocks(len(wanted), memory // cost, search)
                wanted, count = torch.cat(undecided), 2 * count
                undecided.clear()
        return scores, rows


def best_proposals(
    queries: torch.Tensor, keys: torch.Tensor, key_count: int, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` best scores of each query and their keys; `keys` are `padded`, `key_count` are real."""
    block = queries @ keys.T
    block[:, key_count:] = -torch.inf
    return k_best(block, count)


def padded(keys: torch.Tensor) -> torch.Tensor:
    """Key rows with zero rows behind them up to a multiple of the group size."""
    padding = -len(keys) % _GROUP
    return torch.nn.functional.pad(keys, (0, 0, 0, padding)) if padding else keys


def k_best(scores: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k highest scores of each row and their columns, in no order.

    Group g holds the columns g, g + width, g + 2·width, ...: maxima over them read memory in order. Columns
    beyond the last whole group are ranked with the members of the best groups.
    """
    width = scores.shape[1] // _GROUP
    if width <= k:
        return scores.topk(k, dim=1, sorted=False)
    grouped = _GROUP * width
    groups = torch.unflatten(scores[:, :grouped], 1, (_GROUP, width))
    best = groups.amax(1).topk(k, dim=1, sorted=False).indices
    members = groups.gather(2, best[:, None].expand(-1, _GROUP, -1)).flatten(1)
    values, places = torch.cat([members, scores[:, grouped:]], dim=1).topk(k, dim=1, sorted=False)
    in_groups = best.gather(1, places % k) + places // k * width
    return values, torch.where(places < _GROUP * k, in_groups, places + grouped - _GROUP * k)


def match(
    x: torch.Tensor, y: torch.Tensor, k: int, keep: float, seed: int, memory: int
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Forward partners, backward partners and the objective; see `bilex.search.matching.StochasticMatcher`.

    On a GPU a random number for each score costs little; what counts is how often scores are read and
    written. Scores that do not fit into `memory` are computed twice.
    """
    if keep < 1:
        x, y = bfloat16.rounded_units(x), bfloat16.rounded_units(y)
    n, m, device = len(x), len(y), x.device
    random = torch.Generator(device).manual_seed(seed)
    height = min(n, max(_FEWEST_ROWS, memory // (4 * m)))
    buffer = torch.empty(height, m, dtype=x.dtype, device=device)
    starts = range(0, n, height)

    def products(start: int) -> torch.Tensor:
        return torch.mm(x[start : start + height], y.T, out=buffer[: n - start])

    def hide(scores: torch.Tensor) -> torch.Tensor:
        """Set each score to zero with probability 1 − keep, in place."""
        if keep >= 1:
            return scores
        kept = torch.empty(scores.shape, dtype=torch.bool, device=device)
        return scores.mul_(kept.bernoulli_(keep, generator=random))

    of_rows, of_columns = torch.empty(n, min(k, m), device=device), torch.empty(m, 0, device=device)
    forward = torch.empty(n, dtype=torch.int64, device=device)
    backward = torch.zeros(m, dtype=torch.int64, device=device)
    backward_score = torch.full((m,), -torch.inf, device=device)
    with bfloat16.full_sums():
        for start in starts:
            block = products(start)
            of_rows[start : start + height] = k_best(block, min(k, m))[0]
            highest = torch.cat([of_columns, k_best(block.T, min(k, len(block)))[0]], dim=1)
            of_columns = highest.topk(min(k, highest.shape[1]), dim=1, sorted=False).values
        row_penalty, column_penalty = of_rows.mean(dim=1) / 2, of_columns.mean(dim=1) / 2
        for start in starts:
            block = buffer if len(starts) == 1 else products(start)
            step = max(1, _STRIP // m)
            for first in range(0, len(block), step):
                part, at = block[first : first + step], start + first
                forward[at : at + len(part)] = hide(part - column_penalty).argmax(dim=1)
                score, row = hide(part - row_penalty[at : at + len(part), None]).max(dim=0)
                backward = torch.where(score > backward_score, row + at, backward)
                backward_score = torch.maximum(score, backward_score)
    best = of_rows.amax(dim=1).double().mean() + of_columns.amax(dim=1).double().mean()
    return forward, backward, float(best) / 2
