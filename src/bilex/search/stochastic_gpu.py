"""The GPU side of `bilex.search.stochastic`: one product, from which everything else is read.

On a GPU a random number for each score costs little, and what counts is how often the scores are read and
written. The k best of a line of scores lie in the k groups with the highest maxima, so one pass reduces the
scores to group maxima, and only the best groups are looked at again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from bilex.search.gpu import full_sums, rounded_units

if TYPE_CHECKING:
    from bilex.search.stochastic import ScoreBlocks

_GROUP = 16
_STRIP = 1 << 26
"""Scores that are penalised and hidden at a time."""


def k_highest(scores: torch.Tensor, k: int, dim: int) -> torch.Tensor:
    """The k highest scores of each column (dim 0) or of each row (dim 1), one line each, in no order."""
    width = scores.shape[dim] // _GROUP
    if width <= k:
        return scores.movedim(dim, 1).topk(k, dim=1, sorted=False).values
    # Group g holds the places g, g + width, g + 2·width, ...: maxima over them read memory in order.
    groups = torch.unflatten(scores.narrow(dim, 0, _GROUP * width), dim, (_GROUP, width))
    best = groups.amax(dim).movedim(dim, 1).contiguous()
    chosen = best.topk(k, dim=1, sorted=False).indices[:, None].expand(-1, _GROUP, -1)
    lines = groups.movedim(2, 0) if dim == 0 else groups
    rest = scores.narrow(dim, _GROUP * width, scores.shape[dim] - _GROUP * width).movedim(dim, 1)
    return torch.cat([lines.gather(2, chosen).flatten(1), rest], dim=1).topk(k, dim=1, sorted=False).values


class GpuMatching:
    """One matching of two sets of rows; see `StochasticMatcher`.

    Args:
        x: Source rows.
        y: Target rows.
        k: Neighbours in CSLS's terms.
        keep: The probability that a score is kept.
        key: Where the random numbers start.
    """

    def __init__(self, x: torch.Tensor, y: torch.Tensor, k: int, keep: float, key: int) -> None:
        n, m = len(x), len(y)
        self.x, self.y = (x, y) if keep >= 1 else (rounded_units(x), rounded_units(y))
        self.k, self.keep = k, keep
        self.random = torch.Generator(x.device).manual_seed(key)
        self.of_rows = torch.empty(n, min(k, m), device=x.device)
        self.of_columns = torch.empty(m, 0, device=x.device)
        self.forward = torch.empty(n, dtype=torch.int64, device=x.device)
        self.backward = torch.zeros(m, dtype=torch.int64, device=x.device)
        self.backward_score = torch.full((m,), -torch.inf, device=x.device)

    def run(self, blocks: ScoreBlocks) -> tuple[torch.Tensor, torch.Tensor, float]:
        """Forward partners, backward partners and the objective."""
        with full_sums():
            for start, room in blocks.rooms(self.x, self.y):
                self._rank(start, self._multiply(start, room))
            row_penalty, column_penalty = self.of_rows.mean(dim=1) / 2, self.of_columns.mean(dim=1) / 2
            for start, room in blocks.rooms(self.x, self.y):
                block = room if blocks.hold_all(self.x) else self._multiply(start, room)
                step = max(1, _STRIP // len(self.y))
                for first in range(0, len(block), step):
                    part = block[first : first + step]
                    own = row_penalty[start + first : start + first + len(part)]
                    self._match(start + first, part, own, column_penalty)
        best = self.of_rows.amax(dim=1).double().mean() + self.of_columns.amax(dim=1).double().mean()
        return self.forward, self.backward, float(best) / 2

    def _multiply(self, start: int, room: torch.Tensor) -> torch.Tensor:
        return torch.mm(self.x[start : start + len(room)], self.y.T, out=room)

    def _rank(self, start: int, block: torch.Tensor) -> None:
        """Take a block into the k highest scores of rows and columns."""
        n, m = len(self.x), len(self.y)
        self.of_rows[start : start + len(block)] = k_highest(block, min(self.k, m), 1)
        highest = torch.cat([self.of_columns, k_highest(block, min(self.k, len(block)), 0)], dim=1)
        whole = highest.shape[1] <= min(self.k, n)
        self.of_columns = highest if whole else highest.topk(min(self.k, n), dim=1, sorted=False).values

    def _match(self, start: int, part: torch.Tensor, own: torch.Tensor, of_columns: torch.Tensor) -> None:
        """Take some rows' scores into the best partners, given the penalties of both sides."""
        self.forward[start : start + len(part)] = self._hide(part - of_columns).argmax(dim=1)
        score, row = self._hide(part - own[:, None]).max(dim=0)
        self.backward = torch.where(score > self.backward_score, row + start, self.backward)
        self.backward_score = torch.maximum(score, self.backward_score)

    def _hide(self, scores: torch.Tensor) -> torch.Tensor:
        """Scores with each set to zero with probability 1 − keep, in place."""
        if self.keep >= 1:
            return scores
        kept = torch.empty(scores.shape, dtype=torch.bool, device=scores.device)
        return scores.mul_(kept.bernoulli_(self.keep, generator=self.random))
