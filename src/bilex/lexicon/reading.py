"""What every reader of dictionaries shares: bounded text, how to read, and what was read and left out."""

from __future__ import annotations

import html
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from bilex.core.errors import BilexError
from bilex.core.reading import FileReport, text_lines
from bilex.lexicon.entries import Entry, Languages, Pair, one_line, word_fault

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

MOST_PAIRS = 10_000_000
MOST_PAIRS_PER_UNIT = 1_000
TOO_MANY_PAIRS = f"more than {MOST_PAIRS_PER_UNIT:,} pairs in one place"
_SEVERAL = re.compile(r"\w\s*([;,/|])\s*\w")
_FEW_CELLS, _SHARE_OF_CELLS = 3, 0.02
_REJECTED = frozenset(["no", "n", "wrong", "false", "reject", "rejected", "bad", "-", "0", "x", "✗", "✘"])
_ACCEPTED = frozenset(
    ["", "yes", "y", "right", "true", "accept", "accepted", "good", "ok", "correct", "+", "1", "✓", "✔"]
)


@dataclass(frozen=True)
class Layout:
    """How to read a dictionary file; `Lexicon.load` describes the fields."""

    columns: tuple[str, str] | None = None
    delimiter: str | None = None
    split: str | None = None
    languages: Languages = (None, None)
    verdicts: bool = False


@dataclass
class ReadReport(FileReport):
    """What was found in a dictionary file.

    Attributes:
        comments: Comment lines, which are skipped.
        extra_columns: Lines with more than two columns, of which two were taken.
        repeated: Pairs that occur more than once in the file; they are kept.
        header: The names of the columns, if the first line gives them.
    """

    comments: int = 0
    extra_columns: int = 0
    repeated: int = 0
    header: tuple[str, ...] = ()


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
            self.report.entries += 1
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
        self.report.entries += 1
        self.report.leave_out(number, reason)

    def finish(self) -> None:
        """Complete the report; an error if there is no pair, or if most units of a strict format are none."""
        report, broken = self.report, self.report.left_out.total()
        advice = (
            f"each of its {report.units} should be {self.expected}" if self.expected else "give another file"
        )
        if not report.entries:
            raise BilexError(f"{self.path}: holds no word pairs, it is empty; {advice}.")
        if 2 * broken > report.entries if self.strict else not (self.entries or self.rejected):
            fault, numbers = next(iter(report.places.items()))
            raise BilexError(
                f"{self.path}: {broken} of {report.entries} {report.units} are not word pairs "
                f"({report.unit} {numbers[0]}: {fault}); {advice}"
                f"{', or describe it with --delimiter and --columns' if self.strict else ''}."
            )
        pairs = [(entry.source, entry.target) for entry in self.entries]
        report.repeated = len(pairs) - len(set(pairs))
        if report.extra_columns:
            report.notes.append(
                f"{report.extra_columns} lines with more than two columns, the first two taken (--columns "
                "takes others)"
            )
        if not self.layout.split:  # cells that look like several words, and what separates most of them
            found = Counter(match[1] for _, target in pairs if (match := _SEVERAL.search(target)))
            if found.total() >= max(_FEW_CELLS, _SHARE_OF_CELLS * len(pairs)):
                report.notes.append(
                    f"{found.total()} cells seem to hold several words and were taken as one "
                    f"(--split '{found.most_common(1)[0][0]}' reads each)"
                )
        given, found_in_file = self.layout.languages, self.languages
        self.languages = given[0] or found_in_file[0], given[1] or found_in_file[1]


def normalized(pairs: Sequence[Pair], *, lowercase: bool, normal_form: NormalForm | None) -> list[Pair]:
    """The pairs, lower-cased if `lowercase`, in a Unicode normal form."""

    def spell(word: str) -> str:
        word = word.lower() if lowercase else word
        return unicodedata.normalize(normal_form, word) if normal_form else word

    return [(spell(source), spell(target)) for source, target in pairs]


def all_lines(path: Path) -> list[str]:
    """All lines of a text file; at least one."""
    return [line for _, line in text_lines(path)] or [""]


def unescaped(text: str) -> str:
    """A text with HTML character references replaced; one whose number has too many digits stays."""
    try:
        return html.unescape(text)
    except ValueError:  # Python converts no number of more than 4,300 digits
        return text
