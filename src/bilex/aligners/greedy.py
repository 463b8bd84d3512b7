"""Pairing words one to one, most similar first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bilex.aligners.base import Pairs
from bilex.aligners.maps import Array
from bilex.similarity import top_k

Scores = npt.NDArray[np.float32]


def greedy_matching(source: Array, target: Array, most: int, *, device: str = "auto") -> tuple[Pairs, Scores]:
    """Take the most similar pair of rows, strike out both, and so on.

    Two rows that are each other's best among those left would be taken by the greedy rule sooner or
    later, whatever else is taken before. So in each round all such pairs are taken at once, until no
    pair that is left can be among the `most` best.

    Args:
        source: Source rows; similarity is the dot product.
        target: Target rows.
        most: How many pairs are wanted.
        device: "auto", "cpu" or "cuda".

    Returns:
        At most `most` (source row, target row) pairs by falling score, and their scores.
    """
    left, right = np.arange(len(source)), np.arange(len(target))
    pairs, scores = np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    while len(left) and len(right):
        score, best = top_k(source[left], target[right], 1, device=device)
        if len(scores) >= most and score.max() <= scores[most - 1]:
            break
        _, back = top_k(target[right], source[left], 1, device=device)
        mutual = back[best[:, 0], 0] == np.arange(len(left))
        if not mutual.any():
            break
        pairs = np.concatenate([pairs, np.stack([left[mutual], right[best[mutual, 0]]], axis=1)])
        scores = np.concatenate([scores, score[mutual, 0]])
        order = np.argsort(-scores, kind="stable")
        pairs, scores = pairs[order], scores[order]
        right = np.delete(right, best[mutual, 0])
        left = left[~mutual]
    return pairs[:most], scores[:most]
