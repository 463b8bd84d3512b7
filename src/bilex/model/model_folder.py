"""What the folder of every model has, of two languages or of many.

A config.json that says its format, a card that people may edit, seeds, and checksums of all but the card.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.files import OwnFiles, check_replaceable, check_writable, json_text, read_json, sha256
from bilex.core.manifest import CARD, CHECKSUMS, checksums, write_checksums
from bilex.lexicon import Lexicon

CONFIG, MAPS = "config.json", "maps.safetensors"
MANY_FORMAT = "bilex-many"  # known to models of two languages, which say it where one is taken for the other


def has_format(folder: str | Path, name: str) -> bool:
    """Whether a folder holds a model of a format, of whatever version."""
    try:
        config = read_json(Path(folder) / CONFIG)
    except BilexError:
        return False
    return isinstance(config, dict) and config.get("format") == name


def is_many(folder: str | Path) -> bool:
    """Whether a folder holds a model of many languages, of whatever version."""
    return has_format(folder, MANY_FORMAT)


def written_files(path: Path, name: str) -> Collection[str]:
    """The files in a folder that saving a model of a format wrote; none if it is no such model.

    A card that was edited is its editor's.
    """
    if not has_format(path, name):
        return ()
    files = {CHECKSUMS, *checksums(path)}
    card = path / CARD
    if card.is_file() and sha256(card) == read_json(path / CONFIG).get("card_sha256"):
        files.add(CARD)
    return files


def check_free(folder: str | Path, own_files: OwnFiles) -> None:
    """Make sure, before hours of work, that a model may be saved in a folder.

    Raises:
        BilexError: It is a file, or a folder with other things than an earlier model in it, or cannot be
            written.
    """
    check_replaceable(Path(folder), own_files)
    check_writable(folder)


def finish(path: Path, config: Mapping[str, Any], card: str) -> None:
    """Write what comes last into a model's folder: configuration, card and checksums."""
    content = card.encode("utf-8")
    stored = {**config, "card_sha256": hashlib.sha256(content).hexdigest()}
    (path / CONFIG).write_text(json_text(stored), encoding="utf-8")
    (path / CARD).write_bytes(content)
    write_checksums(path)


def write_seeds(path: Path, seeds: Lexicon) -> None:
    """Write the word pairs that a model was learned from."""
    stored = {"name": seeds.name, "pairs": list(seeds.pairs), "rejected": list(seeds.rejected)}
    path.write_text(json_text(stored), encoding="utf-8")


def read_seeds(path: Path) -> Lexicon:
    """What `write_seeds` wrote; older models have no rejected pairs."""
    stored = read_json(path)
    return Lexicon(
        [(str(a), str(b)) for a, b in stored["pairs"]],
        str(stored["name"]),
        rejected=tuple((str(a), str(b)) for a, b in stored.get("rejected", [])),
    )


def check_version(path: Path, config: Mapping[str, Any], newest: int) -> None:
    """Make sure that this version of bilex reads a model.

    Args:
        path: The model's folder.
        config: Its configuration.
        newest: The newest version of its format that can be read.

    Raises:
        BilexError: It does not.
    """
    version = config.get("format_version")
    if not isinstance(version, int) or version > newest:
        raise BilexError(
            f"{path}: has model format version {version}, and this bilex reads up to {newest}; "
            "install a newer bilex."
        )


@contextlib.contextmanager
def fitting_together(path: Path) -> Iterator[None]:
    """Turn what goes wrong while the parts of a model are put together into one sentence.

    Raises:
        BilexError: They do not fit.
    """
    from safetensors import SafetensorError

    try:
        yield
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        OSError,
        SafetensorError,
    ) as error:
        raise BilexError(
            f"{path}: the model's files do not fit together ({error}); make it again."
        ) from error
