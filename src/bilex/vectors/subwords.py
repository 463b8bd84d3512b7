"""fastText's character n-grams: vectors for words that no vocabulary holds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bilex.vectors.stored import Matrix


@dataclass(frozen=True, eq=False)
class Subwords:
    """One vector a hash bucket of character n-grams; the mean of a word's n-grams is its vector.

    Args:
        rows: The vectors of the buckets. May be a read-only memory map or decoded when asked for.
        shortest: The fewest characters of an n-gram ("minn").
        longest: The most ("maxn"); the marks "<" and ">" at the ends of a word count as characters.
        means: The preprocessing to repeat on each vector, in order: None to make it of length 1
            ("unit"), else the vector to take off ("center"; the mean of the vocabulary).
    """

    rows: Matrix
    shortest: int
    longest: int
    means: tuple[npt.NDArray[np.float32] | None, ...] = ()

    def followed_by(self, mean: npt.NDArray[np.float32] | None) -> Subwords:
        """The same n-grams with one more step of preprocessing."""
        return replace(self, means=(*self.means, mean))

    def vector(self, word: str) -> npt.NDArray[np.float32]:
        """The vector of `word` from its n-grams alone, preprocessed as the vocabulary was.

        Raises:
            KeyError: The word is too short to have an n-gram, or its vector is zero or not finite.
        """
        from bilex.vectors.ngrams import ngram_buckets

        encoded = np.frombuffer(word.encode("utf-8", "replace"), np.uint8)
        buckets = ngram_buckets(encoded, self.shortest, self.longest, len(self.rows))
        if not len(buckets):
            raise KeyError(word)
        with np.errstate(invalid="ignore", over="ignore"):  # rows that are not finite are found below
            vector = np.asarray(self.rows[buckets]).mean(axis=0, dtype=np.float64).astype(np.float32)
        if not np.isfinite(vector).all():
            raise KeyError(word)
        for mean in self.means:
            vector = vector / _length(vector, word) if mean is None else vector - mean
        return np.asarray(vector, np.float32)


def _length(vector: npt.NDArray[np.float32], word: str) -> np.float32:
    length = np.float32(np.linalg.norm(vector.astype(np.float64)))
    if length == 0:
        raise KeyError(word)
    return length
