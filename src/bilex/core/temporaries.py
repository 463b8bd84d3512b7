"""Temporary names beside a destination: held while their process lives, removed when it is dead.

A temporary file or folder carries a lock of its process, which the system lets go when the process ends in
whatever way. Whoever writes beside it later removes what nobody holds. Windows has no such locks; left-over
temporaries stay there.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bilex.core.errors import BilexError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NEW, ASIDE = ".bilex-tmp", ".bilex-old"
_NAME_BYTES = 60
_TURN_SECONDS = 0.01
_NO_LOCKS = -1
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES, errno.ENOENT)


@contextlib.contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """An empty file beside `path`, removed at the end of the block unless it was renamed."""
    temporary, held = _made_and_held(path, _new_file)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        _release(held)


@contextlib.contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside `path`, removed at the end of the block unless it was renamed."""
    temporary, held = _made_and_held(path, _new_folder)
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        _release(held)


def _new_file(path: Path) -> Path:
    descriptor, name = tempfile.mkstemp(prefix=beginning(path), suffix=NEW, dir=path.parent)
    os.close(descriptor)
    return Path(name)


def _new_folder(path: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=beginning(path), suffix=NEW, dir=path.parent))


def _made_and_held(path: Path, make: Callable[[Path], Path]) -> tuple[Path, int]:
    """A new temporary beside `path` that this process holds; made anew if another took it for abandoned."""
    remove_abandoned(path.parent)
    while True:
        temporary = make(path)
        held = _hold(temporary)
        if held is not None:
            return temporary, held


@contextlib.contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until no other process or thread is in such a block for the same path."""
    lock = path.with_name(f"{beginning(path)}turn{NEW}")
    with contextlib.ExitStack() as held:
        while True:
            with contextlib.suppress(FileExistsError):
                lock.touch(exist_ok=False)
            if held.enter_context(holding(lock)) is not None:
                break
            time.sleep(_TURN_SECONDS)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


@contextlib.contextmanager
def put_aside(path: Path) -> Iterator[Path]:
    """Hold what is at `path` for a block that moves it to the name given, until the block has ended.

    If the process is killed in between, `restore` moves it back.
    """
    aside = path.with_name(f"{beginning(path)}{secrets.token_hex(4)}{ASIDE}")
    with holding(path):
        yield aside


def check_name(path: str | Path) -> None:
    """Make sure that a path is one that the system can look up; nothing need be there.

    Raises:
        BilexError: It is too long, or holds a NUL character.
    """
    try:
        os.lstat(path)
    except ValueError as error:
        raise BilexError(f"{str(path)!r}: holds a NUL character; check the name.") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise BilexError(
                f"{Path(path).name[:_NAME_BYTES]}…: cannot be read or written (too long a name); check it."
            ) from error


def restore(path: Path) -> None:
    """Move back what a killed process had put aside from `path`, if there is nothing at `path` now.

    Raises:
        BilexError: The system cannot look up the path.
    """
    check_name(path)
    if os.path.lexists(path):
        return
    for aside in _names(path.parent, beginning(path), ASIDE):
        with contextlib.suppress(OSError), holding(aside) as held:
            if held is not None and not os.path.lexists(path):
                aside.rename(path)


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files and folders of dead processes from a folder.

    What was put aside stays as long as nothing has its first name again.
    """
    for left in _names(folder, ".", NEW):
        _remove(left)
    asides = _names(folder, ".", ASIDE)
    there = {beginning(path) for path in _names(folder, "", "")} if asides else set()
    for aside in asides:
        if aside.name.removesuffix(ASIDE).rpartition(".")[0] + "." in there:
            _remove(aside)


def beginning(path: Path) -> str:
    """What the temporary names of a destination begin with: readable, short, and its own."""
    short = path.name.encode("utf-8", "surrogateescape")[:_NAME_BYTES].decode("utf-8", "ignore")
    digest = hashlib.sha256(path.name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f".{short}.{digest}."


def _names(folder: Path, start: str, end: str) -> list[Path]:
    """The entries of a folder whose names begin and end so."""
    with contextlib.suppress(OSError):
        return sorted(
            path for path in folder.iterdir() if path.name.startswith(start) and path.name.endswith(end)
        )
    return []


def _remove(left: Path) -> None:
    with contextlib.suppress(OSError), holding(left) as held:
        if held is None or held == _NO_LOCKS:
            return
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink()


@contextlib.contextmanager
def holding(path: Path) -> Iterator[int | None]:
    """Hold a path for a block.

    Yields:
        None if another process or thread holds it, or it is not there.
    """
    held = _hold(path)
    try:
        yield held
    finally:
        if held is not None:
            _release(held)


def _hold(path: Path) -> int | None:
    """Lock a file or folder for this process.

    Returns:
        A descriptor to `_release`, `_NO_LOCKS` where the system has none; None if somebody else holds the
        path or has removed it.
    """
    if fcntl is None:
        return _NO_LOCKS
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError as error:
        os.close(descriptor)
        return None if error.errno in _TAKEN else _NO_LOCKS
    if not same:
        os.close(descriptor)
        return None
    return descriptor


def _release(descriptor: int) -> None:
    if descriptor != _NO_LOCKS:
        os.close(descriptor)
