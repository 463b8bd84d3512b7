"""Unknown words through fastText's character n-grams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from bilex.aligners.maps import Map
from bilex.core.checksums import ModelFiles
from bilex.model.unknown import Floats, Side
from bilex.vectors import Subwords, WordVectors


class FromSubwords:
    """The n-grams of one or both languages, and the maps that take their vectors into the space.

    Args:
        subwords: The n-grams of each language that has them.
        maps: The map of each language.
    """

    kind: ClassVar[str] = "subwords"

    def __init__(self, subwords: Mapping[Side, Subwords], maps: Mapping[Side, Map]) -> None:
        self.subwords, self._maps = dict(subwords), dict(maps)

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """The mapped mean of each word's n-grams; None without n-grams."""
        return [self._vector(word, side) for word in words]

    def _vector(self, word: str, side: Side) -> Floats | None:
        if side not in self.subwords:
            return None
        try:
            vector = self.subwords[side].vector(word)
        except KeyError:
            return None
        mapped: Floats = self._maps[side](vector[None])[0]
        return mapped if np.isfinite(mapped).all() and mapped.any() else None

    def save(self, folder: Path) -> None:
        """Write the n-grams of each language as vectors of no words."""
        for side, subwords in self.subwords.items():
            none = np.zeros((0, subwords.rows.shape[1]), np.float32)
            WordVectors([], none, subwords=subwords).save(folder / side, "safetensors")

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> FromSubwords:
        """What `save` wrote; the n-grams stay on disk until they are used."""
        files.compare(folder)
        subwords: dict[Side, Subwords] = {}
        sides: tuple[Side, Side] = ("source", "target")
        for side in sides:
            if (folder / side).is_dir():
                stored = WordVectors.load(folder / side, verify=False).subwords
                if stored is not None:
                    subwords[side] = stored
        return cls(subwords, maps)
