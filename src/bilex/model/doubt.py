"""Seeds that a model finds unlikely: wrong ones are found so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bilex.model.translator import Translator


@dataclass(frozen=True)
class DoubtfulSeed:
    """A seed pair, its CSLS score, and the answers that the model itself would give to its two words."""

    source: str
    target: str
    score: float
    own_target: str
    own_source: str


def doubtful_seeds(translator: Translator, count: int = 20) -> list[DoubtfulSeed]:
    """The seed pairs whose two words are least alike to the model, the least likely first.

    A pair that either word's own first answer agrees with is never doubtful. The model learned from its
    seeds, wrong ones included, so a doubtful seed is one that all the others speak against.

    Args:
        translator: The model.
        count: How many at most.
    """
    space = translator.space
    pairs = translator.seeds.index(space.source.key_to_index, space.target.key_to_index)
    pairs = np.unique(pairs, axis=0)
    if not len(pairs):
        return []
    scores = space.scores(pairs[:, 0], pairs[:, 1])
    forward = space.search(pairs[:, 0], 1, direction="forward")[1][:, 0]
    backward = space.search(pairs[:, 1], 1, direction="backward")[1][:, 0]
    disputed = np.flatnonzero((forward != pairs[:, 1]) & (backward != pairs[:, 0]))
    order = disputed[np.argsort(scores[disputed], kind="stable")][:count]
    words, answers = space.source.index_to_key, space.target.index_to_key
    return [
        DoubtfulSeed(
            words[pairs[row, 0]],
            answers[pairs[row, 1]],
            float(scores[row]),
            answers[forward[row]],
            words[backward[row]],
        )
        for row in order
    ]
