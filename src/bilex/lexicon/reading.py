"""What every reader of dictionaries shares: bounded text, how to read, what was read and left out."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import html
import itertools
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bilex.core.errors import BilexError
from bilex.core.files import opened
from bilex.lexicon.entries import Entry, Languages, Pair, with_one_line_texts, word_fault

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

MOST_PAIRS = 10_000_000
MOST_PAIRS_PER_UNIT = 1_000
TOO_MANY_PAIRS = f"more than {MOST_PAIRS_PER_UNIT:,} pairs in one place"
LARGEST_UNPACKED = 1 << 30
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
_MOST_TIMES_LARGER, _SMALL = 200, 16 << 20
_LONGEST_LINE = 16 << 20
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BROKEN_LINES_KEPT, _REASONS_SHOWN = 20, 4
_SEVERAL = re.compile(r"\w\s*([;,/|])\s*\w")
_FEW_CELLS, _SHARE_OF_CELLS = 3, 0.02
open_dictionary = functools.partial(opened, advice="give the path of a dictionary file")


@dataclass(frozen=True)
class Layout:
    """How a dictionary file is laid out, where it does not say so itself.

    Args:
        columns: The columns of source and target words, each a number from 1 or the name that the first
            line gives it; None for those that a header names, else the first two.
        delimiter: What divides the columns ("tab" may be written out); None to detect it.
        split: Characters that divide several translations in one cell; None takes a cell as one word.
        languages: Codes of the source and the target language, to recognise their columns by, and to choose
            by in files that hold more than two.
        verdicts: Whether a third column says of each pair whether it is right ("yes") or rejected ("no").
    """

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
        repeated: Pairs that stand in the file more than once; they are kept.
        header: The names of the columns, if the first line gives them.
        several: Cells that seem to hold several words, and what divides most of them.
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
            if len(self.left_out) > 1:
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


@dataclass(frozen=True)
class Reading:
    """Entries of a file as spelt there (surrounding blanks removed), those rejected, and the report on it."""

    entries: list[Entry]
    rejected: list[Entry]
    report: ReadReport
    languages: Languages = (None, None)


@dataclass
class Collector:
    """Gathers the entries of one file and counts what is left out.

    Args:
        path: The file.
        form: Its format, for the report.
        layout: How to read it.
        units: What a unit of the file is called, in the plural.
        place: What the numbers of units are numbers of.
        expected: What a unit should look like, for messages.
        strict: Whether a file most of whose units are broken is refused.
    """

    path: Path
    form: str
    layout: Layout
    units: str = "lines"
    place: str = "line"
    expected: str = ""
    strict: bool = False
    entries: list[Entry] = field(default_factory=list)
    rejected: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.report = ReadReport(str(self.path), self.form, self.units, self.place)

    def add(self, number: int, entries: Iterable[Entry], *, rejected: bool = False) -> None:
        """Take the entries of the unit at `number`, `rejected` if it says that they are wrong.

        A word may be several, to be divided as the layout says. A unit without entries is broken, and one
        with more than 1,000, further ones of which are not drawn.
        """
        divided = self._divided(entries) if self.layout.split else entries
        found = list(itertools.islice(divided, MOST_PAIRS_PER_UNIT + 1))
        fault = "one of the two words is missing"
        kept: list[Entry] = []
        for entry in found:
            source, target = entry.source.strip(), entry.target.strip()
            wrong = word_fault(source) or word_fault(target)
            if wrong:
                fault = wrong
                continue
            if (source, target) != (entry.source, entry.target):
                entry = dataclasses.replace(entry, source=source, target=target)  # noqa: PLW2901
            kept.append(with_one_line_texts(entry))
        if len(found) > MOST_PAIRS_PER_UNIT or not kept:
            self.leave_out(number, fault if len(found) <= MOST_PAIRS_PER_UNIT else TOO_MANY_PAIRS)
            return
        self.report.lines += 1
        (self.rejected if rejected else self.entries).extend(kept)
        if len(self.entries) + len(self.rejected) > MOST_PAIRS:
            raise BilexError(f"{self.path}: holds more than {MOST_PAIRS:,} pairs; give a part of it.")

    def _divided(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The entries of cells with several words."""
        between = re.compile(f"[{re.escape(self.layout.split or '')}]")
        for entry in entries:
            sources, targets = (
                [part.strip() for part in between.split(cell) if part.strip()]
                for cell in (entry.source, entry.target)
            )
            for source, target in itertools.product(sources, targets):
                yield dataclasses.replace(entry, source=source, target=target)

    def leave_out(self, number: int, reason: str) -> None:
        """Count a unit that holds no pair."""
        self.report.lines += 1
        self.report.reasons[reason] += 1
        if len(self.report.broken_lines) < _BROKEN_LINES_KEPT:
            self.report.broken_lines += ((number, reason),)

    def finished(self, *, header: tuple[str, ...] = (), languages: Languages = (None, None)) -> Reading:
        """The reading; an error if there is no pair, or, of a strict format, most units are none."""
        report = self.report
        advice = (
            f"each of its {self.units} should be {self.expected}" if self.expected else "give another file"
        )
        if not report.lines:
            raise BilexError(f"{self.path}: holds no word pairs, it is empty; {advice}.")
        if 2 * report.broken > report.lines if self.strict else not (self.entries or self.rejected):
            number, fault = report.broken_lines[0]
            raise BilexError(
                f"{self.path}: {report.broken} of {report.lines} {self.units} are not word pairs "
                f"({self.place} {number}: {fault}); {advice}"
                f"{', or --delimiter and --columns say how it is' if self.strict else ''}."
            )
        pairs = [(entry.source, entry.target) for entry in self.entries]
        report.header, report.repeated = header, len(pairs) - len(set(pairs))
        if not self.layout.split:  # cells that look like several words, and what divides most of them
            found = Counter(match[1] for _, target in pairs if (match := _SEVERAL.search(target)))
            if found.total() >= max(_FEW_CELLS, _SHARE_OF_CELLS * len(pairs)):
                report.several = found.total(), found.most_common(1)[0][0]
        source, target = self.layout.languages
        return Reading(self.entries, self.rejected, report, (source or languages[0], target or languages[1]))


Units = Generator[tuple[int, Iterable[Entry] | str | None], None, Languages | None]


def reader(
    form: str, generate: Callable[[Path, Layout], Units], expected: str, **more: Any
) -> Callable[[Path, Layout], Reading]:
    """A reader made of a generator of units: the number of each, and its entries or why it has none.

    None is a comment. The generator may return the languages of the file; `more` are for the `Collector`.
    """

    def read(path: Path, layout: Layout) -> Reading:
        collector = Collector(path, form, layout, expected=expected, **more)
        found = generate(path, layout)
        while True:
            try:
                number, entries = next(found)
            except StopIteration as end:
                return collector.finished(languages=end.value or (None, None))
            if entries is None:
                collector.report.comments += 1
            elif isinstance(entries, str):
                collector.leave_out(number, entries)
            else:
                collector.add(number, entries)

    return read


def respelt(pairs: Sequence[Pair], *, lowercase: bool, normal_form: NormalForm | None) -> list[Pair]:
    """The pairs lower-cased and in a Unicode normal form, as asked."""

    def spell(word: str) -> str:
        word = word.lower() if lowercase else word
        return unicodedata.normalize(normal_form, word) if normal_form else word

    return [(spell(source), spell(target)) for source, target in pairs]


def decode(path: Path) -> str:
    """The text of a file, UTF-8 or marked UTF-16, with plain line ends and without byte-order mark."""
    with open_dictionary(path) as file:
        data = file.read()
    _refuse_packed(path, data)
    encoding = "utf-16" if data.startswith(_UTF_16_MARKS) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
        raise _not_text(path, line, encoding, data[error.start]) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def text_lines(path: Path, *, packed: bool = False) -> Iterator[tuple[int, str]]:
    """The lines of a file, gzip if `packed`, with numbers from 1; of UTF-8 one is held at a time."""
    with open_dictionary(path) as file:
        head = b"" if packed else file.read(4)
        if head.startswith(_UTF_16_MARKS):
            yield from enumerate(decode(path).split("\n"), 1)
            return
        _refuse_packed(path, head)
        file.seek(3 if head.startswith(b"\xef\xbb\xbf") else 0)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        number = 0
        try:
            while line := stream.readline(_LONGEST_LINE):
                if packed:
                    check_unpacked(path, stream.tell(), file.tell())
                if len(line) == _LONGEST_LINE:
                    raise BilexError(f"{path}: line {number + 1} is longer than 16 MB; give another file.")
                for piece in line.removesuffix(b"\n").removesuffix(b"\r").split(b"\r"):
                    number += 1
                    yield number, piece.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _not_text(path, number, "utf-8", error.object[error.start]) from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BilexError(f"{path}: is not gzip, or damaged; pack it again with gzip.") from error


def check_unpacked(path: Path, unpacked: int, packed: int, largest: int = LARGEST_UNPACKED) -> None:
    """Refuse a file whose bytes unpack into too many, or into so many more that it is meant to harm."""
    if unpacked > largest:
        raise BilexError(f"{path}: unpacks into more than {largest >> 20:,} MB; give a part of it.")
    if unpacked > max(_SMALL, _MOST_TIMES_LARGER * packed):
        raise BilexError(
            f"{path}: unpacks into more than {_MOST_TIMES_LARGER} times its size, which no dictionary does; "
            "give another file."
        )


def json_object(line: str) -> dict[str, Any] | None:
    """The JSON object that a line is, or None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def unescaped(text: str) -> str:
    """A text with HTML's references to characters replaced; one whose number has too many digits stays."""
    try:
        return html.unescape(text)
    except ValueError:  # Python converts no number of more than 4,300 digits
        return text


def _not_text(path: Path, line: int, encoding: str, byte: int) -> BilexError:
    return BilexError(
        f"{path}: line {line} is not {encoding.removesuffix('-sig').upper()} text "
        f"(byte 0x{byte:02x}); save the file again as UTF-8."
    )


def _refuse_packed(path: Path, head: bytes) -> None:
    if head.startswith(GZIP):
        raise BilexError(f"{path}: is compressed with gzip; unpack it first (gunzip) and give the text file.")
    if head.startswith(ZIP):
        raise BilexError(
            f"{path}: is a spreadsheet or an archive, not text; save the sheet as CSV, tab-separated text or "
            ".xlsx."
        )
