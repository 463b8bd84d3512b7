"""A planted problem: a known rotation with noise, where every right answer is known."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

_ONSETS, _VOWELS = "bdfgklmnprst", "aeiou"


def pseudowords(count: int, ending: str) -> list[str]:
    """Distinct words of letters, such as 'bakelu'."""
    syllables = [onset + vowel for onset in _ONSETS for vowel in _VOWELS]
    made = (f"{a}{b}{ending}" for a, b in itertools.product(syllables, syllables))
    words = list(itertools.islice(made, count))
    order = np.random.default_rng(5).permutation(count)
    return [words[i] for i in order]


@dataclass(frozen=True)
class Planted:
    """Two languages of which word i of one means word i of the other."""

    source: WordVectors
    target: WordVectors

    def pairs(self, first: int, last: int) -> Lexicon:
        """The true pairs of some ranks."""
        words = zip(self.source.index_to_key[first:last], self.target.index_to_key[first:last], strict=True)
        return Lexicon(list(words), "the planted pairs")


def planted(words: int = 1500, dim: int = 24, noise: float = 1.0, seed: int = 0) -> Planted:
    """Random vectors, and the same rotated and blurred."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(words, dim))
    rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    y = x @ rotation + noise * rng.normal(size=(words, dim))
    return Planted(
        WordVectors(pseudowords(words, "s"), x.astype(np.float32)),
        WordVectors(pseudowords(words, "t"), y.astype(np.float32)),
    )
