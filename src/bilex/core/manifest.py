"""Lists of the files of a folder with their checksums.

Models have SHA256SUMS, which `sha256sum -c` reads. Folders that bilex keeps for itself (checkpoints,
encoders, fits and stages of the benchmark) have `bilex-files.json`, which names their kind too.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.files import (
    MANIFEST,
    atomic_folder,
    check_replaceable,
    json_text,
    read_json,
    read_small,
    remove_abandoned,
    sha256,
)
from bilex.core.progress import Progress

CARD, CHECKSUMS = "README.md", "SHA256SUMS"
_DIGEST = re.compile("[0-9a-f]{64}")
_LARGEST_LIST = 16 << 20


@contextlib.contextmanager
def manifest_folder(path: str | Path, kind: str) -> Iterator[Path]:
    """As `atomic_folder`, with a list of all files and their checksums.

    Args:
        path: The folder to make; an earlier one is replaced if it is of the same kind and holds nothing else.
        kind: What the folder is, such as "bilex-checkpoint".

    Raises:
        BilexError: The folder cannot be written, or holds what may not be replaced.
    """
    with atomic_folder(path, own_files=partial(_own_files, kind=kind)) as folder:
        yield folder
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        sums = {file.relative_to(folder).as_posix(): sha256(file) for file in files}
        (folder / MANIFEST).write_text(json_text({"format": kind, "sha256": sums}), encoding="utf-8")


@contextlib.contextmanager
def keeping(path: Path, progress: Progress) -> Iterator[None]:
    """For a block that keeps the state of long work: if that cannot be written, report it and go on.

    What was kept earlier is still there, since folders are written whole or not at all.
    """
    try:
        yield
    except BilexError as error:
        progress.say(
            f"This state is not kept and the work goes on; what was kept earlier stays in {path}: {error}"
        )


def verify_manifest(path: Path, kind: str) -> bool:
    """Whether there is a folder of this kind at a path, and that nothing in it was changed.

    Returns:
        False if there is nothing at the path, or an empty folder.

    Raises:
        BilexError: There is something else, or a file is missing, damaged or added.
    """
    remove_abandoned(path.parent)
    check_replaceable(path, partial(_own_files, kind=kind))
    if not (path / MANIFEST).is_file():
        return False
    for name, expected in _manifest(path, kind).items():
        try:
            found = sha256(path / name)
        except OSError as error:
            raise BilexError(
                f"{path / name}: cannot be read ({error.strerror or error}); remove {path} and start anew."
            ) from error
        if found != expected:
            raise _damaged(path, name)
    return True


def _own_files(path: Path, kind: str) -> Collection[str]:
    return {MANIFEST, *_manifest(path, kind)} if (path / MANIFEST).is_file() else ()


def _manifest(path: Path, kind: str) -> dict[str, Any]:
    """The names and checksums that the list of a folder holds.

    Raises:
        BilexError: The list is damaged, or that of another kind of folder.
    """
    manifest = read_json(path / MANIFEST)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("sha256"), dict):
        raise _damaged(path, MANIFEST)
    if manifest.get("format") != kind:
        raise BilexError(
            f"{path}: is a folder of another kind ({manifest.get('format')}, not {kind}); name another one."
        )
    return dict(manifest["sha256"])


def _damaged(path: Path, name: str) -> BilexError:
    return BilexError(
        f"{path / name}: was changed or damaged since it was written; remove {path} and start anew."
    )


def write_checksums(path: Path, known: Mapping[str, str] | None = None) -> None:
    """A list of all files but the card, which people may edit; `sha256sum -c SHA256SUMS` reads it.

    Args:
        path: The model's folder.
        known: Checksums of files that were taken over; computed anew, they would hide damage.
    """
    names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    digests = {name: (known or {}).get(name) or sha256(path / name) for name in names if name != CARD}
    lines = [f"{digest}  {name}\n" for name, digest in digests.items()]
    (path / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model folder, each to be compared with its checksum before it is read.

    Args:
        path: The folder.
        expected: The checksum of each file by its name in the folder; without any, nothing is compared.
    """

    path: Path
    expected: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def listed(cls, path: Path, parts: Collection[str]) -> ModelFiles:
        """The files that SHA256SUMS lists, all of which must be there; none is read yet.

        Args:
            path: The model's folder.
            parts: Files and folders directly in it that may be read; all in them must be listed.

        Raises:
            BilexError: The list is damaged or not whole, or a file is missing.
        """
        expected = checksums(path)
        unlisted = sorted(set(_needed(path, parts)) - set(expected))
        if unlisted:
            raise BilexError(
                f"{path / CHECKSUMS}: does not list all files ('{unlisted[0]}'); copy or make the model "
                "again."
            )
        for name in expected:
            if not (path / name).is_file():
                raise _unreadable(path / name)
        return cls(path, expected)

    def compare(self, *places: Path, but: Path | None = None) -> None:
        """Compare files with their checksums, several at a time.

        Args:
            places: Files, and folders with all that is in them.
            but: A folder to leave out.

        Raises:
            BilexError: A file cannot be read or differs.
        """
        chosen = [
            name
            for name in self.expected
            if any((self.path / name).is_relative_to(place) for place in places)
            and (but is None or not (self.path / name).is_relative_to(but))
        ]
        try:
            with ThreadPoolExecutor() as pool:
                digests = list(pool.map(lambda name: sha256(self.path / name), chosen))
        except OSError as error:
            raise _unreadable(error.filename) from error
        for name, digest in zip(chosen, digests, strict=True):
            if digest != self.expected[name]:
                raise BilexError(
                    f"{self.path / name}: was changed or damaged since it was saved (its checksum differs); "
                    "copy or make the model again."
                )


def _unreadable(file: str | Path) -> BilexError:
    return BilexError(f"{file}: cannot be read; copy or make the model again.")


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
