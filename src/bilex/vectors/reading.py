"""What every reader of word vectors shares: settings, unpacked bytes, the report, and the words kept."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.files import opened
from bilex.vectors.core import WordVectors
from bilex.vectors.stored import FloatMatrix

EncodingErrors = Literal["strict", "replace", "ignore"]

MAX_DIM = 65536
MAX_NGRAM = 255
PACKED_SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
_PACKED: dict[str, tuple[bytes, Callable[..., Any]]] = {
    "gzip": (b"\x1f\x8b", gzip.open),
    "bz2": (b"BZh", bz2.open),
    "xz": (b"\xfd7zXZ\x00", lzma.open),
}
_HEAD_BYTES = 1 << 16
_PLACES_KEPT = 20
_GROWTH = 1.1
# What trainers and tokenizers put among the words: ends of sentences, unknown words, padding, masks.
_MARKERS = """
    </s> <s> <unk> <UNK> <unknown> <UNKNOWN> <pad> <PAD> <mask> <MASK> <bos> <BOS> <eos> <EOS> <cls> <CLS>
    <sep> <SEP> [UNK] [PAD] [MASK] [CLS] [SEP] [BOS] [EOS] <|endoftext|> <|startoftext|> <|padding|>
    UNK *UNK* *unknown* _UNK_ _unk_ __UNK__ __unk__ -UNK-
"""
MARKERS = frozenset(_MARKERS.split())


@dataclass(frozen=True)
class LoadOptions:
    """How to read; see `WordVectors.load`."""

    limit: int | None = None
    lowercase: bool = False
    encoding_errors: EncodingErrors = "strict"
    verify: bool = True
    keep_markers: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise BilexError(f"limit is {self.limit}; it must be at least 1, or None for every word.")
        if self.encoding_errors not in ("strict", "replace", "ignore"):
            raise BilexError(f"encoding_errors is '{self.encoding_errors}'; use strict, replace or ignore.")


@dataclass
class Tally:
    """How often something was found, and the first places, counted from 1."""

    count: int = 0
    places: list[int] = field(default_factory=list)

    def add(self, place: int) -> None:
        """Count one more."""
        self.count += 1
        if len(self.places) < _PLACES_KEPT:
            self.places.append(place)


@dataclass
class LoadReport:
    """What a reader found in a file, left out or changed.

    Attributes:
        source: The name of the file.
        unit: What `places` count: "line" in text, "entry" or "row" elsewhere; from 1.
        format: The name of the format that was read.
        entries: How many lines or entries were read (blank lines and a header are none).
        kept: How many words have a vector in the result.
        broken: Entries that hold no word with the right number of numbers; left out.
        duplicates: Entries whose word had come before; left out, the first stays.
        not_finite: Entries with NaN or an infinite number; left out.
        zero: Entries with nothing but zeros; left out.
        markers: Entries that are no words but markers of a trainer, such as "</s>"; left out.
        merged: Entries left out because lower-casing made their word one that had come before.
        notes: Clauses about the file itself, such as a header that is wrong.
    """

    source: str
    unit: str = "line"
    format: str = ""
    entries: int = 0
    kept: int = 0
    broken: Tally = field(default_factory=Tally)
    duplicates: Tally = field(default_factory=Tally)
    not_finite: Tally = field(default_factory=Tally)
    zero: Tally = field(default_factory=Tally)
    markers: Tally = field(default_factory=Tally)
    merged: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def units(self) -> str:
        """The plural of `unit`."""
        return "entries" if self.unit == "entry" else f"{self.unit}s"

    def sentences(self) -> list[str]:
        """One sentence for each thing worth a warning; none for a clean file."""
        found = [f"{self.source}: {note}." for note in self.notes]
        for tally, reason in (
            (self.broken, "broken"),
            (self.duplicates, "the word is repeated"),
            (self.not_finite, "NaN or infinity"),
            (self.zero, "only zeros"),
        ):
            if tally.count:
                places = ", ".join(map(str, tally.places)) + ", ..." * (tally.count > len(tally.places))
                counts = f"{tally.count:,} of {self.entries:,} {self.units}"
                found.append(f"{self.source}: {counts} left out ({self.unit} {places}): {reason}.")
        if self.merged:
            words = "1 word was" if self.merged == 1 else f"{self.merged:,} words were"
            found.append(f"{self.source}: {words} merged into an earlier word by lower-casing.")
        return found


class Source:
    """The bytes of a file, unpacked; `head` is their beginning, which stays to be read."""

    def __init__(self, stream: BinaryIO, name: str, size: int) -> None:
        self.name, self.size = name, size
        self._raw = self._stream = stream
        self._reported = 0
        start = self.read(6)
        self.compression = next(
            (kind for kind, (magic, _) in _PACKED.items() if start.startswith(magic)), None
        )
        stream.seek(0)
        if self.compression:
            self._stream = _PACKED[self.compression][1](stream, "rb")
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
            return self._stream.read(count) + (self._stream.readline(longest_line) if longest_line else b"")
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and (self._stream is self._raw or error.errno is not None):
                raise BilexError(f"{self.name}: cannot be read ({error.strerror or error}).") from error
            raise BilexError(
                f"{self.name}: the {self.compression} data is cut off or damaged after "
                f"{self._stream.tell():,} unpacked bytes; copy or download the file again."
            ) from error


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open a file for reading, unpacking gzip, bz2 and xz by what the file holds, not by its name."""
    with opened(path) as file:
        source = Source(file, str(path), path.stat().st_size)
        if not source.head:
            raise BilexError(f"{path}: is empty; give a file with something in it.")
        yield source


class Collector:
    """Takes words and rows block by block; keeps the first good vector of each word.

    The matrix grows in place, so that at no time a second copy of it is needed. `limit` is how many entries
    of the file to take, not counting broken ones.
    """

    def __init__(self, report: LoadReport, dim: int, options: LoadOptions, limit: int | None = None) -> None:
        self.report, self.dim, self.remaining, self._options = report, dim, limit, options
        self._markers: frozenset[str] = frozenset() if options.keep_markers else MARKERS
        self._words: list[str] = []
        self._known: set[str] = set()
        self._spelt: set[str] = set()
        self._matrix: FloatMatrix = np.empty((0, dim), np.float32)

    def add(self, words: Sequence[bytes | str], rows: FloatMatrix, places: Sequence[int]) -> None:
        """Take the next entries of the file, at most `remaining`, with their numbers from 1.

        Bytes are decoded; an empty word makes its entry a broken one.
        """
        self.report.entries += len(words)
        self.remaining = None if self.remaining is None else self.remaining - len(words)
        texts = self._decoded(words, places)
        finite: list[bool] = np.asarray(np.isfinite(rows).all(axis=1)).tolist()
        nonzero: list[bool] = np.asarray((rows != 0).any(axis=1)).tolist()
        kept = [
            index
            for index, word in enumerate(texts)
            if self._wanted(word, finite[index], nonzero[index], places[index])
        ]
        end = len(self._words)
        if end > len(self._matrix):
            # ndarray.resize lets the C library enlarge the memory where it is, without a copy.
            self._matrix.resize((max(end, int(len(self._matrix) * _GROWTH)), self.dim), refcheck=False)
        self._matrix[end - len(kept) : end] = rows if len(kept) == len(rows) else rows[kept]

    def _decoded(self, words: Sequence[bytes | str], places: Sequence[int]) -> list[str]:
        errors, unit = self._options.encoding_errors, self.report.unit
        try:
            return [word if isinstance(word, str) else word.decode("utf-8", errors) for word in words]
        except UnicodeDecodeError as error:
            place = next(place for word, place in zip(words, places, strict=True) if word == error.object)
            where = f"{'in' if unit == 'line' else 'of'} {unit} {place:,}"
            raise BilexError(
                f"{self.report.source}: the word {where} is not UTF-8; convert the file to UTF-8, or read it "
                'with encoding_errors="replace" or "ignore".'
            ) from error

    def _wanted(self, word: str, finite: bool, nonzero: bool, place: int) -> bool:
        """Whether an entry goes into the matrix; if not, the report says why."""
        report, lowercase = self.report, self._options.lowercase
        key = word.lower() if lowercase else word
        if not word:
            report.broken.add(place)
        elif not finite:
            report.not_finite.add(place)
        elif not nonzero:
            report.zero.add(place)
        elif word in self._markers:
            report.markers.add(place)
        elif key not in self._known:
            self._known.add(key)
            self._words.append(key)
            if lowercase:
                self._spelt.add(word)
            return True
        elif lowercase and word not in self._spelt:
            report.merged += 1
            self._spelt.add(word)
        else:
            report.duplicates.add(place)
        return False

    def finish(self) -> WordVectors:
        """The words and vectors gathered; an error if most entries were broken, or nothing was left."""
        report = self.report
        report.kept = len(self._words)
        if report.broken.count * 2 > report.entries:
            raise BilexError(
                f"{report.source}: {report.broken.count:,} of {report.entries:,} {report.units} do not hold "
                f"a word and {self.dim} numbers, the first is {report.unit} {report.broken.places[0]}; "
                "check that this is a file of word vectors."
            )
        if not self._words:
            raise BilexError(f"{report.source}: holds no usable vector (all are zero, NaN or infinite).")
        self._known, self._spelt = set(), set()
        self._matrix.resize((len(self._words), self.dim), refcheck=False)
        return WordVectors(self._words, self._matrix, report=report)


def check_words(words: list[str], path: Path, forbidden: str) -> None:
    """Refuse words that a format could not give back: those that match a pattern or are not UTF-8."""
    unfit = re.compile(rf"{forbidden}|[\ud800-\udfff]")
    for word in words:
        if unfit.search(word):
            raise BilexError(
                f"{path}: the word {word!r} cannot be written in this format; "
                "save a safetensors folder instead."
            )
