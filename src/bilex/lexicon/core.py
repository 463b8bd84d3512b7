"""A bilingual word list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Coverage:
    """How many pairs have both words in the vocabularies."""

    pairs: int
    covered: int

    def sentence(self) -> str:
        """One clause with the figures."""
        return f"{self.covered} of {self.pairs} pairs have both words in the vectors"

    def advice(self) -> str:
        """What might help, or nothing."""
        return ""


@dataclass(frozen=True)
class Lexicon:
    """Word pairs, source first, in file order, repeats kept."""

    pairs: Sequence[tuple[str, str]]
    name: str = "the dictionary"

    def __len__(self) -> int:
        return len(self.pairs)

    @classmethod
    def read(cls, path: str | Path, *, lowercase: bool = True) -> Lexicon:
        """Read pairs from a file."""
        pairs = []
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            source, target = line.split("\t")[:2]
            pairs.append((source.lower(), target.lower()) if lowercase else (source, target))
        return cls(pairs, str(path))

    def index(self, source: Mapping[str, int], target: Mapping[str, int]) -> npt.NDArray[np.int64]:
        """The covered pairs as rows of the two vocabularies, repeats kept, shape (n, 2)."""
        found = [(source[a], target[b]) for a, b in self.pairs if a in source and b in target]
        return np.array(found, np.int64).reshape(-1, 2)

    def coverage(self, source: Mapping[str, int], target: Mapping[str, int]) -> Coverage:
        """How much of the list the vocabularies cover."""
        return Coverage(len(self), len(self.index(source, target)))
