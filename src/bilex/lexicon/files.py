"""What all dictionary formats share: how a file is read and written, and reports on what was left out."""

from __future__ import annotations

import html
import inspect
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.core.reading import FileReport, text_lines
from bilex.core.text import escape_control_characters
from bilex.lexicon.entries import Dictionary, Entry, Languages, one_line, word_fault
from bilex.vectors.phrases import words_of

Unfit = tuple[tuple[re.Pattern[str], str], ...]

MOST_PAIRS, MOST_PAIRS_PER_UNIT = 10_000_000, 1_000
# Such a mark cannot begin a text file.
BYTE_ORDER_MARK = re.compile("(?:^|\t)\ufeff"), "a byte order mark before a word"
_SEVERAL = re.compile(r"\w\s*([;,/|])\s*\w")
_FEW_CELLS, _SHARE_OF_CELLS = 3, 0.02
_REJECTED = frozenset(["no", "n", "wrong", "false", "reject", "rejected", "bad", "-", "0", "x", "✗", "✘"])
_ACCEPTED = frozenset(
    ["", "yes", "y", "right", "true", "accept", "accepted", "good", "ok", "correct", "+", "1", "✓", "✔"]
)
_SHOWN = 60


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

    def add(
        self, number: int, found: Iterable[Entry] | str, verdict: str = "", *, shared_by: int = 1
    ) -> None:
        """Add the unit at `number`: its entries, or the reason why it has none.

        A unit that has no whole entry is left out, as is one with more than 1,000 together with those that it
        is `shared_by`; the rest are not generated. With `layout.verdicts` a verdict may reject the entries.
        """
        report, judged = self.report, verdict.strip().casefold() if self.layout.verdicts else ""
        report.entries += 1
        if isinstance(found, str):
            report.leave_out(number, found)
            return
        units = self._split(found, self.layout.split) if self.layout.split else found
        most = MOST_PAIRS_PER_UNIT // shared_by
        entries = [entry.cleaned() for entry in itertools.islice(units, most + 1)]
        faults = [word_fault(entry.source) or word_fault(entry.target) for entry in entries]
        kept = [entry for entry, fault in zip(entries, faults, strict=True) if not fault]
        if len(entries) > most:
            report.leave_out(number, f"more than {MOST_PAIRS_PER_UNIT:,} pairs in one place")
        elif not kept:
            report.leave_out(number, next(filter(None, reversed(faults)), word_fault("")))
        elif judged not in _ACCEPTED | _REJECTED:
            report.leave_out(number, f"the verdict '{one_line(verdict)[:20]}' is neither yes nor no")
        else:
            (self.rejected if judged in _REJECTED else self.entries).extend(kept)
            if len(self.entries) + len(self.rejected) > MOST_PAIRS:
                raise BilexError(f"{self.path}: holds more than {MOST_PAIRS:,} pairs; give a part of it.")

    @staticmethod
    def _split(entries: Iterable[Entry], separators: str) -> Iterator[Entry]:
        """The entries of cells with several words."""
        between = re.compile(f"[{re.escape(separators)}]")
        for entry in entries:
            words = (filter(str.strip, between.split(cell)) for cell in (entry.source, entry.target))
            for source, target in itertools.product(*words):
                yield replace(entry, source=source, target=target)

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
        (source, target), (found_source, found_target) = self.layout.languages, self.languages
        self.languages = source or found_source, target or found_target


@dataclass(frozen=True)
class WriteOptions:
    """How to write."""

    defuse_formulas: bool = False  # put an apostrophe before cells that a spreadsheet would compute
    skip_unfit: bool = False  # leave out pairs that the format cannot hold; else the first is an error


@dataclass(frozen=True)
class WriteReport:
    """How many pairs were written, and every reason for which pairs were left out, with its count."""

    written: int
    left_out: Counter[str]

    def sentence(self) -> str:
        """One sentence on what was left out; nothing if nothing was."""
        counted = ", ".join(f"{count:,} with {reason}" for reason, count in self.left_out.most_common())
        return f"{self.left_out.total():,} pairs were left out: {counted}." if counted else ""


class DictionaryFormat:
    """One file format of dictionaries; the first line of a subclass's docstring describes it.

    A subclass sets `name` and `noun`, overrides `_parse` to read, and `_pieces` to write text or `save` to
    write anything else.
    """

    name: ClassVar[str]  # what `--format`, `--from` and `--to` call it
    noun: ClassVar[str]  # what messages call a file of it, with its article
    suffixes: ClassVar[tuple[str, ...]] = ()  # of its files, the usual one first
    read_suffixes: ClassVar[tuple[str, ...] | None] = None  # those that suffice to recognise it; None for all
    expected: ClassVar[str] = ""  # what a unit of its files should look like, for messages
    units: ClassVar[str] = "lines"  # what its units are called
    unit: ClassVar[str] = "line"  # what the numbers of units refer to
    strict: ClassVar[bool] = False  # whether a file most of whose units are broken is refused
    has_columns: ClassVar[bool] = False  # whether `Layout.columns` may name columns of its files
    writable: ClassVar[bool] = True
    one_translation: ClassVar[bool] = False  # whether only the first translation of a word is kept
    single_words: ClassVar[bool] = False  # whether phrases keep the underscores of a model
    # Patterns in "source, tab, target" that the format cannot hold, each with the reason.
    unfit: ClassVar[Unfit] = ()

    @property
    def description(self) -> str:
        """What the format is, in a few words."""
        return (inspect.getdoc(type(self)) or self.noun).split("\n")[0].rstrip(".")

    @property
    def is_text(self) -> bool:
        """Whether its files can be printed."""
        return type(self).save is DictionaryFormat.save

    def recognizes(self, path: Path, head: bytes) -> bool:
        """Whether a file that begins with `head` is in this format; by default its suffix decides."""
        return path.suffix.lower() in (self.suffixes if self.read_suffixes is None else self.read_suffixes)

    def read(self, path: Path, layout: Layout) -> Reading:
        """Read a file."""
        report = ReadReport(str(path), self.name, self.unit, self.units)
        reading = Reading(path, layout, report, self.expected, self.strict)
        self._parse(reading)
        reading.finish()
        return reading

    def text(self, dictionary: Dictionary, options: WriteOptions) -> tuple[str, WriteReport]:
        """A dictionary as the text of a file."""
        if not self.is_text:
            raise BilexError(f"{self.noun} is not text; name a file to write with -o.")
        fitting, report = self._fitting(dictionary, options)
        return "".join(self._pieces(fitting, options)), report

    def write(self, path: Path, dictionary: Dictionary, options: WriteOptions) -> WriteReport:
        """Write what of a dictionary the format can hold, atomically."""
        fitting, report = self._fitting(dictionary, options)
        self.save(path, fitting, options)
        return report

    def save(self, path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
        """Write a dictionary whose pairs all fit, atomically."""
        with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            file.writelines(self._pieces(dictionary, options))

    def _parse(self, reading: Reading) -> None:
        """Add the units of the file at `reading.path`."""
        raise BilexError(f"{reading.path}: {self.noun} can be written but not read; choose another format.")

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        """The text of a file, piece by piece."""
        raise BilexError(f"{self.noun} can be read but not written; choose another format.")

    def _fault(self, entry: Entry) -> str:
        """Why the format cannot hold a pair, to follow "with"; empty if it can."""
        pair = f"{entry.source}\t{entry.target}"
        return next((reason for pattern, reason in self.unfit if pattern.search(pair)), "")

    def _fitting(self, dictionary: Dictionary, options: WriteOptions) -> tuple[Dictionary, WriteReport]:
        """The part of a dictionary that the format can hold; an error if a pair may not be left out."""
        left_out: Counter[str] = Counter()
        kept: list[Entry] = []
        translated: set[str] = set()
        spaced = dictionary.units and not self.single_words
        for entry in map(_with_spaces, dictionary.entries) if spaced else dictionary.entries:
            nowhere = _common_fault(entry.source) or _common_fault(entry.target)
            reason = nowhere or self._fault(entry)
            # Vocabularies hold words that fit into no dictionary: those are left out in any case.
            if reason and not (nowhere and dictionary.units) and not options.skip_unfit:
                words = (w if len(w) <= _SHOWN else f"{w[:_SHOWN]}…" for w in (entry.source, entry.target))
                raise BilexError(
                    f"the pair {', '.join(escape_control_characters(repr(word)) for word in words)} does not "
                    f"fit into {self.noun} ({reason}); write another format, such as .jsonl, or leave such "
                    "pairs out with --skip-unfit."
                )
            if not reason and self.one_translation and entry.source in translated:
                reason = "a further translation of a word, of which there may be one"
            if reason:
                left_out[reason] += 1
            else:
                translated.add(entry.source)
                kept.append(entry.cleaned())
        if dictionary.entries and not kept:
            raise BilexError(f"none of the {len(dictionary.entries):,} pairs fits into {self.noun}.")
        return replace(dictionary, entries=kept), WriteReport(len(kept), left_out)


class LineFormat(DictionaryFormat):
    """A format with one unit per line."""

    strict = True
    unfit: ClassVar[Unfit] = (BYTE_ORDER_MARK,)
    comment: ClassVar[str] = ""  # what begins a comment line

    def _parse(self, reading: Reading) -> None:
        for number, text in text_lines(reading.path):
            if self.comment and text.startswith(self.comment):
                reading.report.comments += 1
            elif text.strip():
                reading.add(number, self._parse_line(text))

    def _parse_line(self, text: str) -> Iterable[Entry] | str:
        """The entries of a line, or why there are none."""
        raise NotImplementedError


def _with_spaces(entry: Entry) -> Entry:
    """The entry, phrases with spaces: "new york" for the unit "new_york"."""
    if "_" not in entry.source and "_" not in entry.target:
        return entry
    source, target = (" ".join(words_of(word)) or word for word in (entry.source, entry.target))
    return replace(entry, source=source, target=target)


def _common_fault(word: str) -> str:
    """Why no format could give a word back; empty if some can."""
    if not word.strip():
        return "an empty word"
    return word_fault(word) or ("a blank before or after a word" if word != word.strip() else "")


def grouped(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Entries by source word, both in their order."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.source, []).append(entry)
    return found


def all_lines(path: Path) -> list[str]:
    """All lines of a text file; at least one."""
    return [line for _, line in text_lines(path)] or [""]


def unescaped(text: str) -> str:
    """A text with HTML character references replaced; one whose number has too many digits stays."""
    try:
        return html.unescape(text)
    except ValueError:  # Python converts no number of more than 4,300 digits
        return text
