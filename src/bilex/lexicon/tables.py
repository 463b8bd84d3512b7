"""Dictionaries as rows and cells: what divides them, which columns hold the words, and what else they say.

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
from pathlib import Path
from typing import Literal, NamedTuple

from bilex.core.errors import BilexError, nearest_name
from bilex.core.languages import code_of, is_code, is_language_name
from bilex.lexicon.entries import (
    NUMBERS,
    TEXTS,
    Dictionary,
    Entry,
    Languages,
    number_of,
    number_text,
    one_line,
)
from bilex.lexicon.reading import Collector, Layout, Reading, decode

Form = Literal["tab", "space", "csv"]

_SOURCE_NAMES = frozenset(("source", "src", "source word", "from", "word", "term", "lemma", "headword"))
_TARGET_NAMES = frozenset(
    ("target", "tgt", "trg", "target word", "to", "translation", "translations", "meaning")
)
_VERDICT_NAMES = frozenset(("verdict", "right", "correct", "ok", "accepted", "judgement", "judgment"))
_DELIMITERS = (",", ";", "\t", "|")
_EXPECTED: dict[str, str] = {
    "tab": "source word, tab, target word",
    "space": "source word, space, target word",
    "csv": "source,target",
}
_REJECTED = frozenset(["no", "n", "wrong", "false", "reject", "rejected", "bad", "-", "0", "x", "✗", "✘"])
_ACCEPTED = frozenset(
    ["", "yes", "y", "right", "true", "accept", "accepted", "good", "ok", "correct", "+", "1", "✓", "✔"]
)
_ORIGINS = {"known": True, "found": False}
_PLACES_WITHOUT_HEADER = {"score": 2, "confidence": 3, "known": 4}  # as `bilex lexicon` writes TSV
_NEARLY_ALL, _SNIFFED_LINES, _ROWS_COMPARED = 0.9, 200, 20
_SHOWN, _SHOWN_OF_A_CELL, _MOST_DIGITS = 200, 20, 9
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


class Row(NamedTuple):
    """One line with its cells, or the fault that keeps it from having any."""

    number: int
    cells: tuple[str, ...] = ()
    fault: str = ""


class _Columns(NamedTuple):
    """Places (from 0) of source word, target word and verdict, and whether the first line names them."""

    places: tuple[int, int, int] = (0, 1, 2)
    from_header: bool = False


def read_rows(path: Path, layout: Layout, form: Form | None = None) -> Reading:
    """Read a text file of rows; None as form to detect it."""
    lines = decode(path).split("\n")
    form, delimiter = _division(path, lines, layout, form)
    plain = form != "csv"
    rows = _plain_rows(lines, delimiter) if plain else csv_rows(lines, delimiter)
    collector = Collector(path, form, layout, expected=_EXPECTED[form], strict=True)
    collector.report.comments = sum(is_comment(line) for line in lines) if plain else 0
    return take_rows(collector, rows, spreadsheet=not plain)


def take_rows(collector: Collector, rows: Iterable[Row], *, spreadsheet: bool) -> Reading:
    """Make entries of the rows of a file or a sheet, the first of which may name the columns."""
    layout, rest = collector.layout, iter(rows)
    begun = list(itertools.islice(rest, _ROWS_COMPARED))
    first = begun[0].cells if begun else ()
    columns = _find_columns(collector.path, first, layout, spreadsheet)
    if layout.columns is None and columns.from_header:
        # A column that says the same language in every row is no header: glossaries of DeepL are so.
        sample = zip(*(row.cells for row in begun if row.cells), strict=False)
        if any(len(cells) > 1 and len(set(cells)) == 1 and code_of(cells[0]) for cells in sample):
            columns = _Columns()
    header = first if begun and columns.from_header else ()
    names = [cell.strip().casefold().replace(" ", "_") for cell in header]
    facts = {name: names.index(name) for name in (*NUMBERS, "known", *TEXTS) if name in names}
    for row in itertools.chain(begun[1 if header else 0 :], rest):
        if row.fault:
            collector.leave_out(row.number, row.fault)
            continue
        ours = (  # the five columns of `bilex lexicon`
            len(row.cells) == 5
            and columns.places[:2] == (0, 1)
            and row.cells[4] in _ORIGINS
            and all(not cell or number_of(cell) is not None for cell in row.cells[2:4])
        )
        _take(collector, row, columns, facts or (_PLACES_WITHOUT_HEADER if ours else {}))
        collector.report.extra_columns += not (header or layout.columns or ours) and len(row.cells) > 2
    return collector.finished(header=header)


def _take(collector: Collector, row: Row, columns: _Columns, facts: dict[str, int]) -> None:
    cells = row.cells
    source, target, verdict = (
        cells[column].strip() if column < len(cells) else "" for column in columns.places
    )
    right = judged(verdict) if collector.layout.verdicts else True
    if not source or not target:
        collector.leave_out(row.number, "one of the two words is missing")
    elif right is None:
        said = one_line(verdict)[:_SHOWN_OF_A_CELL]
        collector.leave_out(row.number, f"the third column says '{said}', neither yes nor no")
    else:
        given = {name: cells[place].strip() for name, place in facts.items() if place < len(cells)}
        numbers = {name: number_of(given[name], kind) for name, kind in NUMBERS.items() if name in given}
        texts = {name: given[name] for name in TEXTS if name in given}
        known = _ORIGINS.get(given.get("known", "").casefold(), False)
        entry = Entry(source, target, known=known, **numbers, **texts)  # type: ignore[arg-type]
        collector.add(row.number, [entry], rejected=not right)


def judged(verdict: str) -> bool | None:
    """Whether a verdict accepts its pair; None if it is neither yes nor no."""
    word = verdict.strip().casefold()
    return True if word in _ACCEPTED else False if word in _REJECTED else None


def _find_columns(path: Path, first: tuple[str, ...], layout: Layout, spreadsheet: bool) -> _Columns:
    """Decide which columns are meant, and whether the first line is a header."""
    names = [cell.strip().casefold() for cell in first]
    verdict = next((place for place, name in enumerate(names) if name in _VERDICT_NAMES), None)
    header = _header(names, layout.languages, spreadsheet)
    if layout.columns is None and header is None:
        return _Columns()
    source, target = header or (0, 0)
    named = True
    if layout.columns is not None:
        source, target = (_place(path, name, names) for name in layout.columns)
        named = header is not None or not all(name.strip().isdecimal() for name in layout.columns)
    if verdict is None or not named:
        verdict = next((p for p in range(len(names)) if p not in (source, target)), len(names))
    return _Columns((source, target, verdict), named)


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row names its columns source and target, or two languages by name."""
    return _header([cell.strip().casefold() for cell in cells], (None, None), False) is not None


def _header(names: list[str], languages: Languages, spreadsheet: bool) -> tuple[int, int] | None:
    """The places of source and target if these are the names of columns, else None.

    Bare codes ("en", "fi") count in spreadsheets, or where they are the languages that are expected: in a
    plain word list they may be words.
    """
    codes = [code_of(name) for name in names]
    one, other = languages
    if one and other and one in codes and other in codes and one != other:
        return codes.index(one), codes.index(other)
    source = next((place for place, name in enumerate(names) if name in _SOURCE_NAMES), None)
    target = next((place for place, name in enumerate(names) if name in _TARGET_NAMES), None)
    if source is not None and target is not None:
        return source, target
    known = [p for p, name in enumerate(names) if is_language_name(name) or (spreadsheet and is_code(name))]
    if len(known) > 1 and codes[known[0]] != codes[known[1]]:
        return known[0], known[1]
    return None


def _place(path: Path, wanted: str, names: list[str]) -> int:
    """The place of a column that the user named or numbered."""
    wanted = wanted.strip()
    if wanted.isdecimal():
        if len(wanted) > _MOST_DIGITS or not 1 <= int(wanted) <= len(names):
            raise BilexError(
                f"{path}: has no column {wanted[:_SHOWN]}; its first line has {len(names)} columns."
            )
        return int(wanted) - 1
    if wanted.casefold() in names:
        return names.index(wanted.casefold())
    code, codes = code_of(wanted), [code_of(name) for name in names]
    if code is not None and code in codes:
        return codes.index(code)
    raise BilexError(
        f"{path}: no column is called '{wanted}'; its first line names {one_line(', '.join(names))[:_SHOWN]}."
        f"{nearest_name(wanted.casefold(), names)}"
    )


def _division(path: Path, lines: list[str], layout: Layout, form: Form | None) -> tuple[Form, str]:
    """The form of a file of rows, and what divides its columns."""
    announced = re.fullmatch(r"sep=(.)", lines[0])
    quoted = form == "csv" or (form is None and path.suffix.lower() == ".csv")
    if layout.delimiter is not None:
        delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(layout.delimiter, layout.delimiter)
        if len(delimiter) != 1 or delimiter in '\n\r"':
            raise BilexError(f"--delimiter '{layout.delimiter}': give one character, or tab.")
        found: Form = "tab" if delimiter == "\t" else "space" if delimiter == " " else "csv"
        return ("csv" if quoted and found == "tab" else found), delimiter
    if form in ("tab", "space"):
        return form, "\t" if form == "tab" else " "
    if announced and announced[1] != '"':  # Excel's own way to say it; the line itself is no pair
        lines[0] = ""
        return "csv", announced[1]
    return ("csv", _csv_delimiter(lines)) if quoted else _sniffed(lines)


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
    usual, lines_so = counts.most_common(1)[0] if counts else (0, 0)
    return usual > 0 and lines_so >= _NEARLY_ALL * len(lines)


def _csv_delimiter(lines: list[str]) -> str:
    """The delimiter of a header that is one; else the one that gives most lines two cells or more."""
    sample = [line for line in lines if line.strip()][:_SNIFFED_LINES]
    for delimiter in _DELIMITERS:
        if sample and is_header(sample[0].split(delimiter)):
            return delimiter

    def fitness(delimiter: str) -> tuple[int, bool, bool]:
        rows = sum(len(row.cells) > 1 for row in csv_rows(sample, delimiter))
        comma = delimiter == ","
        return (rows, comma or (_regular(sample, delimiter) and not _regular(sample, ",")), comma)

    return max(_DELIMITERS, key=fitness)


def is_comment(line: str) -> bool:
    """Whether a line of a tab or space file is a comment.

    It is when it begins with "#" and a space, or begins with "#" and has neither tab nor space. So "#"
    can be a word of a tab-separated pair ("#", tab, "risuaita") and "#tag merkki" is a pair; in a
    space-separated file a pair whose source word is "#" itself looks like a comment.
    """
    return line.startswith("#") and (line[1:2] == " " or not ("\t" in line or " " in line))


def _plain_rows(lines: list[str], delimiter: str) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip() or is_comment(line):
            continue
        if delimiter == "\t":
            cells = line.split("\t")
            fault = "" if len(cells) > 1 else "no tab in it"
        else:
            cells = [word for word in line.strip().split(" ") if word]
            fault = "" if len(cells) == 2 else f"{len(cells)} words where two are expected"
        yield Row(number, tuple(cells), fault)


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


def csv_line(cells: Sequence[object]) -> str:
    """One row of CSV, quoted where it must be.

    Until Python 3.13 a writer quotes carriage returns only if its line ends have one; spreadsheets end rows
    there.
    """
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().removesuffix("\r\n") + "\n"


def table_rows(dictionary: Dictionary) -> Iterator[list[str | int]]:
    """A header and one row per entry: both words, what scored pairs have, and whatever else any entry has."""
    entries = dictionary.entries
    fields = ["source", "target"]
    if dictionary.scored() or any(entry.known for entry in entries):
        fields += ["score", "confidence", "known"]
    if any(entry.source_rank is not None or entry.target_rank is not None for entry in entries):
        fields += ["source_rank", "target_rank"]
    fields += [name for name in ("sense", *TEXTS) if any(getattr(entry, name) for entry in entries)]
    named = dictionary.column_names()
    yield [named.get(field, field) for field in fields]
    for entry in entries:
        cells = {field: getattr(entry, field) for field in fields}
        for name in {"score", "confidence"} & set(fields):
            cells |= {name: number_text(cells[name]), "known": entry.origin() or "found"}
        yield ["" if cells[field] is None else cells[field] for field in fields]


def defused(cell: str) -> str:
    """A cell that no spreadsheet runs: an apostrophe before what would start a formula.

    Cells that begin with apostrophes and then such a sign get one more, so that `restored` is exact.
    """
    return f"'{cell}" if cell.lstrip("'").startswith(_FORMULA_STARTS) else cell


def restored(cell: str) -> str:
    """What `defused` was given."""
    inner = cell[1:] if cell.startswith("'") else cell
    return inner if inner != cell and inner.lstrip("'").startswith(_FORMULA_STARTS) else cell
