"""Held-out seeds: which are held out, how well they are translated, and how they are cut in halves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bilex.aligners.base import Pairs
from bilex.lexicon import Lexicon
from bilex.search import csls_top_k, neighbourhoods

# With fewer seed words than this nothing is held out.
FEWEST_SEEDS = 100
# At least so many words are held out, but never more than this share of the seeds.
HELD_OUT_AT_LEAST, HELD_OUT_AT_MOST = 200, 0.2
_ANSWERS = 10

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.float64]


def hold_out(lexicon: Lexicon, share: float, seed: int) -> tuple[Lexicon, Lexicon] | None:
    """Cut the seeds at random into those to learn from and those to judge by, which share no word.

    At least 200 source words are held out, but at most a fifth; None where there are too few.
    """
    words = len(lexicon.translations())
    if words < FEWEST_SEEDS:
        return None
    count = max(round(share * words), min(HELD_OUT_AT_LEAST, int(HELD_OUT_AT_MOST * words)))
    return lexicon.split(count, seed)


@dataclass(frozen=True, eq=False)
class WordScores:
    """The reciprocal rank of the best right answer of every word of some pairs, by CSLS, among ten answers.

    Attributes:
        sources: Rows of the source words.
        forward: Their scores.
        targets: Rows of the target words.
        backward: Their scores.
    """

    sources: npt.NDArray[np.int64]
    forward: Numbers
    targets: npt.NDArray[np.int64]
    backward: Numbers

    def of(self, pairs: Pairs | None) -> tuple[Numbers, Numbers]:
        """The scores of the words of `pairs`, or of all, forward and backward."""
        if pairs is None:
            return self.forward, self.backward
        forward = self.forward[np.isin(self.sources, pairs[:, 0])]
        return forward, self.backward[np.isin(self.targets, pairs[:, 1])]

    def mean(self, pairs: Pairs | None = None) -> float:
        """The mean of both directions over the words of `pairs`, or of all."""
        forward, backward = self.of(pairs)
        return float((forward.mean() + backward.mean()) / 2)


def word_scores(source: Floats, target: Floats, pairs: Pairs, device: str = "auto") -> WordScores:
    """The scores of the words of `pairs` in a space."""
    r_source, r_target = neighbourhoods(source, target, _ANSWERS, device=device)
    sources, forward = _one_way(source, target, r_source, r_target, pairs, device)
    targets, backward = _one_way(target, source, r_target, r_source, pairs[:, ::-1], device)
    return WordScores(sources, forward, targets, backward)


def _one_way(
    queries: Floats, keys: Floats, r_queries: Floats, r_keys: Floats, pairs: Pairs, device: str
) -> tuple[npt.NDArray[np.int64], Numbers]:
    asked, place = np.unique(pairs[:, 0], return_inverse=True)
    place = place.reshape(-1)
    _, answers = csls_top_k(
        np.ascontiguousarray(queries[asked]),
        keys,
        _ANSWERS,
        query_mean=r_queries[asked],
        key_mean=r_keys,
        device=device,
    )
    hits = answers[place] == pairs[:, 1:]
    reciprocal = np.where(hits.any(axis=1), 1 / (1 + hits.argmax(axis=1)), 0)
    best = np.zeros(len(asked))
    np.maximum.at(best, place, reciprocal)
    return asked, best


def halves(lexicon: Lexicon, seed: int) -> tuple[Lexicon, Lexicon]:
    """Cut a list in two parts of about equal size without a word in common.

    Words that pairs connect stay together: pairs with a common source or target word are in one half.
    """
    if not len(lexicon):
        return lexicon, lexicon
    group = _groups(lexicon)
    order = np.random.default_rng(seed).permutation(group.max() + 1)
    sizes = np.bincount(group)[order]
    before = np.cumsum(sizes) - sizes  # pairs in the groups drawn so far
    first = set(order[before < len(lexicon) / 2].tolist())
    parts: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    for pair, number in zip(lexicon.pairs, group.tolist(), strict=True):
        parts[number not in first].append(pair)
    return Lexicon(parts[0], lexicon.name), Lexicon(parts[1], lexicon.name)


def _groups(lexicon: Lexicon) -> np.ndarray:
    """For each pair the number of its group of connected words."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sources = {word: row for row, word in enumerate(dict.fromkeys(a for a, _ in lexicon.pairs))}
    targets = {word: row for row, word in enumerate(dict.fromkeys(b for _, b in lexicon.pairs))}
    rows = np.array([sources[a] for a, _ in lexicon.pairs])
    columns = np.array([targets[b] for _, b in lexicon.pairs]) + len(sources)
    size = len(sources) + len(targets)
    graph = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(size, size))
    labels: np.ndarray = connected_components(graph, directed=False)[1]
    return np.unique(labels[rows], return_inverse=True)[1].reshape(-1)
