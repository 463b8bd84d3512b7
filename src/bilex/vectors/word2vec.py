"""word2vec's two formats, text with or without header and binary: each word and its numbers."""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.core.progress import SILENT, Progress
from bilex.vectors.core import WordVectors
from bilex.vectors.formats import Source, open_for_writing
from bilex.vectors.reading import MAX_DIM, Collector, LoadOptions, LoadReport, believable_rows, check_words
from bilex.vectors.stored import FloatMatrix, row_blocks

_BLOCK = 1 << 20
_LONGEST_LINE = 16 << 20
_LONGEST_WORD, _LONGEST_HEADER = 1 << 16, 64  # of binary files
_SHAPE_LINES = 50
_ENOUGH = 10
_HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*$")
_SEPARATORS = re.compile(rb"[ \t]+")
_BOM = b"\xef\xbb\xbf"

Parsed = tuple[FloatMatrix, npt.NDArray[np.int64], npt.NDArray[np.int8]]


@dataclass(frozen=True)
class _Shape:
    """What the first lines say: how many numbers per line, and the count of a header if there is one."""

    dim: int
    header_bytes: int = 0
    announced: int | None = None


def read_text(source: Source, options: LoadOptions, progress: Progress = SILENT) -> WordVectors:
    """Read blocks of whole lines, which several threads parse; only the matrix is ever held whole."""
    report = LoadReport(source.name, "line", "text")
    blocks = _blocks(source)
    first = next(blocks, b"")
    start = len(_BOM) if first.startswith(_BOM) else 0
    shape = _find_shape(first[start:], report)
    first = first[start + shape.header_bytes :]
    expected = believable_rows(shape.announced, shape.dim)
    if source.compression is None and first:
        expected = _expected_lines(source.size, first, shape)
    collector = Collector(report, shape.dim, expected, options, options.limit)
    line = 2 if shape.announced is not None else 1
    with progress.task(f"reading {Path(source.name).name}", source.size) as task:
        for block, parsed in _parsed(first, blocks, shape.dim):
            line = _take(block, parsed, line, collector, options.encoding_errors)
            task.advance(source.newly_used())
            if collector.remaining == 0:
                break
    if shape.announced is not None:
        _check_count(shape.announced, report, options.limit)
    return collector.finish()


def _blocks(source: Source) -> Iterator[bytes]:
    """The text in blocks of whole lines."""
    rest = b""
    while chunk := source.read(_BLOCK):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
        if len(rest) > _LONGEST_LINE:
            raise BilexError(
                f"{source.name}: has a line of more than {_LONGEST_LINE >> 20} MB, which no word vector has; "
                "check that this is a file of word vectors."
            )
    if rest:
        yield rest


def _find_shape(block: bytes, report: LoadReport) -> _Shape:
    """Decide from the first lines whether there is a header and how many numbers a line has."""
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
        return _Shape(dim)
    if dim != announced_dim:
        report.notes.append(
            f"the header announces {announced_dim} numbers per word but the lines have {dim}, which was used"
        )
    return _Shape(dim, first_end, int(header[1]))


def _trailing_numbers(line: bytes) -> int:
    """How many fields at the end of `line` are numbers, its first field being part of the word."""
    count = 0
    for field in reversed(_SEPARATORS.split(line.strip(b" \t\r"))[1:]):
        if _as_float(field) is None:
            break
        count += 1
    return count


def _expected_lines(size: int, block: bytes, shape: _Shape) -> int:
    """How many lines the file has, by the length of the first ones; the header's word if that is near."""
    by_length = int(1.02 * size / len(block) * (block.count(b"\n") + 1)) + 1
    possible = size // (2 * shape.dim) + 1
    if shape.announced is not None and 0.5 * by_length < shape.announced < 2 * by_length:
        return min(shape.announced, possible)
    return min(by_length, possible)


def _parsed(first: bytes, blocks: Iterator[bytes], dim: int) -> Iterator[tuple[bytes, Parsed]]:
    """Each block with its parsed lines, in order; small files without starting threads."""
    if len(first) < _BLOCK // 2:
        yield first, _parse(first, dim)
        first = next(blocks, b"")
        if not first:
            return
    workers = min(8, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[bytes, Future[Parsed]]] = deque([(first, pool.submit(_parse, first, dim))])
        for block in blocks:
            waiting.append((block, pool.submit(_parse, block, dim)))
            if len(waiting) > workers:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()


def _parse(block: bytes, dim: int) -> Parsed:
    from bilex.vectors.kernels import parse_lines

    parsed: Parsed = parse_lines(np.frombuffer(block, np.uint8), dim)
    return parsed


def _take(block: bytes, parsed: Parsed, first_line: int, collector: Collector, errors: str) -> int:
    """Hand the lines of one block to the collector; the number of the line after it."""
    from bilex.vectors.kernels import BLANK, BROKEN, UNSURE

    rows, spans, status = parsed
    following = first_line + len(status)
    filled = (status != BROKEN) & (status != BLANK)
    for row, line in zip(
        np.flatnonzero(status[filled] == UNSURE), np.flatnonzero(status == UNSURE), strict=True
    ):
        numbers = _slow_numbers(block[spans[line, 1] : spans[line, 2]])
        if numbers is None:
            status[line] = BROKEN
        else:
            with np.errstate(over="ignore"):
                rows[row] = numbers
    good = status[filled] != BROKEN
    lines = np.flatnonzero(filled & (status != BROKEN))
    broken = np.flatnonzero(status == BROKEN)
    if not good.all():
        rows = rows[good]
    wanted = collector.remaining
    if wanted is not None and len(lines) > wanted:
        broken = broken[broken < lines[wanted]]
        lines, rows = lines[:wanted], rows[:wanted]
    words = _words(block, spans[lines], lines + first_line, collector.report.source, errors)
    collector.broken(broken + first_line)
    collector.add(words, rows, lines + first_line)
    return following


def _words(
    block: bytes, spans: npt.NDArray[np.int64], places: npt.NDArray[np.int64], name: str, errors: str
) -> list[str]:
    """The words of the lines."""
    words = []
    for index, (start, end) in enumerate(zip(spans[:, 0].tolist(), spans[:, 1].tolist(), strict=True)):
        try:
            words.append(block[start:end].decode("utf-8", errors))
        except UnicodeDecodeError as error:
            raise BilexError(
                f"{name}: the word in line {places[index]} is not UTF-8; convert the file to UTF-8, "
                'or read it with encoding_errors="replace" or "ignore".'
            ) from error
    return words


def _slow_numbers(text: bytes) -> list[float] | None:
    """The numbers in `text`, parsed by Python; None if one of them is none."""
    fields = _SEPARATORS.split(text.strip(b" \t"))
    numbers = [number for field in fields if (number := _as_float(field)) is not None]
    return numbers if len(numbers) == len(fields) else None


def _as_float(field: bytes) -> float | None:
    """A number as Python reads it, NaN and infinity too, but no underscores."""
    if b"_" in field:
        return None
    try:
        return float(field)
    except ValueError:
        return None


def _check_count(announced: int, report: LoadReport, limit: int | None) -> None:
    """Write down a header whose number of words is not that of the lines."""
    found = report.entries
    reached_limit = limit is not None and found - report.broken.count >= limit
    if found != announced and not (reached_limit and announced >= found):
        report.notes.append(f"the header announces {announced:,} words but {found:,} lines follow")


def write_text(vectors: WordVectors, path: Path) -> None:
    """Write text with a header and nine digits, which keep every float32 exactly."""
    check_words(vectors.index_to_key, path, re.compile(r"\n|^[ \t]|[ \t]$|^$"))
    line = " ".join(["%.9g"] * vectors.dim) + "\n"
    with atomic_file(path) as temporary, open_for_writing(temporary, path.suffix.lower()) as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for start in range(0, len(vectors), 1024):
            rows = np.asarray(vectors.vectors[start : start + 1024]).tolist()
            words = vectors.index_to_key[start : start + 1024]
            text = "".join([word + " " + line % tuple(row) for word, row in zip(words, rows, strict=True)])
            file.write(text.encode("utf-8"))


def read_binary(source: Source, options: LoadOptions, progress: Progress = SILENT) -> WordVectors:
    """Read a header line, then each word, a space and its float32 numbers."""
    report = LoadReport(source.name, "entry", "binary")
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
    most = believable_rows(wanted, dim) if source.compression else source.size // (4 * dim) + 1
    collector = Collector(report, dim, min(wanted, most), options, options.limit)
    buffer = buffer[end + 1 :]
    with progress.task(f"reading {Path(source.name).name}", source.size) as task:
        while report.entries < wanted:
            words, rows, used = _entries(buffer, dim, wanted - report.entries, report, options)
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


def _entries(
    buffer: bytes, dim: int, most: int, report: LoadReport, options: LoadOptions
) -> tuple[list[str], FloatMatrix, int]:
    """The whole entries at the beginning of `buffer`, and how many bytes they take."""
    words: list[str] = []
    starts: list[int] = []
    at = 0
    while len(words) < most:
        space = buffer.find(b" ", at, at + _LONGEST_WORD)
        if space < 0:
            if len(buffer) - at >= _LONGEST_WORD:
                raise BilexError(
                    f"{report.source}: entry {report.entries + len(words) + 1:,} has no end of its word; the "
                    f"header announces {dim} numbers per word, which may be wrong, or the file is damaged."
                )
            break
        if space + 1 + 4 * dim > len(buffer):
            break
        try:
            words.append(buffer[at:space].lstrip(b"\n").decode("utf-8", options.encoding_errors))
        except UnicodeDecodeError as error:
            raise BilexError(
                f"{report.source}: the word of entry {report.entries + len(words) + 1:,} is not UTF-8; if "
                'the header is right, read it with encoding_errors="replace" or "ignore".'
            ) from error
        starts.append(space + 1)
        at = space + 1 + 4 * dim
    rows = np.empty((len(starts), dim), np.float32)
    for row, start in zip(rows, starts, strict=True):
        row[:] = np.frombuffer(buffer, "<f4", dim, start)
    return words, rows, at


def write_binary(vectors: WordVectors, path: Path) -> None:
    """Write word2vec's binary format."""
    check_words(vectors.index_to_key, path, re.compile(r" |^\n|^$"))
    with atomic_file(path) as temporary, open_for_writing(temporary, path.suffix) as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        words = iter(vectors.index_to_key)
        for block in row_blocks(vectors.vectors):
            for row, word in zip(block.astype("<f4", copy=False), words, strict=False):
                file.write(word.encode("utf-8") + b" " + row.tobytes() + b"\n")
