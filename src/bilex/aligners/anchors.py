"""Which of the pairs that C1 has found without seeds may stand in the place of seeds."""

from __future__ import annotations

import numpy as np
import torch

from bilex.aligners.base import Pairs
from bilex.search import neighbourhoods, top_k
from bilex.search.search import AnyRows, Floats

# Words of each language that are looked at, at most.
_FREQUENT = 20_000
# What the logarithm of a word's rank counts against it. Several forms of one word are about equally near, and
# dictionaries list the one that is mostly the most frequent.
_RANK_WEIGHT = 0.05
_FIRST_RANKS = 100


def surest_pairs(
    source: AnyRows,
    target: AnyRows,
    *,
    words: int | None = None,
    k: int = 10,
    device: str | torch.device = "auto",
) -> Pairs:
    """Frequent words that are each other's best partner, the surest first.

    Args:
        source: Source vectors in the common space, unit rows, most frequent first.
        target: Target vectors likewise.
        words: Partners are looked for among so many words of each language; None, or more, for 20,000.
        k: Neighbours in CSLS.
        device: "auto", "cpu" or "cuda".
    """
    means = neighbourhoods(source, target, k, device=device)
    frequent = _FREQUENT if words is None else min(words, _FREQUENT)
    x, y = source[:frequent], target[:frequent]
    against_x, against_y = (_against(mean[:frequent]) for mean in means)
    scores, partners = top_k(x, y, 1, key_penalty=against_y, device=device)
    _, back = top_k(y, x, 1, key_penalty=against_x, device=device)
    rows = np.arange(len(partners))
    mutual = back[partners[:, 0], 0] == rows
    order = np.argsort(-(scores[:, 0] - against_x)[mutual], kind="stable")
    found: Pairs = np.stack([rows, partners[:, 0]], axis=1)[mutual][order]
    return found


def _against(mean: Floats) -> Floats:
    """What is taken off the similarity of each word: its neighbourhood, and how rare it is."""
    rare = _RANK_WEIGHT * np.log(_FIRST_RANKS + np.arange(len(mean)))
    return np.asarray(mean + rare, np.float32)
