"""Telling, without gold pairs, whether two languages were really brought together.

Self-learning always ends in a map under which many words are each other's best partner: it chose the
partners so. English and Russian that were wrongly matched agree as well as English and Russian that
were rightly matched (49 % of 4,000 words each). What tells them apart is whether a part of the pairs
foretells the rest: a rotation learned from few of them finds the others again only if there is a true
common structure (40 % against 13 % there; 82 % for English and French).
"""

from __future__ import annotations

import numpy as np
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.procrustes import common_rotations
from bilex.similarity.stochastic import StochasticMatcher

COLLAPSED = 0.25
"""Below this share of recovered pairs the languages were most likely not brought together."""

_WORDS = 4000
_SPLITS = 3


def rotation(x: torch.Tensor, y: torch.Tensor, pairs: Pairs) -> torch.Tensor:
    """The orthogonal map of a dictionary from the source onto the target.

    Where the dimensions differ, it leads onto the directions that the two have in common; in both cases
    xWyᵀ are the similarities of VecMap, which turns both sides by half of it.
    """
    left, right = torch.from_numpy(np.ascontiguousarray(pairs.T)).to(x.device)
    covariance = x[left].T @ y[right]
    u, _, v = common_rotations(covariance.double().cpu().numpy())
    return torch.from_numpy((u @ v.T).astype(np.float32)).to(x.device)


def recovered_share(x: torch.Tensor, y: torch.Tensor, pairs: Pairs, *, k: int = 10, seed: int = 0) -> float:
    """The share of mutual best partners that a rotation learned from a few other ones finds again.

    Among the 4,000 most frequent words of each language, the pairs that are each other's best by CSLS
    under the map of `pairs` are split at random: as many as there are dimensions (at most half) to
    learn a rotation from, the others to be found again. The mean over three splits is returned.

    Args:
        x: Source rows, most frequent first, on the device that is to be used.
        y: Target rows likewise.
        pairs: The dictionary to be judged.
        k: Neighbours in CSLS.
        seed: Of the splits.

    Returns:
        From 0 to 1; 0 if hardly any words are each other's best partner.
    """
    turn = rotation(x, y, pairs)
    x, y = x[:_WORDS], y[:_WORDS]
    match = StochasticMatcher(k, device=x.device)
    found = match(x @ turn, y, 1.0)
    words = np.flatnonzero(found.backward[found.forward] == np.arange(len(x)))
    learned = min(max(x.shape[1], y.shape[1]), len(words) // 2)
    if learned < 2:
        return 0.0
    random = np.random.default_rng(seed)
    shares = []
    for _ in range(_SPLITS):
        order = random.permutation(words)
        turn = rotation(x, y, np.stack([order[:learned], found.forward[order[:learned]]], axis=1))
        again, rest = match(x @ turn, y, 1.0), order[learned:]
        shares.append(float((again.forward[rest] == found.forward[rest]).mean()))
    return float(np.mean(shares))
