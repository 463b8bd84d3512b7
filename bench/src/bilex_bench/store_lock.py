"""One runner at a time on a results file."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import filelock

from bilex.core.errors import BilexError


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of a results file, `path` with ".lock" added, as long as the block lasts.

    The operating system lets go of it when the process ends, however it ends, so that a lock file left by
    a killed runner keeps nobody out. Readers do not ask for it. Who holds it stands in a second file, since
    Windows does not let others read a locked one.
    """
    path = path.resolve()  # under whatever name, the lock is the file's own
    lock = path.with_name(f"{path.name}.lock")
    note = path.with_name(f"{path.name}.lock.holder")
    held = filelock.FileLock(lock, timeout=0, thread_local=False)
    try:
        held.acquire()
        note.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
    except filelock.Timeout as error:
        raise BilexError(
            f"{path}: {_holder(note)} is writing results there; wait for it to end, or write to another file "
            "and bring the two together with 'bilex benchmark merge'."
        ) from error
    except OSError as error:
        held.release()
        raise BilexError(f"{lock}: cannot be written ({error.strerror or error}).") from error
    try:
        yield
    finally:
        note.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # Windows removes no open file; there filelock itself does
            lock.unlink()  # while it is held: whoever waits for this inode looks again
        held.release()


def _holder(note: Path) -> str:
    try:
        return note.read_text(encoding="utf-8", errors="replace")[:200] or "another process"
    except OSError:
        return "another process"
