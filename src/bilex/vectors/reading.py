"""What every reader of word vectors shares: its settings, its report, and the matrix of the words kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.vectors.core import WordVectors
from bilex.vectors.stored import FloatMatrix

EncodingErrors = Literal["strict", "replace", "ignore"]

MAX_DIM = 65536
MAX_NGRAM = 255
_PLACES_KEPT = 20
_FIRST_BYTES = 64 << 20
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
    """How often something was met, and where the first times, counted from 1."""

    count: int = 0
    places: list[int] = field(default_factory=list)

    def add(self, place: int) -> None:
        """Count one more."""
        self.count += 1
        if len(self.places) < _PLACES_KEPT:
            self.places.append(place)

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass
class LoadReport:
    """The account of one reading: everything that was not taken over as it stood.

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
        notes: Whole clauses on the file itself, such as a header that lies.
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
        for tally, one, many in (
            (self.broken, "is broken", "are broken"),
            (self.duplicates, "repeats a word", "repeat a word"),
            (self.not_finite, "holds NaN or infinity", "hold NaN or infinity"),
            (self.zero, "holds only zeros", "hold only zeros"),
        ):
            if tally.count == 1:
                found.append(f"{self.source}: {self.unit} {tally.places[0]} {one} and was left out.")
            elif tally:
                listed = ", ".join(map(str, tally.places))
                more = ", ..." if tally.count > len(tally.places) else ""
                found.append(
                    f"{self.source}: {tally.count:,} {self.units} ({listed}{more}) {many} and were left out."
                )
        if self.merged:
            words = "1 word was" if self.merged == 1 else f"{self.merged:,} words were"
            found.append(f"{self.source}: {words} merged into an earlier word by lower-casing.")
        return found


def believable_rows(announced: int | None, dim: int) -> int:
    """How many rows to allocate at first when only the header says how many there are, or nothing does.

    A header that promises a billion words must not cost the memory for them.
    """
    most = _FIRST_BYTES // (4 * dim) + 1
    return most if announced is None else min(announced, most)


class Collector:
    """Takes words and rows block by block; keeps the first good vector of each word.

    The matrix grows in place, so that at no time a second copy of it is needed.

    Args:
        report: Where to write down what is left out.
        dim: The length of a vector.
        expected: How many entries will probably come, measured by the size of the file, not by its header.
        options: Whether to lower-case the words and to keep markers.
        limit: Take no more than so many entries of the file, broken ones not counted; None for all.
    """

    def __init__(
        self, report: LoadReport, dim: int, expected: int, options: LoadOptions, limit: int | None
    ) -> None:
        self.report = report
        self.dim = dim
        self._limit = limit
        self._taken = 0
        self._lowercase = options.lowercase
        self._markers: frozenset[str] = frozenset() if options.keep_markers else MARKERS
        self._words: list[str] = []
        self._known: set[str] = set()
        self._spelt: set[str] = set()
        capacity = expected if limit is None else min(expected, limit)
        self._matrix: FloatMatrix = np.empty((max(1, capacity), dim), np.float32)

    @property
    def remaining(self) -> int | None:
        """How many more entries are wanted; None for all there are."""
        return None if self._limit is None else self._limit - self._taken

    def broken(self, places: npt.NDArray[np.int64]) -> None:
        """Write down entries that hold no word with the right number of numbers."""
        self.report.entries += len(places)
        for place in places.tolist():
            self.report.broken.add(place)

    def add(
        self, words: Sequence[str], rows: FloatMatrix, places: Sequence[int] | npt.NDArray[np.int64]
    ) -> None:
        """Take the next entries of the file, no more than `remaining`.

        Args:
            words: The word of each; an empty word makes the entry a broken one.
            rows: Its vector.
            places: Its line or entry number, counted from 1.
        """
        self.report.entries += len(words)
        self._taken += len(words)
        finite: list[bool] = np.asarray(np.isfinite(rows).all(axis=1)).tolist()
        nonzero: list[bool] = np.asarray((rows != 0).any(axis=1)).tolist()
        kept = [
            index
            for index, word in enumerate(words)
            if self._wanted(word, finite[index], nonzero[index], int(places[index]))
        ]
        end = len(self._words)
        if end > len(self._matrix):
            # ndarray.resize lets the C library enlarge the memory where it is, without a copy.
            self._matrix.resize((max(end, int(len(self._matrix) * _GROWTH)), self.dim), refcheck=False)
        self._matrix[end - len(kept) : end] = rows if len(kept) == len(rows) else rows[kept]

    def _wanted(self, word: str, finite: bool, nonzero: bool, place: int) -> bool:
        """Whether an entry goes into the matrix; if not, the report says why."""
        report = self.report
        if not word:
            report.broken.add(place)
        elif not finite:
            report.not_finite.add(place)
        elif not nonzero:
            report.zero.add(place)
        elif word in self._markers:
            report.markers.add(place)
        else:
            return self._is_new(word, place)
        return False

    def _is_new(self, word: str, place: int) -> bool:
        key = word.lower() if self._lowercase else word
        new = key not in self._known
        if new:
            self._known.add(key)
            self._words.append(key)
        elif self._lowercase and word not in self._spelt:
            self.report.merged += 1
        else:
            self.report.duplicates.add(place)
        if self._lowercase:
            self._spelt.add(word)
        return new

    def finish(self) -> WordVectors:
        """The words and vectors gathered.

        Raises:
            BilexError: Most entries were broken, or nothing was left.
        """
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


def check_words(words: list[str], path: Path, forbidden: re.Pattern[str]) -> None:
    """Refuse words that a format could not give back: those that match `forbidden` or are no UTF-8."""
    for word in words:
        if forbidden.search(word) or any("\ud800" <= char <= "\udfff" for char in word):
            raise BilexError(
                f"{path}: the word {word!r} cannot be written in this format; "
                "save a safetensors folder instead."
            )
