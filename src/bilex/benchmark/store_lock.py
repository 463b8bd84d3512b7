"""One runner at a time on a results file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from bilex.errors import BilexError


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of a results file, `path` with ".lock" added, as long as the block lasts.

    The operating system lets go of it when the process ends, however it ends, so that a lock file left by
    a killed runner keeps nobody out. Readers do not ask for it.

    Args:
        path: The results file.

    Raises:
        BilexError: Another process holds it, or the file cannot be written.
    """
    lock = path.with_name(f"{path.name}.lock")
    descriptor = _take(lock, path)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        lock.unlink(missing_ok=True)  # while it is held: whoever waits for this inode looks again
        os.close(descriptor)


def _take(lock: Path, path: Path) -> int:
    """A descriptor of the lock file that holds the lock, of the inode that now has the name."""
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise BilexError(f"{lock}: cannot be written ({error.strerror or error}).") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace") or "another process"
            os.close(descriptor)
            raise BilexError(
                f"{path}: {holder} is writing results there; wait for it to end, or write to another file "
                "and bring the two together with 'bilex benchmark merge'."
            ) from error
        if _is_current(descriptor, lock):
            return descriptor
        os.close(descriptor)


def _is_current(descriptor: int, lock: Path) -> bool:
    """Whether the name still leads to the file of the descriptor, and not to one made after its removal."""
    try:
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except FileNotFoundError:
        return False
