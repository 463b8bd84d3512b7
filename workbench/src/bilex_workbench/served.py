"""A space for a server: keys are made ready once for each language, and one search runs at a time."""

from __future__ import annotations

import mmap
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bilex.model.space import Direction, Floats, Rows, SearchableKeys, Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.search.streamed import StreamedKeys

_KEY_SIDES = {"forward": "target", "backward": "source"}


class Keys:
    """The vectors of one language, searched with and without CSLS's penalty.

    They are rounded to 8 bits once, and the pages of the file that a search touched are given back.

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
            return self._streamed.top_k(vectors, min(k, len(self._words)), penalised=penalised)

    def prepare(self) -> None:
        """Round the vectors now, so that the first search need not wait for it."""
        with self._lock:
            self._streamed  # noqa: B018 - made once, here

    @cached_property
    def _streamed(self) -> StreamedKeys:
        from bilex.search.streamed import StreamedKeys

        vectors = np.asarray(self._words.vectors)
        return StreamedKeys(vectors, self._penalty, lambda: give_back_pages(vectors))


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
