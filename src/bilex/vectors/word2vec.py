"""word2vec's two formats, text with or without header and binary: each word and its numbers."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import itertools
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.core.progress import Progress
from bilex.core.reading import Source
from bilex.vectors.core import WordVectors
from bilex.vectors.formats import MAX_DIM, NO_VECTOR, Collector, LoadOptions, LoadReport, check_words
from bilex.vectors.stored import FloatMatrix, row_blocks

_BLOCK = 1 << 20
_LONGEST_LINE = 16 << 20
_LONGEST_WORD, _LONGEST_HEADER = 1 << 16, 64  # of binary files
_SHAPE_LINES = 50
_ENOUGH = 10
_HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*$")
_SEPARATORS = re.compile(rb"[ \t]+")
_BOM = b"\xef\xbb\xbf"
_UNFIT = r"\n|^[ \t]|[ \t]$|^$", r" |^\n|^$"  # words that text and binary cannot hold


def read_text(source: Source, options: LoadOptions, progress: Progress) -> WordVectors:
    """Read blocks of whole lines; only the matrix is ever held whole."""
    report = LoadReport(source.name, "text")
    blocks = _blocks(source)
    first = next(blocks, b"").removeprefix(_BOM)
    dim, header_bytes, announced = _find_shape(first, report)
    collector = Collector(report, dim, options, options.limit)
    line = 1 if announced is None else 2
    with progress.task(f"reading {Path(source.name).name}", source.size) as task:
        for block in itertools.chain([first[header_bytes:]], blocks):
            line = _take(block, line, collector)
            task.advance(source.newly_used())
            if collector.remaining == 0:
                break
    found = report.entries
    if announced is not None and found != announced and (collector.remaining != 0 or announced < found):
        report.notes.append(f"the header announces {announced:,} words but {found:,} lines follow")
    return collector.finish()


def _blocks(source: Source) -> Iterator[bytes]:
    """The text in blocks of whole lines."""
    while block := source.read(_BLOCK, _LONGEST_LINE):
        if len(block) - block.rfind(b"\n") > _LONGEST_LINE:
            raise BilexError(
                f"{source.name}: has a line of more than {_LONGEST_LINE >> 20} MB, which no word vector has; "
                "check that this is a file of word vectors."
            )
        yield block


def _find_shape(block: bytes, report: LoadReport) -> tuple[int, int, int | None]:
    """By the first lines: how many numbers a line has, the bytes of a header, and the count in it."""
    lines = [line for line in block.split(b"\n", _SHAPE_LINES + 1)[: _SHAPE_LINES + 1] if line.strip()]
    first_end = block.find(b"\n") + 1 or len(block)
    header = _HEADER.match(block[:first_end].rstrip(b"\n"))
    dims = Counter(filter(None, map(_trailing_numbers, lines[1:] if header else lines)))
    if not dims:
        if header is not None and len(lines) == 1:
            raise BilexError(
                f"{report.source}: ends after its header and holds no vectors; make or download it again."
            )
        raise BilexError(
            f"{report.source}: line 1 and those after it are not a word followed by numbers; "
            "check that this is a file of word vectors as UTF-8 text."
        )
    announced_dim = int(header[2]) if header else None
    dim = max(dims, key=lambda size: (dims[size], size))
    if announced_dim is not None and dims[announced_dim] * _ENOUGH >= dims.total():
        dim = announced_dim  # other counts come from words that end in a number, or from broken lines
    if dim > MAX_DIM:
        raise BilexError(f"{report.source}: line 2 has {dim:,} numbers; at most {MAX_DIM:,} can be read.")
    if header is None or (dim == 1 and announced_dim != 1):
        return dim, 0, None
    if dim != announced_dim:
        report.notes.append(
            f"the header announces {announced_dim} numbers per word but the lines have {dim}, which was used"
        )
    return dim, first_end, int(header[1])


def _trailing_numbers(line: bytes) -> int:
    """How many fields at the end of `line` are numbers, its first field being part of the word."""
    fields = reversed(_SEPARATORS.split(line.strip(b" \t\r"))[1:])
    return sum(1 for _ in itertools.takewhile(lambda field: _as_float(field) is not None, fields))


def _take(block: bytes, first_line: int, collector: Collector) -> int:
    """Parse the lines of one block for the collector; the number of the line after it."""
    from bilex.vectors.kernels import BROKEN, FINE, UNSURE, parse_lines

    report = collector.report
    rows, spans, status = parse_lines(np.frombuffer(block, np.uint8), collector.dim)
    lines = np.flatnonzero((status == FINE) | (status == UNSURE))
    for row in np.flatnonzero(status[lines] == UNSURE):
        _, start, end = spans[lines[row]]
        numbers = [_as_float(field) for field in _SEPARATORS.split(block[start:end].strip(b" \t"))]
        if None in numbers:
            status[lines[row]] = BROKEN
        else:
            with np.errstate(over="ignore"):
                rows[row] = numbers
    good = status[lines] != BROKEN
    if not good.all():
        lines, rows = lines[good], rows[good]
    broken, wanted = np.flatnonzero(status == BROKEN), collector.remaining
    if wanted is not None and len(lines) >= wanted:
        lines, rows = lines[:wanted], rows[:wanted]
        broken = broken[broken < lines[-1]]
    words = [block[start:end] for start, end in spans[lines, :2].tolist()]
    for place in (broken + first_line).tolist():
        report.leave_out(place, NO_VECTOR)
    report.entries += len(broken)
    collector.add(words, rows, (lines + first_line).tolist())
    return first_line + len(status)


def _as_float(field: bytes) -> float | None:
    """A number as Python reads it, NaN and infinity too, but no underscores."""
    if b"_" in field:
        return None
    try:
        return float(field)
    except ValueError:
        return None


def read_binary(source: Source, options: LoadOptions, progress: Progress) -> WordVectors:
    """Read a header line, then each word, a space and its float32 numbers."""
    report = LoadReport(source.name, "binary", "entry", "entries")
    buffer = source.read(_BLOCK)
    end = buffer.find(b"\n", 0, _LONGEST_HEADER)
    header = _HEADER.match(buffer[:end]) if end >= 0 else None
    if header is None:
        raise BilexError(
            f"{source.name}: does not begin with the number of words and of dimensions; "
            "check that this is word2vec's binary format."
        )
    announced, dim = int(header[1]), int(header[2])
    if not 0 < dim <= MAX_DIM or announced == 0:
        raise BilexError(
            f"{source.name}: its header announces {announced:,} words of {dim:,} numbers, "
            "which no file of word vectors has; check the file."
        )
    wanted = min(announced, options.limit or announced)
    collector = Collector(report, dim, options)
    buffer = buffer[end + 1 :]
    with progress.task(f"reading {Path(source.name).name}", source.size) as task:
        while report.entries < wanted:
            words, rows, used = _entries(buffer, dim, wanted - report.entries, report)
            collector.add(words, rows, range(report.entries + 1, report.entries + 1 + len(words)))
            chunk = source.read(_BLOCK) if report.entries < wanted else b""
            if not chunk and report.entries < wanted:
                raise BilexError(
                    f"{source.name}: is cut off, it ends inside entry {report.entries + 1:,} of "
                    f"{announced:,}; copy or download it again."
                )
            buffer = buffer[used:] + chunk
            task.advance(source.newly_used())
    if wanted == announced and (buffer.strip() or source.read(1)):
        report.notes.append(
            f"more data follows the {announced:,} words that the header announces; it was left out"
        )
    return collector.finish()


def _entries(buffer: bytes, dim: int, most: int, report: LoadReport) -> tuple[list[bytes], FloatMatrix, int]:
    """The whole entries at the beginning of `buffer`, and how many bytes they take."""
    words: list[bytes] = []
    rows: list[npt.NDArray[np.float32]] = []
    at = 0
    while len(words) < most:
        space = buffer.find(b" ", at, at + _LONGEST_WORD)
        if space < 0 and len(buffer) - at >= _LONGEST_WORD:
            raise BilexError(
                f"{report.source}: entry {report.entries + len(words) + 1:,} has no end of its word; the "
                f"header announces {dim} numbers per word, which may be wrong, or the file is damaged."
            )
        if space < 0 or space + 1 + 4 * dim > len(buffer):
            break
        words.append(buffer[at:space].lstrip(b"\n"))
        rows.append(np.frombuffer(buffer, "<f4", dim, space + 1))
        at = space + 1 + 4 * dim
    return words, np.array(rows, np.float32).reshape(len(rows), dim), at


def write(vectors: WordVectors, path: Path, *, binary: bool) -> None:
    """Write text with a header and nine digits, which keep every float32 exactly, or the binary format."""
    check_words(vectors.index_to_key, path, _UNFIT[binary])
    line = " ".join(["%.9g"] * vectors.dim) + "\n"
    words = iter(vectors.index_to_key)
    with atomic_file(path) as temporary, temporary.open("wb") as file, _packed(path, file) as packed:
        packed.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for block in row_blocks(vectors.vectors, 1024):
            if binary:
                numbers = (row.tobytes() + b"\n" for row in block.astype("<f4", copy=False))
            else:
                numbers = ((line % tuple(row)).encode() for row in block.tolist())
            packed.write(
                b"".join(word.encode() + b" " + row for row, word in zip(numbers, words, strict=False))
            )


def _packed(path: Path, file: IO[bytes]) -> AbstractContextManager[Any]:
    """A file that is packed as its suffix says; the same content gives the same bytes."""
    match path.suffix.lower():
        case ".gz":
            return gzip.GzipFile("", "wb", 6, file, mtime=0)
        case ".bz2":
            return bz2.BZ2File(file, "wb")
        case ".xz":
            return lzma.LZMAFile(file, "wb", preset=1)
    return contextlib.nullcontext(file)
