"""Gathering the entries of a file, as they come, into one matrix of the words worth keeping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.vectors.core import WordVectors
from bilex.vectors.options import LoadOptions
from bilex.vectors.report import LoadReport
from bilex.vectors.stored import FloatMatrix

_FIRST_BYTES = 64 << 20
_GROWTH = 1.1
# What trainers and tokenizers put among the words: ends of sentences, unknown words, padding, masks.
_MARKERS = """
    </s> <s> <unk> <UNK> <unknown> <UNKNOWN> <pad> <PAD> <mask> <MASK> <bos> <BOS> <eos> <EOS> <cls> <CLS>
    <sep> <SEP> [UNK] [PAD] [MASK] [CLS] [SEP] [BOS] [EOS] <|endoftext|> <|startoftext|> <|padding|>
    UNK *UNK* *unknown* _UNK_ _unk_ __UNK__ __unk__ -UNK-
"""
MARKERS = frozenset(_MARKERS.split())


def cautious(announced: int | None, dim: int) -> int:
    """How many rows to make room for at first when only the file's own word, or nothing, is known.

    A header that promises a billion words must not cost the memory for them.
    """
    believable = _FIRST_BYTES // (4 * dim) + 1
    return believable if announced is None else min(announced, believable)


class Collector:
    """Takes words and rows block by block; keeps the first good vector of each word.

    The matrix grows in place, so that at no time a second copy of it is needed.

    Args:
        report: Where to write down what is left out.
        dim: The length of a vector.
        expected: How many entries will probably come, by a measure of the file, not by its own word.
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
    def room(self) -> int | None:
        """How many more entries are wanted; None for all there are."""
        return None if self._limit is None else self._limit - self._taken

    def broken(self, places: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Write down entries that hold no word with the right number of numbers."""
        self.report.entries += len(places)
        for place in places:
            self.report.broken.add(int(place))

    def add(
        self, words: Sequence[str], rows: FloatMatrix, places: Sequence[int] | npt.NDArray[np.int64]
    ) -> None:
        """Take the next entries of the file, no more than there is `room` for.

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
        self._store(rows, kept)

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
        if key not in self._known:
            self._known.add(key)
            self._words.append(key)
            if self._lowercase:
                self._spelt.add(word)
            return True
        if self._lowercase and word not in self._spelt:
            self._spelt.add(word)
            self.report.merged += 1
        else:
            self.report.duplicates.add(place)
        return False

    def _store(self, rows: FloatMatrix, kept: list[int]) -> None:
        end = len(self._words)
        if end > len(self._matrix):
            # ndarray.resize lets the C library enlarge the memory where it is, without a copy.
            self._matrix.resize((max(end, int(len(self._matrix) * _GROWTH)), self.dim), refcheck=False)
        self._matrix[end - len(kept) : end] = rows if len(kept) == len(rows) else rows[kept]

    def finish(self) -> WordVectors:
        """The words and vectors gathered.

        Raises:
            BilexError: Most entries were broken, or nothing was left.
        """
        report = self.report
        report.kept = len(self._words)
        unit, units = report.unit, "entries" if report.unit == "entry" else f"{report.unit}s"
        if report.broken.count * 2 > report.entries:
            raise BilexError(
                f"{report.source}: {report.broken.count:,} of {report.entries:,} {units} do not hold a "
                f"word and {self.dim} numbers, the first is {unit} {report.broken.places[0]}; "
                "check that this is a file of word vectors."
            )
        if not self._words:
            raise BilexError(f"{report.source}: holds no usable vector (all are zero, NaN or infinite).")
        self._known, self._spelt = set(), set()
        self._matrix.resize((len(self._words), self.dim), refcheck=False)
        return WordVectors(self._words, self._matrix, report=report)
