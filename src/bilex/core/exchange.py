"""What the operating system offers for replacing files for good: syncing, and exchanging two folders."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux, renameat2
_RENAME_SWAP = 2  # macOS, renamex_np
_NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)


def exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step, so that a killed process leaves both names filled.

    Returns:
        Whether it was done; False where the system or the file system cannot.

    Raises:
        OSError: It can, and refused this time.
    """
    call = _exchanging_call()
    if call is None:
        return False
    if call(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_OFFERED:
        return False
    raise OSError(number, os.strerror(number), str(other))


@functools.cache
def _exchanging_call() -> Callable[[bytes, bytes], int] | None:
    """The system's call that exchanges two paths; None where there is none."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # Windows has no library without a name
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            renameat2 = library.renameat2
            return lambda one, other: int(renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE))
        if sys.platform == "darwin":
            renamex_np = library.renamex_np
            return lambda one, other: int(renamex_np(one, other, _RENAME_SWAP))
    return None


def sync_file(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    _sync(path, os.O_RDWR)


def sync_folder(path: Path) -> None:
    """Wait until a folder's list of names is on the disk; nothing where folders cannot be synced."""
    with contextlib.suppress(OSError):  # Windows opens no folders, some network disks sync none
        _sync(path, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Wait until everything in a folder is on the disk."""
    for inner, _, files in os.walk(folder):
        for name in files:
            sync_file(Path(inner, name))
        sync_folder(Path(inner))
