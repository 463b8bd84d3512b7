"""Text files of rows and cells: what divides them, which cells are the words, and what else they say.

Files named `.csv` are divided by what a spreadsheet writes: comma, semicolon, tab or bar. Other files by a
tab if any line has one, by a semicolon, comma or bar if practically every line has, and by spaces otherwise.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bilex.core.errors import BilexError
from bilex.core.languages import code_of
from bilex.lexicon.entries import TEXTS, Entry, number_of, one_line
from bilex.lexicon.formats.decoding import decode, is_comment
from bilex.lexicon.headers import Columns, find_columns, is_header
from bilex.lexicon.reading import Collector, Layout, Reading

Form = Literal["tab", "space", "csv"]

_DELIMITERS = (",", ";", "\t", "|")
_EXPECTED: dict[str, str] = {
    "tab": "source word, tab, target word",
    "space": "source word, space, target word",
    "csv": "source,target",
}
_REJECTED = frozenset(["no", "n", "wrong", "false", "reject", "rejected", "bad", "-", "0", "x", "✗", "✘"])
_ACCEPTED = frozenset(
    ["yes", "y", "right", "true", "accept", "accepted", "good", "ok", "correct", "+", "1", "✓", "✔"]
) | {""}
_SHOWN_OF_A_CELL = 20
_NEARLY_ALL, _SNIFFED_LINES, _ROWS_COMPARED = 0.9, 200, 20
_ORIGINS = {"known": True, "found": False}
_PLACES_WITHOUT_HEADER = {"score": 2, "confidence": 3, "known": 4}  # as `bilex lexicon` writes TSV
_NUMBERS = {"score": float, "confidence": float, "source_rank": int, "target_rank": int, "sense": int}


@dataclass(frozen=True)
class Row:
    """One line with its cells, or the fault that keeps it from having any."""

    number: int
    cells: tuple[str, ...] = ()
    fault: str = ""


def read_rows(path: Path, layout: Layout, form: Form | None = None) -> Reading:
    """Read a file of rows.

    Args:
        path: The file, UTF-8 or UTF-16 with a byte-order mark, any line ends.
        layout: How it is laid out, where it does not say so itself.
        form: What it is known to be; None to find out.

    Raises:
        BilexError: The file cannot be read, is not Unicode text, is empty, lacks a column that was named, or
            most of its lines are no pairs.
    """
    lines = decode(path).split("\n")
    form, delimiter = _division(path, lines, layout, form)
    plain = form != "csv"
    rows = _plain_rows(lines, delimiter) if plain else csv_rows(lines, delimiter)
    collector = Collector(path, form, layout, expected=_EXPECTED[form], strict=True)
    collector.comments = sum(is_comment(line) for line in lines) if plain else 0
    return take_rows(collector, rows, spreadsheet=not plain)


def take_rows(collector: Collector, rows: Iterable[Row], *, spreadsheet: bool) -> Reading:
    """Make entries of the rows of a file or a sheet, the first of which may name the columns."""
    layout, rest = collector.layout, iter(rows)
    begun = list(itertools.islice(rest, _ROWS_COMPARED))
    first = begun[0].cells if begun else ()
    columns = find_columns(collector.path, first, layout.columns, layout.languages, spreadsheet=spreadsheet)
    if layout.columns is None and columns.from_header and _names_its_languages(begun):
        columns = Columns()  # each row names its languages, as glossaries of DeepL do
    header = first if begun and columns.from_header else ()
    facts = _fact_places(header)
    for row in itertools.chain(begun[1 if header else 0 :], rest):
        if row.fault:
            collector.leave_out(row.number, row.fault)
        else:
            _take(collector, row, columns, facts)
            known = header or layout.columns or _is_ours(row.cells, columns)
            collector.extra += not known and len(row.cells) > 2
    return collector.finished(header=header)


def _names_its_languages(rows: Sequence[Row]) -> bool:
    """Whether a column says the same language in the first row and in those after it, as far as given."""
    sample = [row.cells for row in rows if row.cells]
    shortest = min(len(cells) for cells in sample)
    return len(sample) > 1 and any(
        code_of(sample[0][place]) is not None and len({cells[place] for cells in sample}) == 1
        for place in range(shortest)
    )


def judged(verdict: str) -> bool | None:
    """Whether a verdict accepts its pair; None if it is neither yes nor no."""
    word = verdict.strip().casefold()
    return True if word in _ACCEPTED else False if word in _REJECTED else None


def _take(collector: Collector, row: Row, columns: Columns, facts: dict[str, int]) -> None:
    cells = row.cells
    source, target, verdict = (
        cells[column].strip() if column < len(cells) else "" for column in columns.places
    )
    if not source or not target:
        collector.leave_out(row.number, "one of the two words is missing")
        return
    right = judged(verdict) if collector.layout.verdicts else True
    if right is None:
        said = one_line(verdict)[:_SHOWN_OF_A_CELL]
        collector.leave_out(row.number, f"the third column says '{said}', neither yes nor no")
        return
    places = facts or (_PLACES_WITHOUT_HEADER if _is_ours(cells, columns) else {})
    known = {name: cells[place].strip() for name, place in places.items() if place < len(cells)}
    collector.add(row.number, [_with_facts(source, target, known)], rejected=not right)


def _with_facts(source: str, target: str, cells: dict[str, str]) -> Entry:
    if not any(cells.values()):
        return Entry(source, target)
    numbers = {name: number_of(cells[name], kind) for name, kind in _NUMBERS.items() if name in cells}
    texts = {name: cells[name] for name in TEXTS if name in cells}
    known = _ORIGINS.get(cells.get("known", "").casefold(), False)
    return Entry(source, target, known=known, **numbers, **texts)  # type: ignore[arg-type]


def _fact_places(header: tuple[str, ...]) -> dict[str, int]:
    """The columns, by the names that we write, of what else is known about a pair."""
    names = [cell.strip().casefold().replace(" ", "_") for cell in header]
    return {name: names.index(name) for name in (*_NUMBERS, "known", *TEXTS) if name in names}


def _is_ours(cells: tuple[str, ...], columns: Columns) -> bool:
    """Whether a row has the five columns of `bilex lexicon`."""
    return (
        len(cells) == 5
        and columns.places[:2] == (0, 1)
        and cells[4] in _ORIGINS
        and (not cells[2] or number_of(cells[2]) is not None)
        and (not cells[3] or number_of(cells[3]) is not None)
    )


def _division(path: Path, lines: list[str], layout: Layout, form: Form | None) -> tuple[Form, str]:
    """The form of a file of rows, and what divides its columns."""
    announced = re.fullmatch(r"sep=(.)", lines[0]) if lines else None
    if layout.delimiter is not None:
        delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(layout.delimiter, layout.delimiter)
        if len(delimiter) != 1 or delimiter in '\n\r"':
            raise BilexError(f"--delimiter '{layout.delimiter}': give one character, or tab.")
        found: Form = "tab" if delimiter == "\t" else "space" if delimiter == " " else "csv"
        quoted = form == "csv" or (form is None and path.suffix.lower() == ".csv")
        return ("csv" if quoted and found == "tab" else found), delimiter
    if form in ("tab", "space"):
        return form, "\t" if form == "tab" else " "
    if announced and announced[1] != '"':  # Excel's own way to say it; the line itself is no pair
        lines[0] = ""
        return "csv", announced[1]
    if form == "csv" or path.suffix.lower() == ".csv":
        return "csv", _csv_delimiter(lines)
    return _sniffed(lines)


def _sniffed(lines: list[str]) -> tuple[Form, str]:
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
    """The delimiter of a header that is one; else the one that gives most lines two cells or more."""
    sample = [line for line in lines if line.strip()][:_SNIFFED_LINES]
    for delimiter in _DELIMITERS:
        if sample and is_header(sample[0].split(delimiter)):
            return delimiter

    def whole_lines(delimiter: str) -> tuple[int, bool]:
        rows = sum(len(row.cells) > 1 for row in csv_rows(sample, delimiter))
        return rows, delimiter == "," or (_regular(sample, delimiter) and not _regular(sample, ","))

    return max(_DELIMITERS, key=lambda delimiter: (*whole_lines(delimiter), delimiter == ","))


def _plain_rows(lines: list[str], delimiter: str) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip() or is_comment(line):
            continue
        if delimiter == "\t":
            cells = line.split("\t")
            yield Row(number, tuple(cells), "" if len(cells) > 1 else "no tab in it")
            continue
        words = [word for word in line.strip().split(" ") if word]
        fault = "" if len(words) == 2 else f"{len(words)} words where two are expected"
        yield Row(number, tuple(words), fault)


def csv_rows(lines: list[str], delimiter: str) -> Iterator[Row]:
    """The rows of CSV that are not empty."""
    reader = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Row(reader.line_num, fault=f"not CSV ({error})")
            continue
        if any(row):
            yield Row(reader.line_num, tuple(row), "" if len(row) > 1 else "fewer than two columns")
