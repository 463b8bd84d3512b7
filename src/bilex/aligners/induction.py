"""Finding word pairs in a common space: the dictionary augmentation of C1 and C2, and confident pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from bilex.aligners.base import Pairs
from bilex.search import mean_of_best, neighbourhoods, top_k
from bilex.search.search import AnyRows, Floats

# Confident pairs are found among this number of words per language.
_FREQUENT = 20_000
# Words of identical spelling are confirmed if they are among each other's best answers.
_CONFIRMING = 5
# Penalty on the logarithm of a word's rank: several forms of one word are about equally near, and
# dictionaries mostly list the most frequent one.
_RANK_WEIGHT, _FIRST_RANKS = 0.05, 100


class Induced(NamedTuple):
    """Word pairs found in both directions, each list sorted by falling score.

    `forward` holds a pair for each frequent source word, `backward` one for each frequent target word;
    in both, a row is (source row, target row).
    """

    forward: Pairs
    backward: Pairs


def induce_pairs(
    source: AnyRows,
    target: AnyRows,
    *,
    frequent: int,
    keep: int,
    k: int = 10,
    full_csls: bool = False,
    device: str | torch.device = "auto",
) -> Induced:
    """The most confident translations of the frequent words, both ways.

    Each of the `frequent` first words of a language takes its best partner in the *whole* other
    vocabulary; the `keep` highest-scored pairs of each direction are returned. The score is half CSLS,
    2·cos(x, y) − r(y), which leaves the query word's own term r(x) out, as the authors' program does; with
    `full_csls`, r(x) is subtracted before pairs are ranked.
    """
    source_mean, target_mean = neighbourhoods(source, target, k, device=device)

    def best(query_side: AnyRows, key_side: AnyRows, own: Floats, other: Floats) -> tuple[Pairs, Pairs]:
        scores, rows = top_k(query_side[:frequent], key_side, 1, key_penalty=other, device=device)
        ranked = scores[:, 0] - own[:frequent] if full_csls else scores[:, 0]
        order = np.argsort(-ranked, kind="stable")[:keep]
        return order, rows[order, 0]

    queries, answers = best(source, target, source_mean, target_mean)
    forward = np.stack([queries, answers], axis=1)
    queries, answers = best(target, source, target_mean, source_mean)
    return Induced(forward, np.stack([answers, queries], axis=1))


def augmentation(induced: Induced, seeds: Pairs) -> Pairs:
    """D_add: both directions' pairs, each once, none with a word that a seed pair already translates.

    The order is that of the forward list, then what the backward list adds.
    """
    both = np.concatenate([induced.forward, induced.backward])
    _, first = np.unique(both, axis=0, return_index=True)
    return without_words_of(both[np.sort(first)], seeds)


def without_words_of(pairs: Pairs, seeds: Pairs) -> Pairs:
    """The pairs whose source is no seed source and whose target is no seed target."""
    fresh = ~np.isin(pairs[:, 0], seeds[:, 0]) & ~np.isin(pairs[:, 1], seeds[:, 1])
    return pairs[fresh]


def without_pairs(pairs: Pairs, rejected: Pairs) -> Pairs:
    """The pairs that are not rejected, in order."""
    wrong = set(map(tuple, rejected.tolist()))
    if not wrong:
        return pairs
    return pairs[[tuple(pair) not in wrong for pair in pairs.tolist()]]


def confident_pairs(
    source: AnyRows,
    target: AnyRows,
    spelled: Pairs,
    *,
    words: int | None = None,
    k: int = 10,
    device: str | torch.device = "auto",
) -> tuple[Pairs, Pairs]:
    """Pairs that can serve as seeds, among at most 20,000 frequent words per language.

    Returns those of `spelled` whose words are among each other's five best answers by CSLS, and the words
    that are each other's best answer, most confident first.
    """
    frequent = _FREQUENT if words is None else min(words, _FREQUENT)
    x, y = source[:frequent], target[:frequent]
    r_x, r_y = mean_of_best(x, target, k, device=device), mean_of_best(y, source, k, device=device)
    spelled = spelled[(spelled < frequent).all(axis=1)]
    if len(spelled):
        _, forward = top_k(x[spelled[:, 0]], y, _CONFIRMING, key_penalty=r_y, device=device)
        _, backward = top_k(y[spelled[:, 1]], x, _CONFIRMING, key_penalty=r_x, device=device)
        near = (forward == spelled[:, 1:]).any(axis=1) & (backward == spelled[:, :1]).any(axis=1)
        spelled = spelled[near]
    penalty_x, penalty_y = _with_rank(r_x), _with_rank(r_y)
    scores, partners = top_k(x, y, 1, key_penalty=penalty_y, device=device)
    _, back = top_k(y, x, 1, key_penalty=penalty_x, device=device)
    rows = np.arange(len(partners))
    mutual = back[partners[:, 0], 0] == rows
    order = np.argsort(-(scores[:, 0] - penalty_x)[mutual], kind="stable")
    found: Pairs = np.stack([rows, partners[:, 0]], axis=1)[mutual][order]
    return spelled, found


def _with_rank(mean: Floats) -> Floats:
    """The penalty of each word: its mean similarity to its neighbours, and how rare it is."""
    rare = _RANK_WEIGHT * np.log(_FIRST_RANKS + np.arange(len(mean)))
    return np.asarray(mean + rare, np.float32)
