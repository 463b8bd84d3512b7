"""The formats of word vectors: recognised by what a file holds, opened, unpacked, read and written."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from bilex.core.errors import BilexError
from bilex.core.files import check_ordinary, restore
from bilex.core.progress import SILENT, Progress
from bilex.vectors.core import WordVectors
from bilex.vectors.reading import LoadOptions

FORMATS = ("text", "binary", "fasttext", "npy", "safetensors")
WORD_LIST_SUFFIXES = (".txt", ".words", ".vocab")
FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
_NPY_MAGIC = b"\x93NUMPY"
_BY_SUFFIX = {".vec": "text", ".txt": "text", ".bin": "binary", ".npy": "npy", "": "safetensors"}
_HEAD_BYTES = 1 << 16
_COMPRESSIONS = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00"}
PACKED_SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
_HEADER = re.compile(rb"\s*\d+[ \t]+\d+[ \t\r]*\n")
_ENDS_IN_NUMBER = re.compile(rb"[ \t][-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t\r]*$")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LINES = 5
_UNREADABLE = (
    ((b"PK\x03\x04",), "a zip or npz archive; take out the matrix as .npy with a word list beside it"),
    (
        (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        "a Python pickle, such as gensim's save() writes; use gensim's save_word2vec_format instead",
    ),
    ((b"\xff\xfe", b"\xfe\xff"), "UTF-16 text; convert it to UTF-8"),
    ((b"\x89HDF",), "an HDF5 file; write its vectors as text or .npy instead"),
)


class Source:
    """A stream of unpacked bytes of which the beginning, `head`, can be looked at before reading.

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
        self._reported = 0
        magic = self._read(6)
        self.compression = next(
            (kind for kind, start in _COMPRESSIONS.items() if magic.startswith(start)), None
        )
        if self.compression:
            stream.seek(0)
            openers: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
            self._stream = cast(BinaryIO, openers[self.compression](stream, "rb"))
            self._unpacked = 0
            magic = b""
        self.head = magic + self._read(_HEAD_BYTES - len(magic))
        self._pending = self.head

    def newly_used(self) -> int:
        """How many bytes of the file, packed as it is, were used since the last call."""
        position = self._raw.tell()
        used, self._reported = position - self._reported, position
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
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and (self._stream is self._raw or error.errno is not None):
                raise BilexError(f"{self.name}: cannot be read ({error.strerror or error}).") from error
            raise BilexError(
                f"{self.name}: the {self.compression} data is cut off or damaged after {self._unpacked:,} "
                "unpacked bytes; copy or download the file again."
            ) from error
        self._unpacked += len(chunk)
        return chunk


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


@contextlib.contextmanager
def open_for_writing(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    """Open `path` for bytes that are packed as the `suffix` of the final name says."""
    kind = PACKED_SUFFIXES.get(suffix)
    with path.open("wb") as file:
        if kind == "gzip":  # without name and time, so that the same content gives the same bytes
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as gzipped:
                yield cast(IO[bytes], gzipped)
        elif kind == "bz2":
            with bz2.BZ2File(file, "wb") as bz2_packed:
                yield cast(IO[bytes], bz2_packed)
        elif kind == "xz":
            with lzma.LZMAFile(file, "wb", preset=1) as xz_packed:
                yield cast(IO[bytes], xz_packed)
        else:
            yield file


def sniff(path: Path) -> str:
    """The format of what stands at `path`: "text", "binary", "fasttext", "npy" or "safetensors".

    Raises:
        BilexError: There is nothing, or something that holds no word vectors.
    """
    if path.is_dir():
        return "safetensors"
    with open_source(path) as source:
        return sniff_source(source)


def sniff_source(source: Source) -> str:
    """The format of an opened file, from its first bytes."""
    head = source.head
    for starts, what in _UNREADABLE:
        if head.startswith(starts):
            raise BilexError(f"{source.name}: is {what}.")
    if head[8:10] == b'{"':
        raise BilexError(f"{source.name}: is a safetensors file; give the folder that holds it.")
    kind = "binary" if _is_word2vec_binary(head) else "text"
    if head.startswith((FASTTEXT_MAGIC, _NPY_MAGIC)):
        kind = "npy" if head.startswith(_NPY_MAGIC) else "fasttext"
        if source.compression:
            raise BilexError(f"{source.name}: is a {kind} file inside {source.compression}; unpack it first.")
    return kind


def _is_word2vec_binary(head: bytes) -> bool:
    """Whether a header of two numbers is followed by something that is no text.

    A text file shows itself by a line that ends in a number, which bytes of floats practically
    never do; a broken text file by having no control bytes.
    """
    header = _HEADER.match(head)
    if header is None:
        return False
    body = head[header.end() :]
    if any(_ENDS_IN_NUMBER.search(line[-64:]) for line in body.split(b"\n", _LINES)[:_LINES]):
        return False
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        cut_off = error.start >= len(body) - 3 and len(body) > 3
        return not cut_off or bool(_CONTROL.search(body))
    return bool(_CONTROL.search(body))


def load(
    path: Path, options: LoadOptions, format: str | None = None, progress: Progress = SILENT
) -> WordVectors:
    """Read word vectors; see `WordVectors.load`."""
    from bilex.vectors import fasttext, folder, npy, word2vec

    if format is not None and format not in FORMATS:
        raise BilexError(f"format '{format}' is not known; use {', '.join(FORMATS)}.")
    restore(path)
    if not path.exists():
        raise BilexError(f"{path}: there is no such file; check the name.")
    check_ordinary(path)
    kind = format or sniff(path)
    if kind in ("text", "binary"):
        reader = word2vec.read_text if kind == "text" else word2vec.read_binary
        with open_source(path) as source:
            return reader(source, options, progress)
    readers = {"fasttext": fasttext.read, "npy": npy.read, "safetensors": folder.read}
    return readers[kind](path, options, progress)


def save(vectors: WordVectors, path: Path, format: str | None = None, dtype: str = "float32") -> None:
    """Write word vectors; see `WordVectors.save`."""
    from bilex.vectors import folder, npy, word2vec

    kind = format or format_of_name(path)
    if kind == "safetensors":
        folder.write(vectors, path, dtype)
        return
    if dtype != "float32":
        raise BilexError(f"{path}: dtype {dtype} needs the safetensors format; {kind} holds float32.")
    writers = {"text": word2vec.write_text, "binary": word2vec.write_binary, "npy": npy.write}
    if kind not in writers:
        raise BilexError(f"{path}: format '{kind}' cannot be written; use text, binary, npy or safetensors.")
    writers[kind](vectors, path)


def files_written(path: Path, format: str | None = None) -> list[Path]:
    """The files, or the folder, that `save` would write."""
    lists = [path.with_suffix(WORD_LIST_SUFFIXES[0])] if (format or format_of_name(path)) == "npy" else []
    return [path, *lists]


def files_read(path: Path) -> list[Path]:
    """The files that `load` may read for a path."""
    lists = [path.with_suffix(suffix) for suffix in WORD_LIST_SUFFIXES] if path.suffix == ".npy" else []
    return [path, *(other for other in lists if other.exists())]


def format_of_name(path: Path) -> str:
    """The format that the suffix of a file to be written means.

    Raises:
        BilexError: The suffix means nothing.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes] or [""]
    packed = suffixes[-1] in PACKED_SUFFIXES
    kind = _BY_SUFFIX.get(suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1])
    if kind is None or (packed and kind != "text"):
        raise BilexError(
            f"{path}: its suffix names no format; use .vec, .txt (both also with .gz, .bz2 or .xz), .bin, "
            ".npy, or none for a safetensors folder."
        )
    return kind
