"""Pairing words one to one, most similar first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.maps import Array
from bilex.core.device import resolve_device
from bilex.search import top_k
from bilex.search.search import placed

Scores = npt.NDArray[np.float32]


def greedy_matching(source: Array, target: Array, most: int, *, device: str = "auto") -> tuple[Pairs, Scores]:
    """Take the most similar pair of rows, strike out both, and so on.

    Two rows that are each other's best among those left would be taken by the greedy rule sooner or
    later, whatever else is taken before. So in each round all such pairs are taken at once, until no
    pair that is left can be among the `most` best; and only rows whose best partner was taken look for
    another.

    Args:
        source: Source rows; similarity is the dot product.
        target: Target rows.
        most: How many pairs are wanted.
        device: "auto", "cpu" or "cuda".

    Returns:
        At most `most` (source row, target row) pairs by falling score, and their scores.
    """
    where = resolve_device(device)
    left, right = _Side(placed(source, where)), _Side(placed(target, where))
    pairs, scores = np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    while left.free.any() and right.free.any():
        left.look(right)
        free = np.flatnonzero(left.free)
        if len(scores) >= most and left.score[free].max() <= scores[most - 1]:
            break
        right.look(left)
        mutual = free[right.best[left.best[free]] == free]
        if not len(mutual):
            break
        pairs = np.concatenate([pairs, np.stack([mutual, left.best[mutual]], axis=1)])
        scores = np.concatenate([scores, left.score[mutual]])
        order = np.argsort(-scores, kind="stable")
        pairs, scores = pairs[order], scores[order]
        left.free[mutual] = right.free[left.best[mutual]] = False
    return pairs[:most], scores[:most]


class _Side:
    """One side's rows: which are still free, and the best partner of each among the other's free rows."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows
        self.free = np.ones(len(rows), bool)
        self.best = np.full(len(rows), -1)
        self.score = np.zeros(len(rows), np.float32)

    def look(self, other: _Side) -> None:
        """Give every free row without a free partner the best one that is left."""
        needed = np.flatnonzero(self.free & ((self.best < 0) | ~other.free[self.best]))
        partners = np.flatnonzero(other.free)
        score, best = top_k(self.rows[needed], other.rows[partners], 1, device=self.rows.device)
        self.best[needed], self.score[needed] = partners[best[:, 0]], score[:, 0]
