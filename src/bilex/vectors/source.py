"""The bytes of a file, unpacked if need be, with the system's complaints in plain words."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from bilex.core.errors import BilexError

HEAD_BYTES = 1 << 16
COMPRESSIONS = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00"}
SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}


class Source:
    """A stream of unpacked bytes of which the beginning can be looked at before reading.

    Args:
        stream: Where the bytes come from.
        name: What to call it in messages.
        size: The size of the file, packed or not.
    """

    def __init__(self, stream: BinaryIO, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self._raw = stream
        self._stream = stream
        self._unpacked = 0
        self._told = 0
        magic = self._read(6)
        self.compression = next(
            (kind for kind, start in COMPRESSIONS.items() if magic.startswith(start)), None
        )
        if self.compression:
            stream.seek(0)
            self._stream = _unpacker(self.compression, stream)
            self._unpacked = 0
            self.head = self._read(HEAD_BYTES)
        else:
            self.head = magic + self._read(HEAD_BYTES - len(magic))
        self._pending = self.head

    def newly_used(self) -> int:
        """How many bytes of the file, packed as it is, were used since this was last asked."""
        position = self._raw.tell()
        used, self._told = position - self._told, position
        return used

    def read(self, count: int) -> bytes:
        """The next `count` bytes; fewer only at the end.

        Raises:
            BilexError: The file cannot be read or its packing is damaged.
        """
        if not self._pending:
            return self._read(count)
        taken, self._pending = self._pending[:count], self._pending[count:]
        return taken + self._read(count - len(taken)) if len(taken) < count else taken

    def _read(self, count: int) -> bytes:
        try:
            chunk = self._stream.read(count)
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise self._damaged() from error
        except OSError as error:
            if self._stream is not self._raw and error.errno is None:
                raise self._damaged() from error
            raise BilexError(f"{self.name}: cannot be read ({error.strerror or error}).") from error
        self._unpacked += len(chunk)
        return chunk

    def _damaged(self) -> BilexError:
        return BilexError(
            f"{self.name}: the {self.compression} data is cut off or damaged after {self._unpacked:,} "
            "unpacked bytes; copy or download the file again."
        )


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open a file for reading, unpacking gzip, bz2 and xz by what the file holds, not by its name.

    Raises:
        BilexError: The file is missing, empty or cannot be read.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}).") from error
    with file:
        source = Source(file, str(path), path.stat().st_size)
        if not source.head:
            raise BilexError(f"{path}: is empty; give a file with something in it.")
        yield source


def memory_source(content: bytes, name: str = "memory") -> Source:
    """Bytes in memory as a source."""
    return Source(io.BytesIO(content), name, len(content))


def _unpacker(compression: str, stream: BinaryIO) -> BinaryIO:
    if compression == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
    if compression == "bz2":
        return cast(BinaryIO, bz2.BZ2File(stream, "rb"))
    return cast(BinaryIO, lzma.LZMAFile(stream, "rb"))


class _TimelessGzip(gzip.GzipFile):
    """A gzip file without name and time of its making in it, so that the same content gives the same bytes.

    Args:
        path: The file to write.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        super().__init__(filename="", mode="wb", fileobj=self._file, compresslevel=6, mtime=0)

    def close(self) -> None:
        """Write what is left, and close the file below too."""
        try:
            super().close()
        finally:
            self._file.close()


def open_for_writing(path: Path, suffix: str) -> BinaryIO:
    """Open `path` for bytes that are packed as the `suffix` of the final name says."""
    kind = SUFFIXES.get(suffix)
    if kind == "gzip":
        return cast(BinaryIO, _TimelessGzip(path))
    if kind == "bz2":
        return cast(BinaryIO, bz2.open(path, "wb"))
    if kind == "xz":
        return cast(BinaryIO, lzma.open(path, "wb", preset=1))
    return path.open("wb")
