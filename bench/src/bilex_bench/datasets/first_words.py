"""Fetching only the first, most frequent, words of a file of word vectors.

The words of fastText's files come in order of frequency, and the benchmark uses 200,000 of two millions: the
connection is closed when these have come.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from bilex.errors import BilexError
from bilex.files import atomic_file
from bilex.progress import SILENT, Progress
from bilex_bench.datasets.download import drop_part, fetch_part, part_of

_BLOCK = 1 << 20
_GZIP = 31  # zlib's window size for data with a gzip header


def download_words(
    address: str, whole: Path, target: Path, words: int, advice: str, progress: Progress = SILENT
) -> None:
    """Fetch a .vec or .vec.gz file as far as its first words go, and write these as text.

    Args:
        address: Where the whole file lies.
        whole: Where the whole file would stand; what has come is kept beside it, as for the whole.
        target: The file to write, in word2vec's text format with a header.
        words: How many words to take; all if the file has fewer.
        advice: What to do without a network.
        progress: Takes reports of progress.

    Raises:
        BilexError: The file cannot be fetched or written, or is no such file.
    """
    packed = whole.suffix == ".gz"
    fetch_part(
        address, whole, enough=lambda: _LineCounter(words + 1, packed), advice=advice, progress=progress
    )
    try:
        _write_words(_unpacked(part_of(whole), packed), target, words)
    except (ValueError, zlib.error) as error:
        drop_part(whole)
        raise BilexError(
            f"{address}: what came is no file of word vectors ({error}); run the same command again."
        ) from error
    drop_part(whole)


class _Unpacker:
    """Undoes gzip block by block; passes plain text through."""

    def __init__(self, packed: bool) -> None:
        self._packed = packed
        self._member = zlib.decompressobj(_GZIP)

    def __call__(self, block: bytes) -> bytes:
        if not self._packed:
            return block
        text = self._member.decompress(block)
        while self._member.eof and self._member.unused_data:
            rest = self._member.unused_data
            self._member = zlib.decompressobj(_GZIP)
            text += self._member.decompress(rest)
        return text


class _LineCounter:
    """Says when so many lines have come; damaged data is enough too, and is told later."""

    def __init__(self, lines: int, packed: bool) -> None:
        self._missing = lines
        self._unpack = _Unpacker(packed)

    def __call__(self, block: bytes) -> bool:
        try:
            self._missing -= self._unpack(block).count(b"\n")
        except zlib.error:
            return True
        return self._missing <= 0


def _unpacked(path: Path, packed: bool) -> Iterator[bytes]:
    """The text of a file; its last line is ended if it is not."""
    unpack = _Unpacker(packed)
    text = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            text = unpack(block)
            yield text
    if not text.endswith(b"\n"):
        yield b"\n"


def _write_words(blocks: Iterator[bytes], target: Path, words: int) -> None:
    """Write a header and the lines of the first words.

    Raises:
        ValueError: The text does not begin with the number of words and of dimensions.
    """
    text = b""
    for block in blocks:
        text += block
        if b"\n" in text:
            break
    header, _, text = text.partition(b"\n")
    available, dim = map(int, header.split())
    missing = words = min(available, words)
    with atomic_file(target) as temporary, temporary.open("wb") as file:
        file.write(b"%d %d\n" % (words, dim))
        while missing:
            lines = text.count(b"\n")
            file.write(text if lines < missing else _first_lines(text, missing))
            missing -= min(lines, missing)
            if missing:
                text = next(blocks, b"")
                if not text:
                    raise ValueError(f"{missing:,} words are missing at its end")


def _first_lines(text: bytes, count: int) -> bytes:
    end = -1
    for _ in range(count):
        end = text.index(b"\n", end + 1)
    return text[: end + 1]
