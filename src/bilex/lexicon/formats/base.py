"""What a dictionary format is: a name, suffixes, and how its files are recognised, read and written."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.core.reading import text_lines
from bilex.core.text import escape_control_characters
from bilex.lexicon.entries import Dictionary, Entry, word_fault
from bilex.lexicon.reading import Layout, Reading, ReadReport
from bilex.vectors.phrases import words_of

Unfit = tuple[tuple[re.Pattern[str], str], ...]

# Such a mark cannot begin a text file.
BYTE_ORDER_MARK = re.compile("(?:^|\t)\ufeff"), "a byte order mark before a word"
_SHOWN = 60


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
    is_text: ClassVar[bool] = True  # whether its files can be printed
    one_translation: ClassVar[bool] = False  # whether only the first translation of a word is kept
    single_words: ClassVar[bool] = False  # whether phrases keep the underscores of a model
    # Patterns in "source, tab, target" that the format cannot hold, each with the reason.
    unfit: ClassVar[Unfit] = ()

    @property
    def description(self) -> str:
        """What the format is, in a few words."""
        return (inspect.getdoc(type(self)) or self.noun).split("\n")[0].rstrip(".")

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

    def save(self, path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
        """Write a dictionary whose pairs all fit, atomically."""
        with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            file.writelines(self._pieces(dictionary, options))

    def _parse(self, reading: Reading) -> None:
        """Add the units of the file at `reading.path`."""
        raise BilexError(f"{reading.path}: {self.noun} can be written but not read; choose another format.")

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        """The text of a file, piece by piece."""
        raise BilexError(f"{self.noun} is not text; name a file to write with -o.")

    def _fault(self, entry: Entry) -> str:
        """Why the format cannot hold a pair, to follow "with"; empty if it can."""
        pair = f"{entry.source}\t{entry.target}"
        for pattern, reason in self.unfit:
            if pattern.search(pair):
                return reason
        return ""

    def fitting(self, dictionary: Dictionary, options: WriteOptions) -> tuple[Dictionary, WriteReport]:
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

    def _line(self, entry: Entry) -> str:
        """An entry as a line."""
        raise NotImplementedError

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        return (f"{self._line(entry)}\n" for entry in dictionary.entries)


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
