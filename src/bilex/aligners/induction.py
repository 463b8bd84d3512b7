"""Finding new word pairs in a common space: the dictionary augmentation of C1 and C2."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bilex.aligners.base import Pairs
from bilex.similarity import neighbourhoods, top_k
from bilex.similarity.search import Floats


class Induced(NamedTuple):
    """Word pairs found in both directions, each list sorted by falling half-CSLS score.

    `forward` holds one pair for each frequent source word, `backward` one for each frequent target
    word; in both, a row is (source row, target row).
    """

    forward: Pairs
    backward: Pairs


def induce_pairs(
    source: Floats, target: Floats, *, frequent: int, keep: int, k: int = 10, device: str = "auto"
) -> Induced:
    """The most confident translations of the frequent words, both ways.

    Each of the `frequent` first words of a language takes its best partner in the *whole* other
    vocabulary by half CSLS, 2·cos(x, y) − r(y); the `keep` highest-scored pairs are returned. The
    query's own term r(x) is left out, as in the authors' program.

    Args:
        source: Source vectors in the common space, unit rows, most frequent first.
        target: Target vectors likewise.
        frequent: How many of the first words of each language ask (N_freq).
        keep: How many pairs are kept in each direction (N_aug).
        k: Neighbours in r.
        device: "auto", "cpu" or "cuda".
    """
    source_mean, target_mean = neighbourhoods(source, target, k, device=device)
    forward_scores, forward = top_k(source[:frequent], target, 1, key_penalty=target_mean, device=device)
    backward_scores, backward = top_k(target[:frequent], source, 1, key_penalty=source_mean, device=device)
    best = np.argsort(-forward_scores[:, 0], kind="stable")[:keep]
    forward_pairs = np.stack([best, forward[best, 0]], axis=1)
    best = np.argsort(-backward_scores[:, 0], kind="stable")[:keep]
    backward_pairs = np.stack([backward[best, 0], best], axis=1)
    return Induced(forward_pairs, backward_pairs)


def without_words_of(pairs: Pairs, seeds: Pairs) -> Pairs:
    """The pairs whose source is no seed source and whose target is no seed target."""
    fresh = ~np.isin(pairs[:, 0], seeds[:, 0]) & ~np.isin(pairs[:, 1], seeds[:, 1])
    return pairs[fresh]
