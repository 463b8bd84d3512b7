"""What every reader of dictionaries shares: bounded text, how to read, and what was read and left out."""

from __future__ import annotations

import codecs
import functools
import gzip
import html
import io
import itertools
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal

from bilex.core.errors import BilexError
from bilex.core.files import opened
from bilex.lexicon.entries import Entry, Languages, Pair, one_line, word_fault

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

MOST_PAIRS = 10_000_000
MOST_PAIRS_PER_UNIT = 1_000
TOO_MANY_PAIRS = f"more than {MOST_PAIRS_PER_UNIT:,} pairs in one place"
LARGEST_UNPACKED = 1 << 30
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
_MOST_TIMES_LARGER, _SMALL = 200, 16 << 20
_LONGEST_LINE = 16 << 20
_BROKEN_LINES_KEPT, _REASONS_SHOWN = 20, 4
_SEVERAL = re.compile(r"\w\s*([;,/|])\s*\w")
_FEW_CELLS, _SHARE_OF_CELLS = 3, 0.02
_REJECTED = frozenset(["no", "n", "wrong", "false", "reject", "rejected", "bad", "-", "0", "x", "✗", "✘"])
_ACCEPTED = frozenset(
    ["", "yes", "y", "right", "true", "accept", "accepted", "good", "ok", "correct", "+", "1", "✓", "✔"]
)
open_dictionary = functools.partial(opened, advice="give the path of a dictionary file")


@dataclass(frozen=True)
class Layout:
    """How to read a dictionary file; `Lexicon.load` describes the fields."""

    columns: tuple[str, str] | None = None
    delimiter: str | None = None
    split: str | None = None
    languages: Languages = (None, None)
    verdicts: bool = False


@dataclass
class ReadReport:
    """What was found in a dictionary file.

    Attributes:
        path: The file.
        form: Its format.
        units: What was counted: "lines", "entries" or "rows".
        place: What the numbers of `broken_lines` are: of a "line", an "entry" or a "row".
        lines: Lines (or entries, see `units`) that are neither blank nor comments nor a header.
        comments: Comment lines, which are skipped.
        broken_lines: Number and fault of the first lines that hold no pair.
        extra_columns: Lines with more than two columns, of which two were taken.
        repeated: Pairs that occur more than once in the file; they are kept.
        header: The names of the columns, if the first line gives them.
        several: Cells that seem to hold several words, and what separates most of them.
        reasons: How many lines were left out for each reason.
    """

    path: str
    form: str
    units: str = "lines"
    place: str = "line"
    lines: int = 0
    comments: int = 0
    broken_lines: tuple[tuple[int, str], ...] = ()
    extra_columns: int = 0
    repeated: int = 0
    header: tuple[str, ...] = ()
    several: tuple[int, str] = (0, "")
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def broken(self) -> int:
        """How many lines hold no pair and are left out."""
        return self.reasons.total()

    @property
    def left_out(self) -> tuple[tuple[str, int], ...]:
        """Every reason for which something was left out, with its count, the most frequent first."""
        return tuple(self.reasons.most_common())

    def sentence(self) -> str:
        """One sentence for the user if anything was odd, else nothing."""
        parts = []
        if self.broken:
            shown = ", ".join(str(number) for number, _ in self.broken_lines[:5])
            more = ", ..." if self.broken > 5 else ""
            reasons = self.broken_lines[0][1]
            if len(self.reasons) > 1:
                counted = [f"{count} {reason}" for reason, count in self.left_out[:_REASONS_SHOWN]]
                rest = sum(count for _, count in self.left_out[_REASONS_SHOWN:])
                reasons = ", ".join([*counted, f"{rest} for other reasons"] if rest else counted)
            parts.append(
                f"{self.broken} of {self.lines} {self.units} left out ({self.place} {shown}{more}): {reasons}"
            )
        if self.extra_columns:
            parts.append(
                f"{self.extra_columns} lines with more than two columns, the first two taken "
                "(--columns takes others)"
            )
        if self.several[0]:
            parts.append(
                f"{self.several[0]} cells seem to hold several words and were taken as one "
                f"(--split '{self.several[1]}' reads each)"
            )
        if self.repeated:
            parts.append(f"{self.repeated} repeated pairs kept")
        return f"{self.path}: {'; '.join(parts)}." if parts else ""


@dataclass
class Reading:
    """The entries of a file as spelt there, those marked as wrong, and a report on what was left out.

    A format adds the units of its file (lines, elements, rows) one after the other.
    """

    path: Path
    layout: Layout
    report: ReadReport
    expected: str = ""  # what a unit should look like, for messages
    strict: bool = False  # whether a file most of whose units are broken is refused
    entries: list[Entry] = field(default_factory=list)
    rejected: list[Entry] = field(default_factory=list)
    languages: Languages = (None, None)

    def add(self, number: int, found: Iterable[Entry] | str, verdict: str = "") -> None:
        """Add the unit at `number`: its entries, or the reason why it has none.

        A unit that has no whole entry is left out, as is one with more than 1,000, the rest of which are not
        generated. With `layout.verdicts` a verdict may reject the entries.
        """
        if isinstance(found, str):
            self.leave_out(number, found)
            return
        units = self._split(found, self.layout.split) if self.layout.split else found
        entries = [entry.cleaned() for entry in itertools.islice(units, MOST_PAIRS_PER_UNIT + 1)]
        faults = [word_fault(entry.source) or word_fault(entry.target) for entry in entries]
        kept = [entry for entry, fault in zip(entries, faults, strict=True) if not fault]
        judged = verdict.strip().casefold() if self.layout.verdicts else ""
        if len(entries) > MOST_PAIRS_PER_UNIT:
            self.leave_out(number, TOO_MANY_PAIRS)
        elif not kept:
            self.leave_out(number, next(filter(None, reversed(faults)), word_fault("")))
        elif judged not in _ACCEPTED | _REJECTED:
            self.leave_out(number, f"the verdict '{one_line(verdict)[:20]}' is neither yes nor no")
        else:
            self.report.lines += 1
            (self.rejected if judged in _REJECTED else self.entries).extend(kept)
            if len(self.entries) + len(self.rejected) > MOST_PAIRS:
                raise BilexError(f"{self.path}: holds more than {MOST_PAIRS:,} pairs; give a part of it.")

    @staticmethod
    def _split(entries: Iterable[Entry], separators: str) -> Iterator[Entry]:
        """The entries of cells with several words."""
        between = re.compile(f"[{re.escape(separators)}]")
        for entry in entries:
            words = (
                [part for part in between.split(cell) if part.strip()]
                for cell in (entry.source, entry.target)
            )
            for source, target in itertools.product(*words):
                yield replace(entry, source=source, target=target)

    def leave_out(self, number: int, reason: str) -> None:
        """Count a unit that holds no pair."""
        self.report.lines += 1
        self.report.reasons[reason] += 1
        if len(self.report.broken_lines) < _BROKEN_LINES_KEPT:
            self.report.broken_lines += ((number, reason),)

    def finish(self) -> None:
        """Complete the report; an error if there is no pair, or if most units of a strict format are none."""
        report = self.report
        advice = (
            f"each of its {report.units} should be {self.expected}" if self.expected else "give another file"
        )
        if not report.lines:
            raise BilexError(f"{self.path}: holds no word pairs, it is empty; {advice}.")
        if 2 * report.broken > report.lines if self.strict else not (self.entries or self.rejected):
            number, fault = report.broken_lines[0]
            raise BilexError(
                f"{self.path}: {report.broken} of {report.lines} {report.units} are not word pairs "
                f"({report.place} {number}: {fault}); {advice}"
                f"{', or describe it with --delimiter and --columns' if self.strict else ''}."
            )
        pairs = [(entry.source, entry.target) for entry in self.entries]
        report.repeated = len(pairs) - len(set(pairs))
        if not self.layout.split:  # cells that look like several words, and what separates most of them
            found = Counter(match[1] for _, target in pairs if (match := _SEVERAL.search(target)))
            if found.total() >= max(_FEW_CELLS, _SHARE_OF_CELLS * len(pairs)):
                report.several = found.total(), found.most_common(1)[0][0]
        given, found_in_file = self.layout.languages, self.languages
        self.languages = given[0] or found_in_file[0], given[1] or found_in_file[1]


def normalized(pairs: Sequence[Pair], *, lowercase: bool, normal_form: NormalForm | None) -> list[Pair]:
    """The pairs, lower-cased if `lowercase`, in a Unicode normal form."""

    def spell(word: str) -> str:
        word = word.lower() if lowercase else word
        return unicodedata.normalize(normal_form, word) if normal_form else word

    return [(spell(source), spell(target)) for source, target in pairs]


def text_lines(path: Path, *, packed: bool = False) -> Iterator[tuple[int, str]]:
    """The lines of UTF-8 text, gzip if `packed`, or of UTF-16 text with a mark, with numbers from 1."""
    with open_dictionary(path) as file:
        head = b"" if packed else file.read(4)
        if head.startswith(GZIP):
            raise BilexError(
                f"{path}: is compressed with gzip; unpack it first (gunzip) and give the text file."
            )
        if head.startswith(ZIP):
            raise BilexError(
                f"{path}: is a spreadsheet or an archive, not text; save the sheet as CSV, tab-separated "
                "text or .xlsx."
            )
        file.seek(3 if head.startswith(codecs.BOM_UTF8) else 0)
        stream: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=file) if packed else file
        number, encoding = 0, "UTF-8"
        try:
            if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                encoding = "UTF-16"
                stream = io.BytesIO(file.read().decode(encoding).encode())
            while line := stream.readline(_LONGEST_LINE):
                if packed:
                    check_unpacked(path, stream.tell(), file.tell())
                if len(line) == _LONGEST_LINE:
                    raise BilexError(f"{path}: line {number + 1} is longer than 16 MB; give another file.")
                for piece in line.removesuffix(b"\n").removesuffix(b"\r").split(b"\r"):
                    number += 1
                    yield number, piece.decode()
        except UnicodeDecodeError as error:
            place = f"line {number} " if number else ""
            raise BilexError(
                f"{path}: {place}is not {encoding} text (byte 0x{error.object[error.start]:02x}); save the "
                "file again as UTF-8."
            ) from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BilexError(f"{path}: is not gzip, or damaged; pack it again with gzip.") from error


def all_lines(path: Path) -> list[str]:
    """All lines of a text file; at least one."""
    return [line for _, line in text_lines(path)] or [""]


def check_unpacked(path: Path, unpacked: int, packed: int, largest: int = LARGEST_UNPACKED) -> None:
    """Refuse a file that unpacks into too many bytes, or into suspiciously many times its size."""
    if unpacked > largest:
        raise BilexError(f"{path}: unpacks into more than {largest >> 20:,} MB; give a part of it.")
    if unpacked > max(_SMALL, _MOST_TIMES_LARGER * packed):
        raise BilexError(
            f"{path}: unpacks into more than {_MOST_TIMES_LARGER} times its size, which no dictionary does; "
            "give another file."
        )


def unescaped(text: str) -> str:
    """A text with HTML character references replaced; one whose number has too many digits stays."""
    try:
        return html.unescape(text)
    except ValueError:  # Python converts no number of more than 4,300 digits
        return text
