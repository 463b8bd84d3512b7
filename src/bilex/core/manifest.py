"""Folders that bilex keeps for itself: a list of their files with checksums says that they are ours.

Checkpoints, fits and stages of the benchmark, and encoders are such folders. The list is `bilex-files.json`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.files import (
    MANIFEST,
    atomic_folder,
    check_replaceable,
    json_text,
    read_json,
    remove_abandoned,
    sha256,
)
from bilex.core.progress import Progress


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
