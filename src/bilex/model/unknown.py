"""Vectors for words outside the vocabulary.

A translator tries its readers in order; the first that can read a word gives its vector in the common space.
To add a kind, write a class of the shape of `OutOfVocabulary` and name it in `KINDS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from bilex.aligners.maps import Map, maps_from_state, maps_state
from bilex.core.errors import BilexError
from bilex.core.files import read_json, write_json
from bilex.core.manifest import ModelFiles
from bilex.model.space import Floats, Side
from bilex.vectors import Subwords, WordVectors

if TYPE_CHECKING:
    from typing import Self


KINDS = {
    "encoder": "bilex.model.encoder:FromEncoder",
    "remapped": "bilex.model.unknown:Remapped",
    "subwords": "bilex.model.unknown:FromSubwords",
}


class OutOfVocabulary(Protocol):
    """Gives vectors to words that the vocabulary does not hold."""

    kind: ClassVar[str]

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """The vector of each word in the common space, or None for a word it cannot read."""

    def save(self, folder: Path) -> None:
        """Write all that `load` needs into an existing, empty folder."""

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> Self:
        """What `save` wrote; `files` compares every file with its checksum before it is read."""


def load_source(
    kind: str, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles
) -> OutOfVocabulary:
    """Load a reader of some kind of `KINDS`."""
    if kind not in KINDS:
        raise BilexError(f"{folder}: '{kind}' is not known to this version of bilex; upgrade bilex.")
    module, name = KINDS[kind].split(":")
    source: type[OutOfVocabulary] = getattr(importlib.import_module(module), name)
    return source.load(folder, maps, device, files)


class FromSubwords:
    """The n-grams of one or both languages, and the maps that take their vectors into the space."""

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
            save_subwords(subwords, folder / side)

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> FromSubwords:
        """What `save` wrote; the n-grams stay on disk until they are used."""
        files.compare(folder)
        sides: tuple[Side, Side] = ("source", "target")
        return cls({side: load_subwords(folder / side) for side in sides if (folder / side).is_dir()}, maps)


def save_subwords(subwords: Subwords, folder: Path) -> None:
    """Write n-grams as vectors of no words."""
    none = np.zeros((0, subwords.rows.shape[1]), np.float32)
    WordVectors([], none, subwords=subwords).save(folder, "safetensors")


def load_subwords(folder: Path) -> Subwords:
    """What `save_subwords` wrote; checksums are the caller's."""
    stored = WordVectors.load(folder, lowercase=False, verify=False).subwords
    if stored is None:
        raise BilexError(f"{folder}: holds no n-grams; copy or make the model again.")
    return stored


_CONFIG, _INNER = "remapped.json", "inner"


class Remapped:
    """Another reader (`inner`), whose space (that `before` maps into) was mapped `onward`."""

    kind: ClassVar[str] = "remapped"

    def __init__(
        self, inner: OutOfVocabulary, before: Mapping[Side, Map], onward: Mapping[Side, Map]
    ) -> None:
        self._inner = inner
        self._maps = {"before": dict(before), "onward": dict(onward)}

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """What the inner source reads, mapped onward."""
        onward = self._maps["onward"][side]
        found = self._inner.vectors(words, side)
        return [None if row is None else onward(row[None])[0] for row in found]

    def save(self, folder: Path) -> None:
        """Write the inner source and both pairs of maps."""
        from safetensors.numpy import save_file

        config: dict[str, object] = {"inner": self._inner.kind}
        for name, maps in self._maps.items():
            config[name], tensors = maps_state(maps["source"], maps["target"])
            save_file(tensors, folder / f"{name}.safetensors")
        write_json(folder / _CONFIG, config)
        (folder / _INNER).mkdir()
        self._inner.save(folder / _INNER)

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> Remapped:
        """What `save` wrote; it has maps of its own."""
        from safetensors.numpy import load_file

        files.compare(folder, but=folder / _INNER)
        config = read_json(folder / _CONFIG)
        read: dict[str, dict[Side, Map]] = {}
        for name in ("before", "onward"):
            source, target = maps_from_state(config[name], load_file(folder / f"{name}.safetensors"))
            read[name] = {"source": source, "target": target}
        inner = load_source(config["inner"], folder / _INNER, read["before"], device, files)
        return cls(inner, read["before"], read["onward"])
