"""Held-out pairs in two halves that share no word, for cross-fitting."""

from __future__ import annotations

import numpy as np

from bilex.lexicon import Lexicon


def halves(lexicon: Lexicon, seed: int) -> tuple[Lexicon, Lexicon]:
    """Cut a list in two parts of about equal size without a word in common.

    Words that pairs connect stay together: pairs with a common source or target word are in one half.

    Args:
        lexicon: The pairs.
        seed: Fixes the draw.
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
