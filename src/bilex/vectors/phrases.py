"""Phrases of several words: found as units of a vocabulary, else composed of their words' vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

_BETWEEN_WORDS = re.compile(r"[\s_]+")
_JOINERS = (" ", "_", "-")
# The constant of smooth inverse frequency; words more frequent than this share count less.
_SMOOTHING = 1e-3
_EULER = 0.5772156649


def words_of(text: str) -> list[str]:
    """The words of a phrase, divided by spaces or underscores."""
    return [word for word in _BETWEEN_WORDS.split(text) if word]


def is_phrase(text: str) -> bool:
    """Whether a text has more than one word."""
    return len(words_of(text)) > 1


def unit_of(text: str, vocabulary: Mapping[str, int]) -> str | None:
    """How a vocabulary spells a word or a phrase; None if it is not there.

    "new york" is found as "new york", "new_york" or "new-york", in this order.
    """
    if text in vocabulary:
        return text
    words = words_of(text)
    if len(words) < 2:
        return None
    return next((unit for joiner in _JOINERS if (unit := joiner.join(words)) in vocabulary), None)


def composing_weights(rows: Sequence[int], words: int) -> npt.NDArray[np.float32]:
    """The weight of each word of a phrase: smooth inverse frequency, with Zipf's law for the frequency.

    A word of rank r among V words makes up about p = 1 / (r · (ln V + 0.577)) of a text, and weighs
    a / (a + p) with a = 0.001: function words count little, rare words fully. `rows` are those of the
    phrase's words, row 0 being the most frequent of the `words` of the vocabulary.
    """
    share = 1 / ((np.asarray(rows, np.float64) + 1) * (np.log(max(words, 1)) + _EULER))
    weights: npt.NDArray[np.float32] = (_SMOOTHING / (_SMOOTHING + share)).astype(np.float32)
    return weights


def composed(
    vectors: npt.NDArray[np.float32], weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32] | None:
    """The weighted mean of the unit vectors of a phrase's words; None if they cancel out."""
    lengths = np.linalg.norm(vectors, axis=1)
    usable = lengths > 0
    if not usable.any():
        return None
    mean: npt.NDArray[np.float32] = weights[usable] @ (vectors[usable] / lengths[usable, None])
    return mean / weights[usable].sum() if mean.any() else None
