"""Locks between processes: files beside what they protect, locked by the system (filelock).

The system releases a lock when its process ends, however it ends. The next writer in the folder removes the
lock file that a killed process left.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from bilex.core.errors import BilexError

LOCK = ".bilex-lock"
WAIT_SECONDS = 0.5  # another process holds left-over locks for a moment only
_NAME_BYTES = 60
_POLL_SECONDS = 0.01


def hidden_name(path: Path) -> str:
    """The start of the names of a path's locks and temporaries: readable, short, and unique to its name."""
    name = path.name.encode("utf-8", "surrogateescape")
    return f".{name[:_NAME_BYTES].decode('utf-8', 'ignore')}.{hashlib.sha256(name).hexdigest()[:8]}."


@contextlib.contextmanager
def try_lock(lock: Path, seconds: float = 0) -> Iterator[bool | None]:
    """Hold a lock file, which is made and at the end removed, for a block.

    `seconds` is how long to wait for others, -1 for as long as it takes. The block gets True if it holds the
    lock, False if another process or thread does, and None where the file system has no locks.
    """
    from filelock import FileLock, Timeout  # translating with a saved model does without it

    held = FileLock(lock, timeout=seconds, thread_local=False)
    try:
        held.acquire(poll_interval=_POLL_SECONDS)
    except (Timeout, NotImplementedError) as error:
        yield False if isinstance(error, Timeout) else None
        return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):  # Windows removes no open file; there filelock itself does
            lock.unlink()  # while it is held: a process that waits for this inode opens the file again
        held.release()


def replacement_lock(path: Path) -> Path:
    """The lock file that writers hold for the moment in which they replace a path."""
    return path.with_name(f"{hidden_name(path)}turn{LOCK}")


@contextlib.contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until no other process or thread is in such a block for the same path."""
    with try_lock(replacement_lock(path), seconds=-1):
        yield


@contextlib.contextmanager
def exclusive_lock(path: str | Path | None) -> Iterator[None]:
    """Use a file or folder, which need not exist, alone for a block; None is nothing to lock."""
    if path is None:
        yield
        return
    path = Path(os.path.realpath(path))
    new = [folder for folder in path.parents if not folder.exists()]
    with contextlib.ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.with_name(f"{hidden_name(path)}in-use{LOCK}")
            free = held.enter_context(try_lock(lock, WAIT_SECONDS))
        except OSError as error:
            raise BilexError(f"{path}: cannot be written ({error.strerror or error}).") from error
        if free is False:
            user = "another process"
            with contextlib.suppress(OSError, ValueError):
                user += f" ({int(lock.read_text())})"
            raise BilexError(f"{path}: is in use by {user}; wait until it has ended, or name another.")
        with contextlib.suppress(OSError):
            lock.write_text(str(os.getpid()))
        yield
    with contextlib.suppress(OSError):  # ends at the first folder that is not empty
        for folder in new:
            folder.rmdir()
