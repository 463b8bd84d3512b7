"""Vectors for words outside the vocabulary.

A translator asks its out-of-vocabulary sources one after another; the first that can read a word
gives its vector in the common space. Character n-grams of fastText are one such source, a language
model that reads any word is another. To add a kind, write a class of the shape below and name it in
`KINDS`; storing and loading follow.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from bilex.aligners.maps import Map
from bilex.core.checksums import ModelFiles
from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from typing import Self

Floats = npt.NDArray[np.float32]
Side = Literal["source", "target"]

KINDS = {
    "encoder": "bilex.model.encoder:FromEncoder",
    "remapped": "bilex.model.remapped:Remapped",
    "subwords": "bilex.model.subwords:FromSubwords",
}


class OutOfVocabulary(Protocol):
    """Someone who can give a vector to a word that the vocabulary does not hold."""

    kind: ClassVar[str]

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """The vector of each word in the common space, or None for a word it cannot read."""

    def save(self, folder: Path) -> None:
        """Write all that `load` needs into an existing, empty folder."""

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> Self:
        """What `save` wrote; every file is compared with its checksum before it is read, be it much later.

        Args:
            folder: The folder given to `save`.
            maps: They take each language's vectors into the common space.
            device: Where to compute what there is to compute.
            files: The files of the model that the folder belongs to.
        """


def load_source(
    kind: str, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles
) -> OutOfVocabulary:
    """Load an out-of-vocabulary source of some kind.

    Args:
        kind: Its name in `KINDS`.
        folder: Where it was saved.
        maps: The maps of the two languages.
        device: Where it computes.
        files: The files of the model.

    Raises:
        BilexError: The kind is not known to this version.
    """
    if kind not in KINDS:
        raise BilexError(f"{folder}: '{kind}' is not known to this version of bilex; upgrade bilex.")
    module, name = KINDS[kind].split(":")
    source: type[OutOfVocabulary] = getattr(importlib.import_module(module), name)
    return source.load(folder, maps, device, files)
