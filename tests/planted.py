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


def planted(
    words: int = 1500,
    dim: int = 24,
    noise: float = 1.0,
    seed: int = 0,
    *,
    target_words: int | None = None,
    target_dim: int | None = None,
    numbered: bool = False,
) -> Planted:
    """Random vectors, and the same rotated and blurred.

    Args:
        words: Words of the source language.
        dim: Dimension of the source language.
        noise: Of the target vectors, against vectors of variance 1.
        seed: Of the random numbers.
        target_words: Words of the target language, as many unless given; those beyond `words` mean nothing.
        target_dim: Dimension of the target language, the same unless given.
        numbered: Whether words are "s0", "t0" and so on, and not made of syllables, of which there are few.
    """
    rng = np.random.default_rng(seed)
    target_words, target_dim = target_words or words, target_dim or dim
    meaning = rng.normal(size=(max(words, target_words), dim))
    rotation = np.linalg.qr(rng.normal(size=(max(dim, target_dim),) * 2))[0][:dim, :target_dim]
    blurred = meaning @ rotation + noise * rng.normal(size=(len(meaning), target_dim))

    def named(count: int, letter: str) -> list[str]:
        return [f"{letter}{i}" for i in range(count)] if numbered else pseudowords(count, letter)

    return Planted(
        WordVectors(named(words, "s"), meaning[:words].astype(np.float32)),
        WordVectors(named(target_words, "t"), blurred[:target_words].astype(np.float32)),
    )
