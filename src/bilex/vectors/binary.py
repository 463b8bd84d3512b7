"""word2vec's binary format: a header line, then each word, a space and its float32 numbers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.core.progress import SILENT, Progress
from bilex.vectors.collector import Collector, cautious
from bilex.vectors.core import WordVectors
from bilex.vectors.options import MAX_DIM, LoadOptions
from bilex.vectors.report import LoadReport
from bilex.vectors.source import Source, open_for_writing
from bilex.vectors.stored import FloatMatrix, row_blocks
from bilex.vectors.text import check_words

_BLOCK = 1 << 20
_LONGEST_WORD = 1 << 16
_LONGEST_HEADER = 64
_HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*$")


def read(source: Source, options: LoadOptions, progress: Progress = SILENT) -> WordVectors:
    """Read word2vec's binary format.

    Raises:
        BilexError: The header is none, the file is cut off, or a word is not in UTF-8.
    """
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
    most = cautious(wanted, dim) if source.compression else source.size // (4 * dim) + 1
    collector = Collector(report, dim, min(wanted, most), options, options.limit)
    buffer = buffer[end + 1 :]
    with progress.task(f"reading {Path(source.name).name}", source.size) as task:
        while report.entries < wanted:
            words, rows, used = _entries(buffer, dim, wanted - report.entries, source.name, report, options)
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
    buffer: bytes, dim: int, most: int, name: str, report: LoadReport, options: LoadOptions
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
                    f"{name}: entry {report.entries + len(words) + 1:,} has no end of its word; the header "
                    f"announces {dim} numbers a word, which may be wrong, or the file is damaged."
                )
            break
        if space + 1 + 4 * dim > len(buffer):
            break
        try:
            words.append(buffer[at:space].lstrip(b"\n").decode("utf-8", options.encoding_errors))
        except UnicodeDecodeError as error:
            raise BilexError(
                f"{name}: the word of entry {report.entries + len(words) + 1:,} is not UTF-8; if the header "
                'is right, read it with encoding_errors="replace" or "ignore".'
            ) from error
        starts.append(space + 1)
        at = space + 1 + 4 * dim
    rows = np.empty((len(starts), dim), np.float32)
    for row, start in zip(rows, starts, strict=True):
        row[:] = np.frombuffer(buffer, "<f4", dim, start)
    return words, rows, at


def write(vectors: WordVectors, path: Path) -> None:
    """Write word2vec's binary format.

    Raises:
        BilexError: A word holds a space or begins with a newline, or the file cannot be written.
    """
    check_words(vectors.index_to_key, path, re.compile(r" |^\n|^$"))
    with atomic_file(path) as temporary, open_for_writing(temporary, path.suffix) as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        words = iter(vectors.index_to_key)
        for block in row_blocks(vectors.vectors):
            for row, word in zip(block.astype("<f4", copy=False), words, strict=False):
                file.write(word.encode("utf-8") + b" " + row.tobytes() + b"\n")
