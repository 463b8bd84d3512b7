"""Lists of the files of a folder with their checksums: SHA256SUMS, which `sha256sum -c` reads.

A model lists all files but its card, which people may edit. Other folders (vectors, checkpoints, encoders,
fits and stages of the benchmark) list all files and name their kind in a comment on the first line.
Such folders of earlier versions have `bilex-files.json` instead, which is still read.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from bilex.core import files
from bilex.core.errors import BilexError
from bilex.core.files import FIRST_MANIFEST, MANIFEST, sha256
from bilex.core.progress import Progress

CARD, CHECKSUMS = "README.md", MANIFEST
_DIGEST = re.compile("[0-9a-f]{64}")
_LARGEST_LIST = 16 << 20
_MODEL_AGAIN, _START_AGAIN = "copy or make the model again", "remove the folder and start again"


def write_checksums(path: Path, known: Mapping[str, str] | None = None, kind: str | None = None) -> None:
    """Write the list of a folder of a kind such as "bilex-checkpoint"; None is a model, without its card.

    `known` are checksums of files that were copied from elsewhere; computed again, they would hide damage.
    """
    names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    chosen = [name for name in names if name != CHECKSUMS and (kind or name != CARD)]
    lines = [f"# {kind}\n"] if kind else []
    lines += [f"{(known or {}).get(name) or sha256(path / name)}  {name}\n" for name in chosen]
    (path / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def checksums(path: Path, kind: str | None = None, remedy: str = _MODEL_AGAIN) -> dict[str, str]:
    """The files that the list of a folder of a kind (None: a model) holds, with their checksums."""
    manifest = path / FIRST_MANIFEST
    if kind is None or not manifest.is_file():
        manifest = path / CHECKSUMS
    try:
        if manifest.name == FIRST_MANIFEST:
            stored = files.read_json(manifest)
            found, pairs = stored["format"], list(stored["sha256"].items())
        else:
            lines = files.read_small(manifest, _LARGEST_LIST).decode("utf-8").removesuffix("\n").split("\n")
            found = lines.pop(0).removeprefix("# ") if lines[0].startswith("# ") else None
            pairs = [(name, digest) for digest, name in (line.split("  ", 1) for line in lines)]
        listed = dict(pairs)
        if len(listed) != len(pairs) or not all(map(_DIGEST.fullmatch, listed.values())):
            raise ValueError("a name is listed twice, or a checksum is none")
    except (BilexError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BilexError(f"{manifest}: is missing or damaged; {remedy}.") from error
    if found != kind:
        raise BilexError(f"{path}: is a folder of another kind ({found}, not {kind}); name another one.")
    for name in listed:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise BilexError(f"{manifest}: names '{name}', which is outside of it; {remedy}.")
    return listed


@dataclass(frozen=True)
class ModelFiles:
    """The files of a folder, each to be compared with its `expected` checksum, if any, before it is read."""

    path: Path
    expected: Mapping[str, str] = field(default_factory=dict)
    remedy: str = _MODEL_AGAIN

    @classmethod
    def listed(cls, path: Path, parts: Collection[str]) -> ModelFiles:
        """The files of a model, all of which must be there and, in some `parts` of it, be listed."""
        expected = checksums(path)
        for file in path.rglob("*"):
            name = file.relative_to(path).as_posix()
            needed = not file.is_dir() and name not in (CARD, CHECKSUMS) and name.split("/")[0] in parts
            if needed and name not in expected:
                raise BilexError(f"{path / CHECKSUMS}: does not list all files ('{name}'); {_MODEL_AGAIN}.")
        for name in expected:
            if not (path / name).is_file():
                raise BilexError(f"{path / name}: cannot be read; {_MODEL_AGAIN}.")
        return cls(path, expected)

    def compare(self, *places: Path, but: Path | None = None) -> None:
        """Compare files, and all in folders, with their checksums, several at a time; `but` is left out."""

        def inside(name: str, *folders: Path) -> bool:
            return any((self.path / name).is_relative_to(folder) for folder in folders)

        left_out = () if but is None else (but,)
        chosen = [name for name in self.expected if inside(name, *places) and not inside(name, *left_out)]
        try:
            with ThreadPoolExecutor() as pool:
                digests = list(pool.map(lambda name: sha256(self.path / name), chosen))
        except OSError as error:
            raise BilexError(f"{error.filename}: cannot be read; {self.remedy}.") from error
        for name, digest in zip(chosen, digests, strict=True):
            if digest != self.expected[name]:
                fault = "was changed or damaged since it was saved (its checksum differs)"
                raise BilexError(f"{self.path / name}: {fault}; {self.remedy}.")


@contextlib.contextmanager
def manifest_folder(path: str | Path, kind: str) -> Iterator[Path]:
    """As `atomic_folder`, with a list of all files; an earlier folder of the same `kind` is replaced."""
    with files.atomic_folder(path, own_files=partial(_own_files, kind=kind)) as folder:
        yield folder
        write_checksums(folder, kind=kind)


def verify_manifest(path: Path, kind: str) -> bool:
    """Whether there is a folder of this kind at a path, rather than nothing or an empty folder.

    Anything else, and a file in it that is missing, damaged or added, is an error.
    """
    files.remove_abandoned(path.parent)
    files.check_replaceable(path, partial(_own_files, kind=kind))
    if not _own_files(path, kind):
        return False
    ModelFiles(path, checksums(path, kind, _START_AGAIN), _START_AGAIN).compare(path)
    return True


def _own_files(path: Path, kind: str) -> Collection[str]:
    """The files of a folder that bilex wrote; none where it has no list."""
    lists = [name for name in (CHECKSUMS, FIRST_MANIFEST) if (path / name).is_file()]
    return {*lists, *checksums(path, kind, _START_AGAIN)} if lists else ()


@contextlib.contextmanager
def optional_save(path: Path, progress: Progress) -> Iterator[None]:
    """For a block that saves the state of long work: if that cannot be written, report it and continue.

    The state that was saved earlier is still there, since folders are written whole or not at all.
    """
    try:
        yield
    except BilexError as error:
        progress.log(
            f"This state is not saved and the work continues; what was saved earlier stays in {path}: {error}"
        )
