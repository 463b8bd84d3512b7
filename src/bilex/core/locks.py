"""One user of a folder at a time: a second one waits a moment, and is then refused by name.

The lock is a file beside the folder, which carries a lock of the system. It is let go when the process ends
in whatever way; what a killed process leaves is removed by the next write beside it, as every temporary file.
Systems without such locks (Windows) refuse nobody.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import written_plainly
from bilex.core.temporaries import NEW, beginning, holding

_TRIES, _PAUSE = 10, 0.05  # another process looks at left-over locks for a moment only


@contextlib.contextmanager
def exclusive_lock(path: str | Path | None) -> Iterator[None]:
    """Use a file or folder alone for a block.

    Args:
        path: The file or folder, which need not exist; None for nothing. The other processes of a torchrun
            start share the lock of the first.

    Raises:
        BilexError: Another process or thread uses it.
    """
    if path is None or os.environ.get("RANK", "0") != "0":
        yield
        return
    path = Path(os.path.realpath(path))
    lock = path.with_name(f"{beginning(path)}in-use{NEW}")
    with _parents(path), contextlib.ExitStack() as held:
        _take(path, lock, held)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


@contextlib.contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Make the folders above a path; those that are still empty after the block go again."""
    new = [folder for folder in path.parents if not folder.exists()]
    with written_plainly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the first that is not empty ends it
            for folder in new:
                folder.rmdir()


def _take(path: Path, lock: Path, held: contextlib.ExitStack) -> None:
    """Hold the lock until `held` ends.

    Raises:
        BilexError: Somebody else holds it.
    """
    for _ in range(_TRIES):
        with written_plainly(path), contextlib.suppress(FileExistsError):
            lock.touch(exist_ok=False)
        if held.enter_context(holding(lock)) is not None:
            lock.write_text(f"{os.getpid()}\n")
            return
        time.sleep(_PAUSE)
    raise BilexError(f"{path}: is in use by {_user(lock)}; wait until that has ended, or name another.")


def _user(lock: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return f"another process ({int(lock.read_text())})"
    return "another process"
