"""Text in rows and columns: word lists with any delimiter, TSV, CSV, glossaries for DeepL.

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
from typing import ClassVar, Literal, NamedTuple

from bilex.core.errors import BilexError, nearest_name
from bilex.core.languages import code_of, is_code, is_language_name, short_code
from bilex.lexicon.entries import (
    NUMBERS,
    TEXTS,
    UNKNOWN_LANGUAGE,
    Dictionary,
    Entry,
    Languages,
    number_of,
    number_text,
    one_line,
)
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, line_fault
from bilex.lexicon.reading import Reading, all_lines

Division = Literal["tab", "space", "csv"]

_SOURCE_NAMES = frozenset(("source", "src", "source word", "from", "word", "term", "lemma", "headword"))
_TARGET_NAMES = frozenset(
    ("target", "tgt", "trg", "target word", "to", "translation", "translations", "meaning")
)
_VERDICT_NAMES = frozenset(("verdict", "right", "correct", "ok", "accepted", "judgement", "judgment"))
_FACTS = (*NUMBERS, "known", *TEXTS)
_DELIMITERS = (",", ";", "\t", "|")
_EXPECTED = {
    "tab": "source word, tab, target word",
    "space": "source word, space, target word",
    "csv": "source,target",
}
_PLACES_WITHOUT_HEADER = {"score": 2, "confidence": 3, "known": 4}  # as `bilex lexicon` writes TSV
_NEARLY_ALL, _SNIFFED_LINES, _ROWS_COMPARED = 0.9, 200, 20
_SHOWN, _MOST_DIGITS = 200, 9
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
# The limits of https://developers.deepl.com/docs/api-reference/glossaries. It takes one translation per word,
# no control characters or line ends, and no blanks around a word.
_LARGEST_DEEPL_GLOSSARY, _LARGEST_DEEPL_WORD = 10 << 20, 1024


class Row(NamedTuple):
    """One line with its cells, or the fault that keeps it from having any."""

    number: int
    cells: tuple[str, ...] = ()
    fault: str = ""


class Table(DictionaryFormat):
    """Rows of cells, whatever divides them."""

    name, noun = "table", "a table"
    strict = has_columns = True
    division: ClassVar[Division | None] = None

    def recognizes(self, path: Path, head: bytes) -> bool:
        """Never: what no other format recognises is read as a table."""
        return False

    def _parse(self, reading: Reading) -> None:
        lines = all_lines(reading.path)
        division, delimiter = _division(reading, lines, self.division)
        reading.report.form, reading.expected = division, _EXPECTED[division]
        if division == "csv":
            take_rows(reading, csv_rows(lines, delimiter), spreadsheet=True)
        else:
            reading.report.comments = sum(map(is_comment, lines))
            take_rows(reading, _plain_rows(lines, delimiter), spreadsheet=False)


class TSV(Table):
    """Tab-separated text: both words, then score, confidence, and known or found."""

    name, noun, suffixes = "tsv", "a TSV file", (".tsv", ".txt", ".dict")
    division = "tab"

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        """Two columns, or five if pairs have scores, without a header.

        Pairs that a reader would take for a header ("source", "target") do not come first.
        """
        scored, entries = dictionary.scored(), list(dictionary.entries)
        like_words = (
            place for place, entry in enumerate(entries) if not _is_header(entry.source, entry.target)
        )
        first = next(like_words, None)
        if first is None and entries:
            raise BilexError(
                f"the pair {entries[0].source!r}, {entries[0].target!r} does not fit into a TSV file alone "
                "(it reads as a header); write another format, such as .jsonl."
            )
        if first:
            entries.insert(0, entries.pop(first))
        for entry in entries:
            cells = [entry.source, entry.target]
            if options.defuse_formulas:
                cells = [defused(cell) for cell in cells]
            if scored:
                cells += [number_text(entry.score), number_text(entry.confidence), entry.origin() or "found"]
            yield "\t".join(cells) + "\n"

    def _fault(self, entry: Entry) -> str:
        if is_comment(f"{entry.source}\t{entry.target}"):
            return "'# ' before a word, which begins a comment"
        return line_fault(entry)


class CSV(Table):
    """Comma-separated text with a header, for spreadsheets."""

    name, noun, suffixes = "csv", "a CSV file", (".csv",)
    division = "csv"

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        for row in table_rows(dictionary):
            yield csv_line([defused(str(cell)) for cell in row] if options.defuse_formulas else row)


class DeepL(DictionaryFormat):
    """A glossary for DeepL (CSV without header; its limits are checked)."""

    name, noun, expected = "deepl", "a DeepL glossary", "source,target"
    strict = one_translation = True

    def _parse(self, reading: Reading) -> None:
        for row in csv_rows(all_lines(reading.path), ","):
            reading.add(row.number, row.fault or [Entry(row.cells[0], row.cells[1])])
            if reading.languages == (None, None) and len(row.cells) == 4:
                source, target = (short_code(cell.strip()) or None for cell in row.cells[2:])
                reading.languages = source, target

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        size, codes = 0, dictionary.codes()
        languages = () if UNKNOWN_LANGUAGE in codes else [code.upper() for code in codes]
        for number, entry in enumerate(dictionary.entries):
            line = csv_line([entry.source, entry.target, *languages])
            size += len(line.encode())
            if size > _LARGEST_DEEPL_GLOSSARY:
                raise BilexError(
                    f"DeepL takes glossaries of up to 10 MiB, which the first {number:,} of "
                    f"{len(dictionary.entries):,} pairs fill; write fewer, for example with --ranks or "
                    "--min-confidence."
                )
            yield line

    def _fault(self, entry: Entry) -> str:
        if any(len(word.encode()) > _LARGEST_DEEPL_WORD for word in (entry.source, entry.target)):
            return f"a word of more than {_LARGEST_DEEPL_WORD:,} bytes"
        return line_fault(entry)


def take_rows(reading: Reading, rows: Iterable[Row], *, spreadsheet: bool) -> None:
    """Add the rows of a file or a sheet, the first of which may name the columns."""
    layout, rest = reading.layout, iter(rows)
    begun = list(itertools.islice(rest, _ROWS_COMPARED))
    first = begun[0].cells if begun else ()
    names = [cell.strip().casefold() for cell in first]
    places = _header(names, layout.languages, spreadsheet)
    # A column that has the same language in every row is no header: glossaries of DeepL are so.
    sample = zip(*(row.cells for row in begun if row.cells), strict=False)
    if any(len(cells) > 1 and len(set(cells)) == 1 and code_of(cells[0]) for cells in sample):
        places = None if layout.columns is None else places
    named = places is not None
    if layout.columns is not None:
        places = (
            _place(reading.path, layout.columns[0], names),
            _place(reading.path, layout.columns[1], names),
        )
        named = named or not all(name.strip().isdecimal() for name in layout.columns)
    source, target = places or (0, 1)
    reading.report.header = first if named else ()
    verdicts = [place for place, name in enumerate(names) if named and name in _VERDICT_NAMES]
    others = (place for place in range(len(names)) if place not in (source, target))
    verdict = verdicts[0] if verdicts else next(others, len(names)) if places else 2
    titles = [name.replace(" ", "_") for name in names] if named else []
    facts = {name: titles.index(name) for name in _FACTS if name in titles}
    for row in itertools.chain(begun[1:] if named else begun, rest):
        if row.fault:
            reading.leave_out(row.number, row.fault)
            continue
        ours = (  # the five columns of `bilex lexicon`
            len(row.cells) == 5
            and (source, target) == (0, 1)
            and row.cells[4] in ("known", "found")
            and all(not cell or number_of(cell) is not None for cell in row.cells[2:4])
        )
        cells = dict(enumerate(row.cells))
        entry = Entry(cells.get(source, ""), cells.get(target, ""))
        if chosen := facts or (_PLACES_WITHOUT_HEADER if ours else {}):
            entry = entry.with_facts({name: cells.get(place, "").strip() for name, place in chosen.items()})
        reading.add(row.number, [entry], cells.get(verdict, ""))
        reading.report.extra_columns += not (named or layout.columns or ours) and len(row.cells) > 2


def _is_header(*cells: str) -> bool:
    """Whether a row names its columns source and target, or two languages by name."""
    return _header([cell.strip().casefold() for cell in cells], (None, None), False) is not None


def _header(names: list[str], languages: Languages, spreadsheet: bool) -> tuple[int, int] | None:
    """The places of source and target if these are the names of columns, else None.

    Bare codes ("en", "fi") count in spreadsheets, or if they are the languages that are expected: in a plain
    word list they may be words.
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


def _division(reading: Reading, lines: list[str], division: Division | None) -> tuple[Division, str]:
    """How a file of rows is divided, and by what; None as division to detect it."""
    quoted = division == "csv" or (division is None and reading.path.suffix.lower() == ".csv")
    if (wanted := reading.layout.delimiter) is not None:
        delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(wanted, wanted)
        if len(delimiter) != 1 or delimiter in '\n\r"':
            raise BilexError(f"--delimiter '{wanted}': give one character, or tab.")
        found: Division = (
            "space" if delimiter == " " else "tab" if delimiter == "\t" and not quoted else "csv"
        )
        return found, delimiter
    if division in ("tab", "space"):
        return division, "\t" if division == "tab" else " "
    if announced := re.fullmatch(
        r'sep=([^"])', lines[0]
    ):  # Excel's way to say it; the line itself is no pair
        lines[0] = ""
        return "csv", announced[1]
    return ("csv", _csv_delimiter(lines)) if quoted else _sniffed(lines)


def _sniffed(lines: list[str]) -> tuple[Division, str]:
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
    usual, times = counts.most_common(1)[0] if counts else (0, 0)
    return usual > 0 and times >= _NEARLY_ALL * len(lines)


def _csv_delimiter(lines: list[str]) -> str:
    """The delimiter of a header that is one; else the one that gives most lines two cells or more."""
    sample = [line for line in lines if line.strip()][:_SNIFFED_LINES]
    for delimiter in _DELIMITERS:
        if sample and _is_header(*sample[0].split(delimiter)):
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
        texts = {
            "score": number_text(entry.score),
            "confidence": number_text(entry.confidence),
            "known": entry.origin() or "found",
        }
        cells = (texts.get(field, getattr(entry, field)) for field in fields)
        yield ["" if cell is None else cell for cell in cells]


def defused(cell: str) -> str:
    """A cell that no spreadsheet runs: an apostrophe before what would start a formula.

    Cells that begin with apostrophes and then such a sign get one more, so that `restored` is exact.
    """
    return f"'{cell}" if cell.lstrip("'").startswith(_FORMULA_STARTS) else cell


def restored(cell: str) -> str:
    """What `defused` was given."""
    inner = cell[1:] if cell.startswith("'") else cell
    return inner if inner != cell and inner.lstrip("'").startswith(_FORMULA_STARTS) else cell
