"""SHA256SUMS of a model folder: what its files were when it was saved."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from bilex.errors import BilexError
from bilex.files import read_small, sha256

CARD, CHECKSUMS = "README.md", "SHA256SUMS"
_DIGEST = re.compile("[0-9a-f]{64}")
_LARGEST_LIST = 16 << 20


def write_checksums(path: Path) -> None:
    """A list of all files but the card, which people may edit; `sha256sum -c SHA256SUMS` reads it."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and file != path / CARD)
    lines = [f"{sha256(file)}  {file.relative_to(path).as_posix()}\n" for file in files]
    (path / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def verify_checksums(path: Path, parts: Collection[str]) -> None:
    """Compare every file with its checksum, several at a time.

    Args:
        path: The model's folder.
        parts: Files and folders directly in it that opening the model may read; all in them must be listed.

    Raises:
        BilexError: A file is missing or differs.
    """
    expected = checksums(path)
    unlisted = sorted(set(_needed(path, parts)) - set(expected))
    if unlisted:
        raise BilexError(
            f"{path / CHECKSUMS}: does not list all files ('{unlisted[0]}'); copy or make the model again."
        )
    try:
        with ThreadPoolExecutor() as pool:
            found = dict(zip(expected, pool.map(lambda name: sha256(path / name), expected), strict=True))
    except OSError as error:
        raise BilexError(f"{error.filename}: cannot be read; copy or make the model again.") from error
    for name, digest in expected.items():
        if found[name] != digest:
            raise BilexError(
                f"{path / name}: was changed or damaged since it was saved (its checksum differs); "
                "copy or make the model again."
            )


def checksums(path: Path) -> dict[str, str]:
    """The files that SHA256SUMS lists, with their checksums.

    Raises:
        BilexError: The list is missing or damaged, or names something outside of the model.
    """
    try:
        text = read_small(path / CHECKSUMS, _LARGEST_LIST).decode("utf-8")
        lines = text.removesuffix("\n").split("\n")
        listed = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
        whole = all(map(_DIGEST.fullmatch, listed.values()))
    except (BilexError, ValueError) as error:
        raise BilexError(
            f"{path / CHECKSUMS}: is missing or damaged; copy or make the model again."
        ) from error
    if not whole or len(listed) != len(lines):
        raise BilexError(f"{path / CHECKSUMS}: is damaged; copy or make the model again.")
    for name in listed:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise BilexError(
                f"{path / CHECKSUMS}: names '{name}', which is outside of it; copy or make the model again."
            )
    return listed


def _needed(path: Path, parts: Collection[str]) -> Iterator[str]:
    """The files that opening the model may read: all of it but the card and the list itself."""
    for file in path.rglob("*"):
        name = file.relative_to(path).as_posix()
        if not file.is_dir() and name not in (CARD, CHECKSUMS) and name.split("/")[0] in parts:
            yield name
