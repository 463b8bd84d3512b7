"""Vectors of some test pairs at every point of the method, for pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors
from bilex.vectors.stored import Matrix
from bilex_bench.results import WordSample
from bilex_bench.stages import FinishedStage

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

MOST_PAIRS = 300
Rows = npt.NDArray[np.int64]


class Sampler:
    """The same test pairs looked up wherever vectors of both vocabularies are to be had.

    Args:
        source: The source vocabulary.
        target: The target vocabulary.
        test: The test dictionary; at most 300 of its pairs are taken, evenly, no word twice.
    """

    def __init__(self, source: WordVectors, target: WordVectors, test: Lexicon) -> None:
        self._source, self._target = source, target
        seen: tuple[set[int], set[int]] = (set(), set())
        kept = []
        for a, b in test.index(source.key_to_index, target.key_to_index).tolist():
            if a not in seen[0] and b not in seen[1]:
                seen[0].add(a)
                seen[1].add(b)
                kept.append((a, b))
        chosen = np.linspace(0, len(kept) - 1, min(MOST_PAIRS, len(kept))).round().astype(np.int64)
        self.rows: Rows = np.array(kept, np.int64).reshape(-1, 2)[chosen]

    @property
    def words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The source and the target words."""
        return (
            tuple(self._source.index_to_key[row] for row in self.rows[:, 0]),
            tuple(self._target.index_to_key[row] for row in self.rows[:, 1]),
        )

    def sample(self, source: Matrix, target: Matrix) -> WordSample:
        """The pairs in matrices with one row per word of the vocabularies."""
        return WordSample(
            *self.words,
            np.array(source[self.rows[:, 0]], np.float32),
            np.array(target[self.rows[:, 1]], np.float32),
        )

    def of_aligner(self, space: Space) -> dict[str, WordSample]:
        """The vectors as they were read, and in the aligner's space."""
        return {
            "static": self.sample(self._source.vectors, self._target.vectors),
            "aligned": self.sample(space.source.vectors, space.target.vectors),
        }

    def of_stage(
        self, stage: FinishedStage, space: Space, encoder: WordEncoder, *, tuned: bool
    ) -> dict[str, WordSample]:
        """The vectors as read, aligned, of the language model before and after tuning, and combined."""
        samples = {
            "static": self.sample(self._source.vectors, self._target.vectors),
            "aligned": self.sample(*stage.static),
            "lm": self.sample(*stage.encoded),
            "combined": self.sample(space.source.vectors, space.target.vectors),
        }
        if tuned:
            from bilex.vectors.stored import unit_rows

            source, target = (unit_rows(encoder.encode(list(side))) for side in self.words)
            samples["lm-tuned"] = samples["lm"]
            samples["lm"] = WordSample(*self.words, source, target)
        return samples
