"""A saved model of many languages as its folder describes it, without opening it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilex.core.errors import BilexError
from bilex.core.files import read_json, restore
from bilex.core.manifest import ModelFiles
from bilex.core.typed_json import from_json
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.many.provenance import ManyProvenance
from bilex.model.model_folder import (
    CONFIG,
    MAPS,
    check_version,
    fitting_together,
    is_many,
    read_seeds,
)
from bilex.model.saved import check_lengths
from bilex.vectors.folder import word_count

if TYPE_CHECKING:
    from bilex.model.many.core import ManyLanguages

Two = tuple[str, str]
FORMAT_VERSION = 1
LANGUAGES, SUBWORDS, SEEDS = "languages", "subwords", "seeds"
_PARTS = (CONFIG, MAPS, LANGUAGES, SUBWORDS, SEEDS)


@dataclass(frozen=True)
class ManyDescription:
    """What a model of many languages says about itself.

    Attributes:
        words: How many words each language has.
        seeds: The word pairs that were learned from, by two languages.
        calibrations: From scores to confidences, by two languages.
        provenance: From what and how it was made.
    """

    words: Mapping[str, int]
    seeds: Mapping[Two, Lexicon]
    calibrations: Mapping[Two, Calibration]
    provenance: ManyProvenance

    @classmethod
    def of(cls, many: ManyLanguages) -> ManyDescription:
        """The description of an open model."""
        words = {code: len(vocabulary) for code, vocabulary in many.vocabularies.items()}
        return cls(words, many.seeds, many.calibrations, many.provenance)


def describe_many(folder: str | Path, *, verify: bool) -> ManyDescription:
    """Read what a model of many languages says about itself.

    The files that are read are compared with their checksums. Of all others it is made sure that they are
    there and listed, and of those that hold tensors that they are as long as their headers say.

    Args:
        folder: A model folder.
        verify: Whether all other files are compared with their checksums too, which reads the whole model.

    Raises:
        BilexError: It is no such model, comes from a newer version, or a file is missing, cut off or damaged.
    """
    path = Path(folder)
    restore(path)
    config = read_config(path)
    files = model_files(path)
    with fitting_together(path):
        languages = [str(language) for language in config["languages"]]
        if verify:
            files.compare(path)
        else:
            own = (path / LANGUAGES / language / CONFIG for language in languages)
            files.compare(path / CONFIG, path / SEEDS, *own)
            check_lengths(path / name for name in files.expected if name.endswith(".safetensors"))
        return ManyDescription(
            {language: word_count(path / LANGUAGES / language) for language in languages},
            read_all_seeds(path),
            read_calibrations(config),
            from_json(ManyProvenance, config),
        )


def model_files(path: Path) -> ModelFiles:
    """The files of a saved model, which must all be there and listed with their checksums.

    Raises:
        BilexError: One is missing, or the list is not whole.
    """
    return ModelFiles.listed(path, _PARTS)


def read_config(path: Path) -> dict[str, Any]:
    """The config.json of a model of many languages.

    Raises:
        BilexError: It is missing or broken, of another kind, or of a newer version.
    """
    if not is_many(path):
        raise BilexError(
            f"{path}: is not a model of several languages; make one with 'bilex join' or "
            "'bilex align --languages'."
        )
    config: dict[str, Any] = read_json(path / CONFIG)
    check_version(path, config, FORMAT_VERSION)
    return config


def read_all_seeds(path: Path) -> dict[Two, Lexicon]:
    """The word pairs that a saved model was learned from, by two languages."""
    return {_two(file.stem): read_seeds(file) for file in sorted((path / SEEDS).glob("*.json"))}


def read_calibrations(config: Mapping[str, Any]) -> dict[Two, Calibration]:
    """The confidences in the config.json of a saved model, by two languages."""
    return {_two(name): Calibration.from_dict(found) for name, found in config["calibrations"].items()}


def named(two: Two) -> str:
    """Two languages in the name of a file or a tensor."""
    return "-".join(two)


def _two(name: str) -> Two:
    first, second = name.split("-")
    return first, second
