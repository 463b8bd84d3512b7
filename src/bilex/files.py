"""Writing files so that a reader never meets half of one."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from bilex.errors import BilexError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def _told_plainly(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal to write `path` into one sentence."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        if _error_number(error) in _DISK_FULL:
            raise BilexError(
                f"{path}: the disk is full; nothing was written there; free some space and run again."
            ) from error
        raise BilexError(f"{path}: cannot be written ({getattr(error, 'strerror', '') or error}).") from error


def _error_number(error: OSError | SafetensorError) -> int | None:
    """The operating system's number of an error; safetensors gives it only in its message."""
    if isinstance(error, OSError):
        return error.errno
    told = re.search(r"os error (\d+)", str(error))
    return int(told[1]) if told else None


@contextlib.contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its name when the block ends well.

    After an error or Ctrl-C the temporary file is removed and an earlier `path` is as it was.
    """
    path = Path(path)
    with _told_plainly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".tmp", dir=path.parent)
        os.close(descriptor)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: str | Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary folder beside `path` that takes its name when the block ends well.

    Args:
        path: The folder to make.
        overwrite: Whether an existing folder may be replaced.

    Raises:
        BilexError: The folder cannot be written, or exists and may not be replaced.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise BilexError(f"{path}: is a file, a folder is to be written there; choose another name.")
    if path.exists() and not overwrite:
        raise BilexError(f"{path}: exists already; choose another name or remove it first.")
    with _told_plainly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", suffix=".tmp", dir=path.parent))
        try:
            yield temporary
            _open_to_others(temporary)
            _swap_folders(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _swap_folders(new: Path, path: Path) -> None:
    """Put folder `new` in the place of `path`, which may hold an older one."""
    if not path.exists():
        new.replace(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", suffix=".old", dir=path.parent))
    try:
        path.replace(old)
        new.replace(path)
    finally:
        if not path.exists():  # an error or Ctrl-C came between the two
            old.replace(path)
        shutil.rmtree(old, ignore_errors=True)


def _open_to_others(folder: Path) -> None:
    """Give all that is in a folder the modes that the user's umask asks for; some writers make it private."""
    mask = _umask()
    folder.chmod(0o777 & ~mask)
    for path in folder.rglob("*"):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        BilexError: The file is missing or is not JSON.
    """
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except ValueError as error:
        raise BilexError(f"{path}: is not valid JSON ({error}); restore it or make it again.") from error


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
