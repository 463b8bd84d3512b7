"""Unit rows, centred rows, and small vocabularies for trials."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.maps import Array, Center, Map, MapStep, Unit
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from bilex.vectors.stored import LONGEST, SHORTEST

_BLOCK_ROWS = 16384


class Prepared(NamedTuple):
    """Prepared rows, and the map steps that prepare a new vector in the same way."""

    rows: Array
    steps: list[MapStep]


def unit_center_unit(vectors: npt.ArrayLike) -> Prepared:
    """Divide rows by their length, subtract the mean of the vocabulary, divide by the length again."""
    unit = Map([Unit()])(vectors)
    steps: list[MapStep] = [Unit(), Center(unit.mean(axis=0, dtype=np.float64)), Unit()]
    return Prepared(Map(steps[1:])(unit), steps)


def small_vocabularies(
    source: WordVectors, target: WordVectors, pairs: Lexicon, frequent: int
) -> tuple[WordVectors, WordVectors]:
    """The most frequent words of two languages and those of some pairs, in order of frequency."""
    sources, targets = {a for a, _ in pairs.pairs}, {b for _, b in pairs.pairs}
    return frequent_words(source, frequent, sources), frequent_words(target, frequent, targets)


def frequent_words(words: WordVectors, frequent: int, extra: set[str]) -> WordVectors:
    """The most frequent words of a language and some others, in order of frequency."""
    beyond = (words.key_to_index[word] for word in extra if word in words)
    chosen = sorted({*range(min(frequent, len(words))), *beyond})
    if len(chosen) == len(words):
        return words
    return WordVectors(
        [words.index_to_key[row] for row in chosen],
        np.asarray(words.vectors[np.array(chosen)]),
        words.preprocessing,
    )


class UnitRows:
    """Vectors of unit length, a block at a time.

    A GPU holds all of them. On the CPU, rows are read from the vectors, which may be in a file, and
    normalised on each access.
    """

    def __init__(self, vectors: WordVectors, device: torch.device) -> None:
        self.device, self._vectors = device, vectors.vectors
        self._held: torch.Tensor | None = None
        if device.type != "cpu":
            held = torch.empty(len(vectors), vectors.dim, device=device)
            for start in range(0, len(vectors), _BLOCK_ROWS):
                block = slice(start, start + _BLOCK_ROWS)
                held[block] = self._read(block)
            self._held = held

    def __len__(self) -> int:
        return len(self._vectors)

    def __getitem__(self, rows: slice | Pairs) -> torch.Tensor:
        """Some rows."""
        if self._held is None:
            return self._read(rows)
        return self._held[rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self.device)]

    def head(self, words: int | None) -> UnitRows:
        """The first words alone; None for all."""
        if words is None or words >= len(self):
            return self
        part = copy.copy(self)
        part._vectors = self._vectors[:words]
        part._held = None if self._held is None else self._held[:words]
        return part

    def mapped(self, matrix: torch.Tensor) -> torch.Tensor:
        """All rows times a matrix, again of length one."""
        image = torch.empty(len(self), matrix.shape[1], device=self.device)
        for start in range(0, len(self), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            rows = torch.mm(self[block], matrix, out=image[block])
            rows /= torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(1e-12)
        return image

    def _read(self, rows: slice | Pairs) -> torch.Tensor:
        read = torch.tensor(self._vectors[rows], dtype=torch.float32, device=self.device)
        norms = torch.linalg.vector_norm(read, dim=1, keepdim=True)
        extreme = torch.nonzero((norms[:, 0] < SHORTEST) | (norms[:, 0] > LONGEST))[:, 0]
        if len(extreme):  # as in `unit_rows_float32`
            largest = read[extreme].abs().amax(dim=1, keepdim=True)
            read[extreme] /= torch.where(largest == 0, 1, largest)
            norms[extreme] = torch.linalg.vector_norm(read[extreme], dim=1, keepdim=True)
        return read.div_(torch.where(norms == 0, 1, norms))
