"""Files opened as memory: pages come in when they are touched."""

from __future__ import annotations

import mmap
import weakref
from pathlib import Path

from bilex.core.errors import BilexError

_maps: weakref.WeakKeyDictionary[mmap.mmap, Path] = weakref.WeakKeyDictionary()


def mapped_file(path: Path) -> mmap.mmap:
    """The bytes of a file, read-only, without reading them.

    Raises:
        BilexError: The file is missing, empty or cannot be read.
    """
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise BilexError(f"{path}: is empty; make or download it again.")
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}).") from error
    _maps[content] = path
    return content


def check_mapped_files() -> None:
    """Make sure that no open file was cut off: to read beyond its end would kill the process (SIGBUS).

    Raises:
        BilexError: One was.
    """
    for content, path in list(_maps.items()):
        if not content.closed and content.size() < len(content):
            raise BilexError(f"{path}: was cut off while it was open; copy or make it again.")
