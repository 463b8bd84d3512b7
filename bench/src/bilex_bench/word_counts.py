"""How many words a vector file has, without reading it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.files import read_json
from bilex.vectors.folder import CONFIG
from bilex.vectors.formats import sniff
from bilex.vectors.reading import open_source

_HEADER = re.compile(rb"\s*(\d+)[ \t]+\d+[ \t\r]*\n")
_UNKNOWN = 200_000
_PACKING = 2.5  # how much longer packed text is, unpacked


def word_count(path: Path) -> int:
    """The number of words: as the file states, else guessed from its size; 200,000 if nothing helps."""
    try:
        if path.is_dir():
            return int(read_json(path / CONFIG)["words"])
        with open_source(path) as source:
            kind = sniff(source)
            if kind == "npy":
                return int(np.load(path, mmap_mode="r").shape[0])
            header = _HEADER.match(source.head)
            if header:
                return int(header[1])
            if kind != "text":
                return _UNKNOWN
            lines = source.head.count(b"\n") or 1
            unpacked = source.size * (_PACKING if source.compression else 1)
            return max(lines, round(unpacked * lines / len(source.head)))
    except (BilexError, OSError, ValueError, KeyError, TypeError):
        return _UNKNOWN
