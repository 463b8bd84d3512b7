"""Unknown words through the tuned language model of stage C2, which can read any word."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from bilex.aligners.maps import Map
from bilex.core.errors import BilexError
from bilex.core.manifest import ModelFiles
from bilex.encoders.combine import Combination
from bilex.model.space import Floats, Side
from bilex.model.unknown import FromSubwords
from bilex.vectors.stored import unit_rows

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

_MODEL, _COMBINATION, _SUBWORDS = "model", "combination.safetensors", "subwords"


class FromEncoder:
    """The encoder's vector of a word, joined by its subwords' vector where there is one.

    Args:
        encoder: Opens the encoder; called for the first unknown word.
        combination: How static and encoded vectors become one.
        write: Writes the encoder's model folder to a path.
        subwords: The static vectors of unknown words, in the combined space.
    """

    kind: ClassVar[str] = "encoder"

    def __init__(
        self,
        encoder: Callable[[], WordEncoder],
        combination: Combination,
        write: Callable[[Path], None],
        subwords: FromSubwords | None = None,
    ) -> None:
        self._open, self._combination, self._write = encoder, combination, write
        self._subwords = subwords

    def __getstate__(self) -> NoReturn:
        raise BilexError(
            "a translator with a language model cannot be pickled; save it with Translator.save, and open "
            "the folder with Translator.load in the other process."
        )

    @cached_property
    def _encoder(self) -> WordEncoder:
        return self._open()

    @property
    def mixing(self) -> float:
        """λ, the weight of the encoder."""
        return self._combination.mixing

    def encoded(self, words: Sequence[str]) -> Floats:
        """The encoder's part alone, in the combined space: unit rows, zeros for words it cannot read."""
        return unit_rows(self._encoder.encode(words) @ self._combination.encoder_map)

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """(1−λ)·subwords + λ·encoder, or the one of the two that there is; None for neither."""
        subwords, mixing = self._subwords, self._combination.mixing
        static = [None] * len(words) if subwords is None else subwords.vectors(words, side)
        found: list[Floats | None] = []
        for row, known in zip(self.encoded(words), static, strict=True):
            mixed = row if known is None else (1 - mixing) * unit_rows(known[None])[0] + mixing * row
            found.append(unit_rows(mixed[None])[0] if mixed.any() else None)
        return found

    def phrase_vectors(self, phrases: Sequence[str], composed: Sequence[Floats]) -> list[Floats]:
        """(1−λ)·composed + λ·encoder: the model reads each phrase whole, beside what its words make."""
        mixing = self._combination.mixing
        return list(unit_rows((1 - mixing) * unit_rows(np.array(composed)) + mixing * self.encoded(phrases)))

    def save(self, folder: Path) -> None:
        """Write the encoder as a Hugging Face model folder, and the maps beside it."""
        from safetensors.numpy import save_file

        self._write(folder / _MODEL)
        save_file(self._combination.state(), folder / _COMBINATION)
        if self._subwords is not None:
            (folder / _SUBWORDS).mkdir()
            self._subwords.save(folder / _SUBWORDS)

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> FromEncoder:
        """What `save` wrote; the encoder is compared with its checksums and opened at its first use."""
        from safetensors.numpy import load_file

        def encoder() -> WordEncoder:
            files.compare(folder / _MODEL)
            from bilex.encoders.model import WordEncoder

            return WordEncoder.load(folder / _MODEL, device=device)

        def write(path: Path) -> None:
            files.compare(folder / _MODEL)
            shutil.copytree(folder / _MODEL, path)

        files.compare(folder, but=folder / _MODEL)
        combination = Combination.from_state(load_file(folder / _COMBINATION))
        stored = folder / _SUBWORDS
        subwords = FromSubwords.load(stored, maps, device, files) if stored.is_dir() else None
        return cls(encoder, combination, write, subwords)
