"""Files opened as memory: pages come in when they are touched."""

from __future__ import annotations

import mmap
from pathlib import Path

from bilex.core.errors import BilexError


def mapped_file(path: Path) -> mmap.mmap:
    """The bytes of a file, read-only, without reading them.

    Raises:
        BilexError: The file is missing, empty or cannot be read.
    """
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise BilexError(f"{path}: is empty; make or download it again.")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}).") from error
