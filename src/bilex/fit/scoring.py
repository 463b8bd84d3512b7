"""How well held-out pairs are translated, word by word, so that any part of the words can be averaged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bilex.aligners.base import Pairs
from bilex.search import csls_top_k, neighbourhoods

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_ANSWERS = 10


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

    def mean(self, pairs: Pairs | None = None) -> float:
        """The mean of both directions over the words of `pairs`, or of all."""
        if pairs is None:
            return float((self.forward.mean() + self.backward.mean()) / 2)
        forward = self.forward[np.isin(self.sources, pairs[:, 0])]
        backward = self.backward[np.isin(self.targets, pairs[:, 1])]
        return float((forward.mean() + backward.mean()) / 2)


def word_scores(source: Floats, target: Floats, pairs: Pairs, device: str = "auto") -> WordScores:
    """The scores of the words of `pairs` in a space.

    Args:
        source: Source vectors in the common space, unit rows.
        target: Target vectors likewise.
        pairs: Pairs that the space was made without, as rows.
        device: "auto", "cpu" or "cuda".
    """
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
