"""Files for a first fit: chosen from an allowed folder, or uploaded in pieces."""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import filelock

from bilex.core.files import sha256
from bilex_workbench.problems import ProblemError

PIECE = 4 << 20
_LOCK = "lock"
_MOST_UPLOADS = 20
_LONGEST_NAME = 120
_MOST_LISTED = 2_000


@dataclass
class Upload:
    """A file that comes in pieces.

    Attributes:
        id: What the interface calls it.
        name: The name that it had; only its suffix is used on the disk.
        size: How many bytes it will have.
        path: Where it is kept: a name of our own, inside the folder of uploads.
        received: How many bytes are there.
        sha256: The checksum that the whole file must have, if the client gave one.
        digest: The checksum of the bytes that were received.
    """

    id: str
    name: str
    size: int
    path: Path
    received: int = 0
    sha256: str | None = None
    digest: Any = field(default_factory=hashlib.sha256)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        shown = {name: getattr(self, name) for name in ("id", "name", "size", "received")}
        return {**shown, "complete": self.received == self.size}


class Uploads:
    """The uploads of one server, in a folder of its own that carries a lock."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self.limit = folder / secrets.token_hex(8), limit
        self._found: dict[str, Upload] = {}
        self._lock = threading.Lock()
        self._held: filelock.BaseFileLock | None = None
        _remove_abandoned(folder)

    def list(self) -> list[dict[str, Any]]:
        """All uploads."""
        return [upload.as_dict() for upload in self._found.values()]

    def start(self, name: str, size: int, checksum: str | None = None) -> dict[str, Any]:
        """Announce a file."""
        with self._lock:
            taken = sum(upload.size for upload in self._found.values())
            if size < 1 or taken + size > self.limit:
                raise ProblemError(
                    413, f"Uploads may have {self.limit:,} bytes together; put large files in the folder."
                )
            if len(self._found) >= _MOST_UPLOADS:
                raise ProblemError(409, f"There are {_MOST_UPLOADS} uploads already; delete one first.")
            if self._held is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._held = filelock.FileLock(self._folder / _LOCK)
                self._held.acquire(timeout=0)
            number = secrets.token_hex(8)
            path = self._folder / f"{number}{suffix_of(name)}"
            path.touch(exist_ok=False)
            upload = Upload(number, Path(name.replace("\\", "/")).name[:_LONGEST_NAME], size, path)
            upload.sha256 = checksum
            self._found[number] = upload
            return upload.as_dict()

    def add(self, number: str, offset: int, piece: bytes) -> dict[str, Any]:
        """Add a piece at the end of what is there.

        What an earlier piece left behind when it could not be written is overwritten or cut off.
        """
        with self._lock:
            upload = self._get(number)
            if offset != upload.received:
                raise ProblemError(409, f"The next piece begins at byte {upload.received}, not {offset}.")
            if upload.received + len(piece) > upload.size:
                raise ProblemError(413, f"The file was announced with {upload.size:,} bytes; this is more.")
            try:
                with upload.path.open("r+b") as file:
                    file.seek(upload.received)
                    file.write(piece)
                    file.truncate()
            except OSError as error:
                raise ProblemError(
                    507, f"The piece could not be written ({error.strerror or error}); send it again."
                ) from error
            upload.received += len(piece)
            upload.digest.update(piece)
            return upload.as_dict()

    def describe(self, number: str) -> dict[str, Any]:
        """How much of an upload is there."""
        return self._get(number).as_dict()

    def delete(self, number: str) -> None:
        """Remove an upload."""
        with self._lock:
            self._get(number).path.unlink(missing_ok=True)
            del self._found[number]

    def path(self, number: str) -> Path:
        """Where a whole upload lies."""
        upload = self._get(number)
        if upload.received != upload.size:
            raise ProblemError(
                409, f"'{upload.name}' is not complete: {upload.received:,} of {upload.size:,} bytes."
            )
        received = upload.digest.hexdigest()
        if received != sha256(upload.path) or upload.sha256 not in (None, received):
            self.delete(number)
            raise ProblemError(409, f"'{upload.name}' was damaged on its way; upload it again.")
        return upload.path

    def clear(self) -> None:
        """Remove all uploads."""
        with self._lock:
            self._found.clear()
            if self._held is not None:
                self._held.release()
                self._held = None
                shutil.rmtree(self._folder, ignore_errors=True)
        _remove_abandoned(self._folder.parent)

    def _get(self, number: str) -> Upload:
        if number not in self._found:
            raise ProblemError(404, "There is no such upload.")
        return self._found[number]


def _remove_abandoned(folder: Path) -> None:
    """Remove the uploads of servers that are gone: the folders of our naming whose lock is free."""
    for left in folder.glob("*/") if folder.is_dir() else ():
        lock = filelock.FileLock(left / _LOCK)
        if not re.fullmatch("[0-9a-f]{16}", left.name) or left.is_symlink():
            continue
        with contextlib.suppress(filelock.Timeout, OSError):
            lock.acquire(timeout=0)
            shutil.rmtree(left, ignore_errors=True)
            lock.release()
    with contextlib.suppress(OSError):
        folder.rmdir()  # if nothing else is in it


def suffix_of(name: str) -> str:
    """The suffixes of a name, as '.vec.gz', of plain letters and digits only."""
    last = re.split(r"[/\\]", name)[-1]
    found = re.search(r"(\.[A-Za-z0-9]{1,12}){1,2}$", last)
    return found[0] if found else ""


def inside(folder: Path | None, path: str) -> Path:
    """A path inside the allowed folder, links followed."""
    if folder is None:
        raise ProblemError(
            409, "No folder was allowed; start with 'bilex serve --folder FOLDER', or upload files."
        )
    root = folder.resolve()
    try:
        found = (root / path).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise ProblemError(404, "There is no such file in the allowed folder.") from error
    hidden = not found.is_relative_to(root) or any(
        part.startswith(".") for part in (*found.relative_to(root).parts, *Path(path).parts)
    )
    if hidden:
        raise ProblemError(404, "There is no such file in the allowed folder.")
    return found


def listing(folder: Path | None, path: str) -> dict[str, Any]:
    """What a folder inside the allowed one holds: folders first, hidden names left out."""
    here = inside(folder, path)
    assert folder is not None
    root = folder.resolve()
    if not here.is_dir():
        raise ProblemError(404, "That is no folder.")
    entries = []
    for one in sorted(here.iterdir(), key=lambda one: one.name)[:_MOST_LISTED]:
        if one.name.startswith("."):
            continue
        try:
            found = one.resolve(strict=True)
            if not found.is_relative_to(root):
                continue
            kind = "folder" if found.is_dir() else "file"
            size = found.stat().st_size if kind == "file" else None
        except OSError:
            continue
        where = one.relative_to(root).as_posix()
        entries.append({"name": one.name, "path": where, "kind": kind, "size": size})
    entries.sort(key=lambda one: (one["kind"] != "folder", one["name"]))
    at = here.relative_to(root)
    parent = None if here == root else at.parent.as_posix().removeprefix(".")
    return {"path": "" if here == root else at.as_posix(), "parent": parent, "entries": entries}
