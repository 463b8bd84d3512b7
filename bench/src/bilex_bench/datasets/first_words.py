"""Fetching only the first, most frequent, words of a file of word vectors.

The words of fastText's files come in order of frequency, and the benchmark uses 200,000 of two millions: the
connection is closed when these have come.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.core.progress import SILENT, Progress
from bilex_bench.datasets.download import drop_part, fetch_part, part_of

_BLOCK = 1 << 20
_LONGEST_LINE = 16 << 20
_GZIP = 31  # zlib's window size for data with a gzip header


def download_words(
    address: str, whole: Path, target: Path, words: int, advice: str, progress: Progress = SILENT
) -> None:
    """Fetch a .vec or .vec.gz file as far as its first words go, and write these as text."""
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
    """Undoes gzip, a bounded piece at a time; plain text passes. Lines that no word has are refused."""

    def __init__(self, packed: bool) -> None:
        self._packed = packed
        self._member = zlib.decompressobj(_GZIP)
        self._since_newline = 0

    def __call__(self, block: bytes) -> Iterator[bytes]:
        """The pieces that a block unpacks to."""
        for piece in self._pieces(block) if self._packed else (block,):
            newline = piece.rfind(b"\n")
            self._since_newline = len(piece) - newline - 1 + (self._since_newline if newline < 0 else 0)
            if self._since_newline > _LONGEST_LINE:
                raise ValueError(f"a line of it has more than {_LONGEST_LINE >> 20} MB")
            yield piece

    def _pieces(self, block: bytes) -> Iterator[bytes]:
        more = True
        while block or more:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            piece = self._member.decompress(block, _BLOCK)
            yield piece
            block = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            more = len(piece) == _BLOCK and not self._member.eof


class _LineCounter:
    """Says when so many lines have come; damaged data is enough too, and is reported later."""

    def __init__(self, lines: int, packed: bool) -> None:
        self._missing = lines
        self._unpack = _Unpacker(packed)

    def __call__(self, block: bytes) -> bool:
        try:
            for piece in self._unpack(block):
                self._missing -= piece.count(b"\n")
                if self._missing <= 0:
                    return True
        except (ValueError, zlib.error):
            return True
        return False


def _unpacked(path: Path, packed: bool) -> Iterator[bytes]:
    """The text of a file in pieces; its last line is ended if it is not."""
    unpack = _Unpacker(packed)
    text = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            for piece in filter(None, unpack(block)):
                text = piece
                yield text
    if not text.endswith(b"\n"):
        yield b"\n"


def _write_words(blocks: Iterator[bytes], target: Path, words: int) -> None:
    """Write a header and the lines of the first words."""
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
