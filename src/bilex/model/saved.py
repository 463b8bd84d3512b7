"""A saved model as its folder describes it, without opening it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.files import read_json, restore
from bilex.core.manifest import ModelFiles
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.model_folder import (
    CONFIG,
    MANY_FORMAT,
    MAPS,
    check_version,
    fitting_together,
    has_format,
    read_seeds,
    written_files,
)
from bilex.model.provenance import Provenance

FORMAT, FORMAT_VERSION = "bilex-translator", 1
SEEDS = "seeds.json"
SOURCE, TARGET, UNKNOWN = "source", "target", "unknown"
_PARTS = (CONFIG, MAPS, SEEDS, SOURCE, TARGET, UNKNOWN)


@dataclass(frozen=True)
class Description:
    """The content of a model's config.json and seeds.json.

    Attributes:
        provenance: From what and how it was made.
        calibration: From scores to confidences.
        seeds: The pairs it was learned from.
        source_words: How many words its source vocabulary has.
        target_words: Likewise.
        dim: The dimension of the common space.
        metric: How its vectors are compared.
        lowercase: Whether the vocabularies were lower-cased.
        unknown: The kinds of its readers of unknown words.
    """

    provenance: Provenance
    calibration: Calibration
    seeds: Lexicon
    source_words: int
    target_words: int
    dim: int
    metric: str
    lowercase: bool
    unknown: tuple[str, ...]


def describe(folder: str | Path, *, verify: bool) -> Description:
    """Read what a model says about itself.

    The two files that are read are compared with their checksums. Of all others it is made sure that they are
    there and listed, and of those that hold tensors that they are as long as their headers say.

    Args:
        folder: A model folder.
        verify: Whether all other files are compared with their checksums too, which reads the whole model.

    Raises:
        BilexError: It is no model, comes from a newer version, or a file is missing, cut off or damaged.
    """
    path = Path(folder)
    restore(path)
    config = read_config(path)
    files = model_files(path)
    if verify:
        files.compare(path)
    else:
        files.compare(path / CONFIG, path / SEEDS)
        check_lengths(path / name for name in files.expected if name.endswith(".safetensors"))
    with fitting_together(path):
        return Description(
            Provenance.from_dict(config),
            Calibration.from_dict(config["calibration"]),
            read_seeds(path / SEEDS),
            int(config["source_words"]),
            int(config["target_words"]),
            int(config["dim"]),
            str(config["metric"]),
            bool(config["lowercase"]),
            tuple(map(str, config["unknown"])),
        )


def is_model(folder: str | Path) -> bool:
    """Whether a folder holds a saved translator, of whatever version."""
    return has_format(folder, FORMAT)


def own_files(path: Path) -> Collection[str]:
    """The files in a folder that `save_translator` wrote; none if it is not a model."""
    return written_files(path, FORMAT)


def model_files(path: Path) -> ModelFiles:
    """The files of a saved model, which must all be there and listed with their checksums.

    Raises:
        BilexError: One is missing, or the list is not whole.
    """
    return ModelFiles.listed(path, _PARTS)


def read_provenance(path: Path) -> Provenance:
    """From what and how a saved model was made, without opening it.

    Raises:
        BilexError: It is no model that this version reads.
    """
    config = read_config(path)
    with fitting_together(path):
        return Provenance.from_dict(config)


def read_config(path: Path) -> dict[str, Any]:
    """The config.json of a model, its format and version checked.

    Raises:
        BilexError: It is missing or broken, of another kind, or of a newer version.
    """
    if not path.exists():
        raise BilexError(f"{path}: there is no such model; make one with 'bilex align ... -o {path}'.")
    if not (path / CONFIG).is_file():
        raise BilexError(f"{path}: is not a bilex model (no {CONFIG} in it); make one with 'bilex align'.")
    config = read_json(path / CONFIG)
    if isinstance(config, dict) and config.get("format") == MANY_FORMAT:
        raise BilexError(
            f"{path}: is a model of several languages; name two of them (--from and --to, or "
            "ManyLanguages.load in a program)."
        )
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise BilexError(
            f"{path}: is not a bilex model (its {CONFIG} does not say {FORMAT}); make one with 'bilex align'."
        )
    check_version(path, config, FORMAT_VERSION)
    return config


def check_lengths(files: Iterable[Path]) -> None:
    """Make sure that files of tensors are as long as their headers say; nothing else of them is read.

    Raises:
        BilexError: One is not.
    """
    from safetensors import SafetensorError, safe_open

    for file in files:
        try:
            with safe_open(file, framework="numpy"):
                pass
        except (SafetensorError, OSError, ValueError) as error:
            raise BilexError(
                f"{file}: is cut off or damaged ({error}); copy or make the model again."
            ) from error
