"""Text in rows and columns: word lists with any delimiter, TSV, CSV, glossaries for DeepL.

In files named `.csv` the delimiter is what a spreadsheet writes: comma, semicolon, tab or bar. In others it
is a tab if any line has one, a semicolon, comma or bar if nearly every line has it, and else a space.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal

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
    parsed_facts,
)
from bilex.lexicon.files import BYTE_ORDER_MARK, DictionaryFormat, Reading, WriteOptions, all_lines

Division = Literal["tab", "space", "csv"]
Row = tuple[int, list[str], str]  # the number of a line, its cells, and why it holds no pair, if so

_SOURCE_NAMES = frozenset(("source", "src", "source word", "from", "word", "term", "lemma", "headword"))
_TARGET_NAMES = frozenset(
    ("target", "tgt", "trg", "target word", "to", "translation", "translations", "meaning")
)
_VERDICT_NAMES = frozenset(("verdict", "right", "correct", "ok", "accepted", "judgement", "judgment"))
_NAMED_COLUMNS = ("verdict", *NUMBERS, "known", *TEXTS)
_DELIMITERS = (",", ";", "\t", "|")
_EXPECTED = {
    "tab": "source word, tab, target word",
    "space": "source word, space, target word",
    "csv": "source,target",
}
_PLACES_WITHOUT_HEADER = {"score": 2, "confidence": 3, "known": 4}  # as `bilex lexicon` writes TSV
_NEARLY_ALL, _SAMPLED_LINES, _SAMPLED_ROWS = 0.9, 200, 20
_SHOWN, _MOST_DIGITS = 200, 9
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
# The limits of https://developers.deepl.com/docs/api-reference/glossaries. It takes one translation per word,
# no control characters or line ends, and no blanks around a word.
_LARGEST_DEEPL_GLOSSARY, _LARGEST_DEEPL_WORD = 10 << 20, 1024


class Table(DictionaryFormat):
    """Rows of cells with any delimiter."""

    name, noun = "table", "a table"
    strict = has_columns = True
    read_suffixes = ()  # what no other format recognises is read as a table
    division: ClassVar[Division | None] = None

    def _parse(self, reading: Reading) -> None:
        lines = all_lines(reading.path)
        division, delimiter = _division(reading, lines, self.division)
        reading.report.format, reading.expected = division, _EXPECTED[division]
        if division == "csv":
            take_rows(reading, csv_rows(lines, delimiter), spreadsheet=True)
        else:
            reading.report.comments = sum(map(is_comment, lines))
            take_rows(reading, _plain_rows(lines, delimiter), spreadsheet=False)


class TSV(Table):
    """Tab-separated text: both words, then score, confidence, and known or found."""

    name, noun, suffixes = "tsv", "a TSV file", (".tsv", ".txt", ".dict")
    unfit = ((re.compile("^# "), "'# ' before a word, which begins a comment"), BYTE_ORDER_MARK)
    division = "tab"

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        """Two columns, or five if pairs have scores, without a header.

        Pairs that a reader would take for a header ("source", "target") do not come first.
        """
        scored, entries = dictionary.scored(), dictionary.entries
        first = next((entry for entry in entries if not _is_header(entry.source, entry.target)), None)
        if first is None and entries:
            raise BilexError(
                f"the pair {entries[0].source!r}, {entries[0].target!r} does not fit into a TSV file alone "
                "(it reads as a header); write another format, such as .jsonl."
            )
        for entry in sorted(entries, key=lambda entry: entry is not first):
            cells = [entry.source, entry.target]
            if options.defuse_formulas:
                cells = [defused(cell) for cell in cells]
            if scored:
                cells += [number_text(entry.score), number_text(entry.confidence), entry.origin() or "found"]
            yield "\t".join(cells) + "\n"


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
    unfit = (BYTE_ORDER_MARK,)
    strict = one_translation = True

    def _parse(self, reading: Reading) -> None:
        for number, cells, fault in csv_rows(all_lines(reading.path), ","):
            reading.add(number, fault or [Entry(cells[0], cells[1])])
            if reading.languages == (None, None) and len(cells) == 4:
                source, target = (short_code(cell.strip()) or None for cell in cells[2:])
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
        return super()._fault(entry)


def take_rows(reading: Reading, rows: Iterator[Row], *, spreadsheet: bool) -> None:
    """Add the rows of a file or a sheet, the first of which may name the columns."""
    sample = list(itertools.islice(rows, _SAMPLED_ROWS))
    columns, has_header = _find_columns(reading, [cells for _, cells, _ in sample], spreadsheet)
    if has_header:
        reading.report.header = tuple(sample.pop(0)[1])
    for number, row, fault in itertools.chain(sample, rows):
        if fault:
            reading.add(number, fault)
            continue
        ours = (  # the five columns of `bilex lexicon`
            len(row) == 5
            and (columns["source"], columns["target"]) == (0, 1)
            and row[4] in ("known", "found")
            and all(not cell or number_of(cell) is not None for cell in row[2:4])
        )
        places = _PLACES_WITHOUT_HEADER | columns if ours else columns
        cells = {name: row[place].strip() for name, place in places.items() if place < len(row)}
        entry = Entry(cells.get("source", ""), cells.get("target", ""), **parsed_facts(cells))
        reading.add(number, [entry], cells.get("verdict", ""))
        taken = has_header or reading.layout.columns or reading.layout.verdicts or ours
        reading.report.extra_columns += not taken and len(row) > 2


def _find_columns(
    reading: Reading, sample: list[list[str]], spreadsheet: bool
) -> tuple[dict[str, int], bool]:
    """The places of the columns by what they hold, and whether the first row names them."""
    names = [cell.strip().casefold() for cell in sample[0]] if sample else []
    header = _header(names, reading.layout.languages, spreadsheet)
    has_header = header is not None
    # A column with the same language in every row, as in glossaries of DeepL, does not name the columns.
    sampled = zip(*filter(None, sample), strict=False)
    same = any(len(cells) > 1 and len(set(cells)) == 1 and code_of(cells[0]) for cells in sampled)
    if (wanted := reading.layout.columns) is not None:
        source, target = (_place(reading.path, name, names) for name in wanted)
        has_header = has_header or not all(name.strip().isdecimal() for name in wanted)
    elif header is None or same:
        return {"source": 0, "target": 1, "verdict": 2}, False
    else:
        source, target = header
    others = (place for place in range(len(names)) if place not in (source, target))
    columns = {"source": source, "target": target, "verdict": next(others, len(names))}
    if has_header:
        titles = ["verdict" if name in _VERDICT_NAMES else name.replace(" ", "_") for name in names]
        columns |= {name: titles.index(name) for name in _NAMED_COLUMNS if name in titles}
    return columns, has_header


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
    """How the lines of a file are split, and the delimiter; None as division to detect it."""
    quoted = division == "csv" or (division is None and reading.path.suffix.lower() == ".csv")
    if (wanted := reading.layout.delimiter) is not None:
        delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(wanted, wanted)
        if len(delimiter) != 1 or delimiter in '\n\r"':
            raise BilexError(f"--delimiter '{wanted}': give one character, or tab.")
        unquoted: dict[str, Division] = {" ": "space"} if quoted else {" ": "space", "\t": "tab"}
        return unquoted.get(delimiter, "csv"), delimiter
    if division == "tab":
        return "tab", "\t"
    announced = re.fullmatch(r'sep=([^"])', lines[0])
    if announced:  # how Excel names the delimiter; the line itself is no pair
        lines[0] = ""
        return "csv", announced[1]
    if quoted:
        return "csv", _csv_delimiter(lines)
    if any("\t" in line.strip() and not is_comment(line) for line in lines):
        return "tab", "\t"
    sample = [line for line in lines if line.strip() and not is_comment(line)][:_SAMPLED_LINES]
    by_space = sum(len(line.split()) == 2 for line in sample)
    regular = (delimiter for delimiter in (";", ",", "|") if _regular(sample, delimiter))
    delimiter = next(regular, " ") if by_space < len(sample) / 2 else " "
    return "space" if delimiter == " " else "csv", delimiter


def _regular(lines: list[str], delimiter: str) -> bool:
    """Whether nearly every line has a delimiter, as often as the others."""
    counts = Counter(line.count(delimiter) for line in lines)
    usual, times = counts.most_common(1)[0] if counts else (0, 0)
    return usual > 0 and times >= _NEARLY_ALL * len(lines)


def _csv_delimiter(lines: list[str]) -> str:
    """The delimiter of a header that is one; else the one that gives most lines two cells or more."""
    sample = [line for line in lines if line.strip()][:_SAMPLED_LINES]
    for delimiter in _DELIMITERS:
        if sample and _is_header(*sample[0].split(delimiter)):
            return delimiter

    def fitness(delimiter: str) -> tuple[int, bool, bool]:
        rows = sum(not fault for _, _, fault in csv_rows(sample, delimiter))
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
            yield number, cells, "" if len(cells) > 1 else "no tab in it"
        else:
            cells = [word for word in line.strip().split(" ") if word]
            yield number, cells, "" if len(cells) == 2 else f"{len(cells)} words where two are expected"


def csv_rows(lines: list[str], delimiter: str) -> Iterator[Row]:
    """The rows of CSV that are not empty."""
    reader = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=delimiter)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield reader.line_num, [], f"not CSV ({error})"
            continue
        if row is None:
            return
        if any(row):
            yield reader.line_num, row, "" if len(row) > 1 else "fewer than two columns"


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

    Cells that begin with apostrophes and then such a character get one more, so that `restored` is exact.
    """
    return f"'{cell}" if cell.lstrip("'").startswith(_FORMULA_STARTS) else cell


def restored(cell: str) -> str:
    """What `defused` was given."""
    inner = cell[1:] if cell.startswith("'") else cell
    return inner if inner != cell and inner.lstrip("'").startswith(_FORMULA_STARTS) else cell
