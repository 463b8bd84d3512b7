"""Turning the bytes of a dictionary file into word pairs, and telling what could not be read.

Files named `.jsonl` are JSON Lines. Every other file has rows of cells: divided by what a spreadsheet
writes (comma, semicolon, tab or bar) if it is named `.csv`; else by a tab if any line has one, by a
semicolon, comma or bar if practically every line has, and by spaces otherwise.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bilex.errors import BilexError
from bilex.lexicon.headers import Columns, find_columns
from bilex.visible import encodable

Pair = tuple[str, str]
Form = Literal["tab", "space", "csv", "jsonl"]
NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

BROKEN_LINES_KEPT = 20
_JSON_SUFFIXES = (".jsonl", ".ndjson")
_DELIMITERS = (",", ";", "\t", "|")
_EXPECTED: dict[Form, str] = {
    "tab": "source word, tab, target word",
    "space": "source word, space, target word",
    "csv": "source,target",
    "jsonl": '{"source": ..., "target": ...}',
}
_REJECTED = frozenset(["no", "n", "wrong", "false", "reject", "rejected", "bad", "-", "0", "x", "✗", "✘"])
_ACCEPTED = frozenset(
    ["yes", "y", "right", "true", "accept", "accepted", "good", "ok", "correct", "+", "1", "✓", "✔"]
) | {""}
_SEVERAL = re.compile(r"\w\s*([;,/|])\s*\w")
_FEW_CELLS, _SHARE_OF_CELLS = 3, 0.02
_NEARLY_ALL, _SNIFFED_LINES = 0.9, 200


@dataclass(frozen=True)
class Layout:
    """How a dictionary file is laid out, where it does not say so itself.

    Args:
        columns: The columns of source and target words, each a number from 1 or the name that the first
            line gives it; None for those that a header names, else the first two.
        delimiter: What divides the columns ("tab" may be written out); None to find out.
        split: Characters that divide several translations in one cell; None takes a cell as one word.
        languages: Codes of the source and the target language, to recognise their columns by.
        verdicts: Whether a third column says of each pair whether it is right ("yes") or rejected ("no").
    """

    columns: tuple[str, str] | None = None
    delimiter: str | None = None
    split: str | None = None
    languages: tuple[str | None, str | None] = (None, None)
    verdicts: bool = False

    def divided(self, cell: str) -> list[str]:
        """The words of a cell."""
        if not self.split:
            return [cell.strip()]
        parts = re.split(f"[{re.escape(self.split)}]", cell)
        return [part.strip() for part in parts if part.strip()]


@dataclass(frozen=True)
class ReadReport:
    """What was found in a dictionary file.

    Attributes:
        path: The file.
        form: How its lines are divided.
        lines: Lines that are neither blank nor comments nor a header.
        comments: Comment lines, which are skipped.
        broken: Lines that hold no pair, which are left out.
        broken_lines: Number and fault of the first of them.
        extra_columns: Lines with more than two columns, of which two were taken.
        repeated: Pairs that stand in the file more than once; they are kept.
        header: The names of the columns, if the first line gives them.
        several: Cells that seem to hold several words, and what divides most of them.
    """

    path: str
    form: Form
    lines: int
    comments: int
    broken: int
    broken_lines: tuple[tuple[int, str], ...]
    extra_columns: int
    repeated: int
    header: tuple[str, ...] = ()
    several: tuple[int, str] = (0, "")

    def sentence(self) -> str:
        """One sentence for the user if anything was odd, else nothing."""
        told = []
        if self.broken:
            shown = ", ".join(str(number) for number, _ in self.broken_lines[:5])
            more = ", ..." if self.broken > 5 else ""
            fault = self.broken_lines[0][1]
            told.append(f"{self.broken} of {self.lines} lines left out (line {shown}{more}): {fault}")
        if self.extra_columns:
            told.append(
                f"{self.extra_columns} lines with more than two columns, the first two taken "
                "(--columns takes others)"
            )
        if self.several[0]:
            told.append(
                f"{self.several[0]} cells seem to hold several words and were taken as one "
                f"(--split '{self.several[1]}' reads each)"
            )
        if self.repeated:
            told.append(f"{self.repeated} repeated pairs kept")
        return f"{self.path}: {'; '.join(told)}." if told else ""


@dataclass(frozen=True)
class _Row:
    """One line with its cells, or the fault that keeps it from having any."""

    number: int
    cells: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class _Line:
    """What one line came to: pairs, or the fault that makes it none."""

    number: int
    pairs: tuple[Pair, ...] = ()
    fault: str = ""
    extra: bool = False
    rejected: bool = False


@dataclass(frozen=True)
class Parsed:
    """Pairs of a file as spelt there (surrounding blanks removed), those rejected, and the report on it."""

    pairs: list[Pair]
    rejected: list[Pair]
    report: ReadReport


def parse_file(path: str | Path, layout: Layout | None = None) -> Parsed:
    """Read the pairs of a dictionary file.

    Args:
        path: A file of any form, UTF-8 or UTF-16 with a byte-order mark, any line ends.
        layout: How it is laid out, where it does not say so itself.

    Returns:
        The pairs as spelt in the file, and the report on lines that were left out.

    Raises:
        BilexError: The file cannot be read, is not Unicode text, is empty, lacks a column that was named, or
            most of its lines are no pairs.
    """
    path = Path(path)
    layout = layout or Layout()
    lines = decode(path).split("\n")
    header: tuple[str, ...] = ()
    comments = 0
    if path.suffix.lower() in _JSON_SUFFIXES:
        form: Form = "jsonl"
        found = list(_json_lines(lines, layout))
    else:
        form, delimiter = _division(path, lines, layout)
        plain = form != "csv"
        comments = sum(is_comment(line) for line in lines) if plain else 0
        rows = list(_plain_rows(lines, delimiter) if plain else _csv_rows(lines, delimiter))
        columns = find_columns(
            path, rows[0].cells if rows else (), layout.columns, layout.languages, spreadsheet=form == "csv"
        )
        header = rows[0].cells if rows and columns.from_header else ()
        found = [_from_row(row, columns, layout) for row in rows[1 if header else 0 :]]
    faults = [(line.number, line.fault) for line in found if line.fault]
    _refuse_hopeless(path, form, len(found), faults)
    pairs = [pair for line in found for pair in line.pairs if not line.rejected]
    report = ReadReport(
        path=str(path),
        form=form,
        lines=len(found),
        comments=comments,
        broken=len(faults),
        broken_lines=tuple(faults[:BROKEN_LINES_KEPT]),
        extra_columns=0 if header or layout.columns else sum(line.extra for line in found),
        repeated=len(pairs) - len(set(pairs)),
        header=header,
        several=(0, "") if layout.split else _several(pairs),
    )
    return Parsed(pairs, [pair for line in found for pair in line.pairs if line.rejected], report)


def decode(path: Path) -> str:
    """The text of a file with plain line ends and without byte-order mark.

    Raises:
        BilexError: It cannot be read or is neither UTF-8 nor marked UTF-16; the line of the first wrong byte
            is told.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BilexError(
            f"{path}: cannot be read ({error.strerror or error}); give the path of a dictionary file."
        ) from error
    if data.startswith(b"\x1f\x8b"):
        raise BilexError(f"{path}: is compressed with gzip; unpack it first (gunzip) and give the text file.")
    if data.startswith(b"PK\x03\x04"):
        raise BilexError(
            f"{path}: is a spreadsheet or an archive, not text; save the sheet as CSV or tab-separated text."
        )
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
        raise BilexError(
            f"{path}: line {line} is not {encoding.removesuffix('-sig').upper()} text "
            f"(byte 0x{data[error.start]:02x}); save the file again as UTF-8."
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_comment(line: str) -> bool:
    """Whether a line of a tab or space file is a comment.

    It is when it begins with "#" and a space, or begins with "#" and has neither tab nor space. So "#"
    can be a word of a tab-separated pair ("#", tab, "risuaita") and "#tag merkki" is a pair; in a
    space-separated file a pair whose source word is "#" itself cannot be told from a comment.
    """
    return line.startswith("#") and (line[1:2] == " " or not ("\t" in line or " " in line))


def respelt(pairs: list[Pair], *, lowercase: bool, normal_form: NormalForm | None) -> list[Pair]:
    """The pairs lower-cased and in a Unicode normal form, as asked."""

    def spell(word: str) -> str:
        word = word.lower() if lowercase else word
        return unicodedata.normalize(normal_form, word) if normal_form else word

    return [(spell(source), spell(target)) for source, target in pairs]


def _division(path: Path, lines: list[str], layout: Layout) -> tuple[Form, str]:
    """The form of a file of rows, and what divides its columns."""
    announced = re.fullmatch(r"sep=(.)", lines[0]) if lines else None
    if layout.delimiter is not None:
        delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(layout.delimiter, layout.delimiter)
        if len(delimiter) != 1:
            raise BilexError(f"--delimiter '{layout.delimiter}': give one character, or tab.")
        form: Form = "tab" if delimiter == "\t" else "space" if delimiter == " " else "csv"
        return ("csv" if path.suffix.lower() == ".csv" and form == "tab" else form), delimiter
    if announced:  # Excel's own way to say it; the line itself is no pair
        lines[0] = ""
        return "csv", announced[1]
    if path.suffix.lower() == ".csv":
        return "csv", _csv_delimiter(lines)
    if any("\t" in line.strip() and not is_comment(line) for line in lines):
        return "tab", "\t"
    sample = [line for line in lines if line.strip() and not is_comment(line)][:_SNIFFED_LINES]
    by_space = sum(len(line.split()) == 2 for line in sample)
    for delimiter in (";", ",", "|"):
        if by_space < len(sample) / 2 and _regular(sample, delimiter):
            return "csv", delimiter
    return "space", " "


def _regular(lines: list[str], delimiter: str) -> bool:
    """Whether practically every line has a delimiter, as often as the others."""
    counts = Counter(line.count(delimiter) for line in lines)
    if not counts:
        return False
    usual, lines_so = counts.most_common(1)[0]
    return usual > 0 and lines_so >= _NEARLY_ALL * len(lines)


def _csv_delimiter(lines: list[str]) -> str:
    """The delimiter that gives most lines two cells or more; a comma if several do."""
    sample = [line for line in lines if line.strip()][:_SNIFFED_LINES]

    def whole_lines(delimiter: str) -> tuple[int, bool]:
        rows = sum(len(row.cells) > 1 for row in _csv_rows(sample, delimiter))
        return rows, delimiter == "," or (_regular(sample, delimiter) and not _regular(sample, ","))

    return max(_DELIMITERS, key=lambda delimiter: (*whole_lines(delimiter), delimiter == ","))


def _plain_rows(lines: list[str], delimiter: str) -> Iterator[_Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip() or is_comment(line):
            continue
        if delimiter == "\t":
            cells = line.split("\t")
            yield _Row(number, tuple(cells), "" if len(cells) > 1 else "no tab in it")
            continue
        words = [word for word in line.strip().split(" ") if word]
        fault = "" if len(words) == 2 else f"{len(words)} words where two are expected"
        yield _Row(number, tuple(words), fault)


def _csv_rows(lines: list[str], delimiter: str) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield _Row(reader.line_num, fault=f"not CSV ({error})")
            continue
        if any(row):
            yield _Row(reader.line_num, tuple(row), "" if len(row) > 1 else "fewer than two columns")


def _from_row(row: _Row, columns: Columns, layout: Layout) -> _Line:
    if row.fault:
        return _Line(row.number, fault=row.fault)
    source, target, verdict = (
        row.cells[column].strip() if column < len(row.cells) else "" for column in columns.places
    )
    if not layout.verdicts:
        verdict = ""
    return _line(row.number, source, target, verdict, layout, extra=len(row.cells) > 2)


def _line(number: int, source: str, target: str, verdict: str, layout: Layout, *, extra: bool) -> _Line:
    if not source or not target:
        return _Line(number, fault="one of the two words is missing")
    judged = verdict.strip().casefold()
    if judged not in _REJECTED | _ACCEPTED:
        return _Line(number, fault=f"the third column says '{verdict}', neither yes nor no")
    pairs = tuple(itertools.product(layout.divided(source), layout.divided(target)))
    if not pairs:
        return _Line(number, fault="one of the two words is missing")
    return _Line(number, pairs, extra=extra, rejected=judged in _REJECTED)


def _json_lines(lines: list[str], layout: Layout) -> Iterator[_Line]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            yield _Line(number, fault="not a JSON object")
            continue
        fields = [record.get("source"), record.get("target")] if isinstance(record, dict) else []
        words = [field for field in fields if isinstance(field, str)]
        if len(words) < 2:
            yield _Line(number, fault='no strings "source" and "target" in it')
            continue
        if any(encodable(word) != word for word in words):
            yield _Line(number, fault="half of a character (a lone surrogate) in a word")
            continue
        verdict = str(record.get("verdict", "")) if layout.verdicts else ""
        yield _line(number, words[0].strip(), words[1].strip(), verdict, layout, extra=False)


def _several(pairs: list[Pair]) -> tuple[int, str]:
    """How many target words look like several, and the character that divides most of them."""
    found = Counter(match[1] for _, target in pairs if (match := _SEVERAL.search(target)))
    count = found.total()
    if count < max(_FEW_CELLS, _SHARE_OF_CELLS * len(pairs)):
        return 0, ""
    return count, found.most_common(1)[0][0]


def _refuse_hopeless(path: Path, form: Form, lines: int, faults: list[tuple[int, str]]) -> None:
    if not lines:
        raise BilexError(f"{path}: holds no word pairs, it is empty; each line should be {_EXPECTED[form]}.")
    if 2 * len(faults) > lines:
        number, fault = faults[0]
        raise BilexError(
            f"{path}: {len(faults)} of {lines} lines are no word pairs (line {number}: {fault}); "
            f"each line should be {_EXPECTED[form]}, or --delimiter and --columns say how it is."
        )
