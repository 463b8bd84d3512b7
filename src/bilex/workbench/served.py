"""A space for a server: keys are made ready once for each language, and one search runs at a time."""

from __future__ import annotations

import mmap
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bilex.similarity import KeySearch
from bilex.space import Direction, Floats, Rows, SearchableKeys, Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.similarity.cpu import KeySearch as PreparedKeys

_WORKING_MEMORY = 1 << 26
_FEW_KEYS = 20_000
_KEY_SIDES = {"forward": "target", "backward": "source"}


class Keys:
    """The vectors of one language, searched with and without CSLS's penalty.

    Large vocabularies are rounded once to the precision in which this processor searches fastest, and the
    pages of the file that this touched are given back; small ones are searched as they are.

    Args:
        words: The vocabulary.
        penalty: CSLS's term of each word.
    """

    def __init__(self, words: WordVectors, penalty: Floats) -> None:
        self._words, self._penalty = words, penalty
        self._lock = threading.Lock()

    def top_k(self, vectors: Floats, k: int, *, penalised: bool) -> tuple[Floats, Rows]:
        """The k best words for each vector; exact, as everywhere."""
        with self._lock:
            if len(self._words) < _FEW_KEYS:
                penalty = self._penalty if penalised else None
                return KeySearch(self._words.vectors, key_penalty=penalty, device="cpu").top_k(vectors, k)
            plain, with_penalty = self._prepared
            return (with_penalty if penalised else plain).top_k(
                vectors, min(k, len(self._words)), _WORKING_MEMORY
            )

    @cached_property
    def _prepared(self) -> tuple[PreparedKeys, PreparedKeys]:
        from bilex import arithmetic
        from bilex.similarity.cpu import KeySearch as PreparedKeys

        dtype = arithmetic.fastest("search")
        vectors = np.asarray(self._words.vectors)
        plain = PreparedKeys(vectors, None, dtype)
        with_penalty = PreparedKeys(vectors, np.asarray(self._penalty), dtype)
        with_penalty.ready = plain.ready  # rounded once for both
        plain.top_k(np.ascontiguousarray(vectors[:1]), 1, _WORKING_MEMORY)
        give_back_pages(vectors)
        return plain, with_penalty


class ServedSpace(Space):
    """A `Space` whose searches share prepared keys, so that one query costs milliseconds."""

    @classmethod
    def of(cls, space: Space) -> ServedSpace:
        """The same vocabularies and CSLS terms, for serving."""
        served = cls(space.source, space.target, space.metric, "cpu")
        served.keep_neighbourhoods(*space.neighbourhoods())
        return served

    @cached_property
    def keys(self) -> dict[str, Keys]:
        """The searchable keys of each language."""
        r_source, r_target = self.neighbourhoods()
        return {"source": Keys(self.source, r_source), "target": Keys(self.target, r_target)}

    def give_back_pages(self) -> None:
        """Let go of what was read of the vectors' files; searches touch only a few rows of them."""
        for words in (self.source, self.target):
            give_back_pages(np.asarray(words.vectors))

    def _keys(self, direction: Direction, penalty: Floats | None) -> SearchableKeys:
        return _Searched(self.keys[_KEY_SIDES[direction]], penalised=penalty is not None)

    def _mean_of_best(self, vectors: Floats, direction: Direction, neighbours: int) -> Floats:
        near, _ = self.keys[_KEY_SIDES[direction]].top_k(vectors, neighbours, penalised=False)
        return np.asarray(near.mean(axis=1, dtype=np.float64), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class _Searched:
    """Prepared keys as a search wants them."""

    keys: Keys
    penalised: bool

    def top_k(self, queries: Floats, k: int) -> tuple[Floats, Rows]:
        return self.keys.top_k(queries, k, penalised=self.penalised)


def give_back_pages(array: Floats) -> None:
    """Let go of the pages of a mapped file that were read; they come again when they are touched."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
