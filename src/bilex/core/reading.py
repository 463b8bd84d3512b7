"""Files of any origin: unpacked, within bounds, line by line; and a report on what was left out of them."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from bilex.core.errors import BilexError
from bilex.core.files import opened

PACKED_SUFFIXES = (".gz", ".bz2", ".xz")
GZIP, ZIP, UTF16 = b"\x1f\x8b", b"PK\x03\x04", (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LARGEST_UNPACKED = 1 << 30
_PACKED: dict[str, tuple[bytes, Callable[..., Any]]] = {
    "gzip": (GZIP, gzip.open),
    "bz2": (b"BZh", bz2.open),
    "xz": (b"\xfd7zXZ\x00", lzma.open),
}
_HEAD_BYTES = 1 << 16
_LONGEST_LINE = 16 << 20
_MOST_TIMES_LARGER, _SMALL = 200, 16 << 20
_PLACES_KEPT, _REASONS_SHOWN = 20, 4


@dataclass
class FileReport:
    """What a reader found in a file, and what it left out.

    Attributes:
        source: The name of the file.
        format: The name of the format that was read.
        unit: What `places` count, from 1: a "line", an "entry" or a "row".
        units: What `entries` counts: "lines", "entries" or "rows".
        entries: How many of them were read; blank lines, comments and a header do not count.
        left_out: How many were left out for each reason.
        places: For each reason the numbers of the first 20 that were left out.
        notes: Clauses about the file itself, such as a header that is wrong.
    """

    source: str
    format: str = ""
    unit: str = "line"
    units: str = "lines"
    entries: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def leave_out(self, place: int, reason: str) -> None:
        """Count an entry that is left out; the reader counts it among `entries`."""
        self.left_out[reason] += 1
        places = self.places.setdefault(reason, [])
        if len(places) < _PLACES_KEPT:
            places.append(place)

    def sentences(self) -> list[str]:
        """One sentence for each thing worth a warning; none for a clean file."""
        clauses = list(self.notes)
        for reason, count in self.left_out.most_common(_REASONS_SHOWN):
            places = ", ".join(map(str, self.places[reason])) + ", ..." * (count > _PLACES_KEPT)
            counted = f"{count:,} of {self.entries:,} {self.units}"
            clauses.append(f"{counted} left out ({self.unit} {places}): {reason}")
        if rest := sum(count for _, count in self.left_out.most_common()[_REASONS_SHOWN:]):
            clauses.append(f"{rest:,} of {self.entries:,} {self.units} left out for other reasons")
        return [f"{self.source}: {clause}." for clause in clauses]


class Source:
    """The bytes of a file, unpacked; `head` is their beginning, which stays to be read.

    With `largest`, what is unpacked may be neither larger than that nor suspiciously many times larger than
    the file.
    """

    def __init__(self, stream: BinaryIO, name: str, size: int, largest: int | None = None) -> None:
        self.name, self.size, self.compression = name, size, ""
        self._raw = self._stream = stream
        self._reported, self._largest = 0, 0
        start = self.read(6)
        stream.seek(0)
        for kind, (magic, unpack) in _PACKED.items():
            if start.startswith(magic):
                self.compression, self._stream, self._largest = kind, unpack(stream, "rb"), largest or 0
        self.head = self.read(_HEAD_BYTES)
        self._stream.seek(0)

    def newly_used(self) -> int:
        """How many bytes of the file, packed as it is, were used since the last call."""
        position = self._raw.tell()
        used, self._reported = position - self._reported, position
        return used

    def read(self, count: int, longest_line: int = 0) -> bytes:
        """The next `count` bytes, fewer only at the end, and up to `longest_line` more of their last line."""
        try:
            data = self._stream.read(count) + (self._stream.readline(longest_line) if longest_line else b"")
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and (self._stream is self._raw or error.errno is not None):
                raise BilexError(f"{self.name}: cannot be read ({error.strerror or error}).") from error
            raise BilexError(
                f"{self.name}: the {self.compression} data is cut off or damaged after "
                f"{self._stream.tell():,} unpacked bytes; copy or download the file again."
            ) from error
        if self._largest:
            check_unpacked(self.name, self._stream.tell(), self._raw.tell(), self._largest)
        return data


@contextlib.contextmanager
def open_source(path: Path, largest: int | None = None) -> Iterator[Source]:
    """Open a file for reading, unpacking gzip, bz2 and xz by what the file holds, not by its name."""
    with opened(path) as file:
        source = Source(file, str(path), path.stat().st_size, largest)
        if not source.head:
            raise BilexError(f"{path}: is empty; give a file with something in it.")
        yield source


def check_unpacked(name: str | Path, unpacked: int, packed: int, largest: int = LARGEST_UNPACKED) -> None:
    """Refuse a file that unpacks into too many bytes, or into suspiciously many times its size."""
    if unpacked > largest:
        raise BilexError(f"{name}: unpacks into more than {largest >> 20:,} MB; give a part of it.")
    if unpacked > max(_SMALL, _MOST_TIMES_LARGER * packed):
        raise BilexError(
            f"{name}: unpacks into more than {_MOST_TIMES_LARGER} times its size, which no dictionary does; "
            "give another file."
        )


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of UTF-8 text, or of UTF-16 text with a byte order mark, also packed; with numbers from 1."""
    number, encoding = 0, "UTF-8"
    with open_source(path, LARGEST_UNPACKED) as source:
        if source.head.startswith(ZIP):
            raise BilexError(
                f"{path}: is a spreadsheet or an archive, not text; save the sheet as CSV, tab-separated "
                "text or .xlsx."
            )
        lines: Iterable[bytes] = iter(lambda: source.read(0, _LONGEST_LINE), b"")
        try:
            if source.head.startswith(UTF16):
                encoding = "UTF-16"
                blocks = iter(lambda: source.read(_HEAD_BYTES), b"")
                lines = io.BytesIO(b"".join(blocks).decode(encoding).encode())
            for line in lines:
                if len(line) >= _LONGEST_LINE:
                    raise BilexError(f"{path}: line {number + 1} is longer than 16 MB; give another file.")
                text = line if number else line.removeprefix(codecs.BOM_UTF8)
                for piece in text.removesuffix(b"\n").removesuffix(b"\r").split(b"\r"):
                    number += 1
                    yield number, piece.decode()
        except UnicodeDecodeError as error:
            place = f"line {number} " if number else ""
            raise BilexError(
                f"{path}: {place}is not {encoding} text (byte 0x{error.object[error.start]:02x}); save the "
                "file again as UTF-8."
            ) from error
