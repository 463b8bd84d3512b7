"""XLSX workbooks (extra `xlsx`: openpyxl): the first sheet, a row a pair."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions
from bilex.lexicon.formats.decoding import cannot_be_read
from bilex.lexicon.formats.rows import Row, take_rows
from bilex.lexicon.formats.tables import table_rows
from bilex.lexicon.reading import Collector, Layout, Reading

MOST_ROWS, MOST_COLUMNS, LONGEST_CELL = 1_048_576, 256, 32_767
LARGEST_UNPACKED = 1 << 29
_BLOCK = 1 << 20
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ESCAPE = re.compile("_x[0-9A-Fa-f]{4}_")
_UTF_8 = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<(?!\?xml[^>]*encoding\s*=\s*[\"'](?!utf-?8|us-ascii))", re.IGNORECASE
)


def _read(path: Path, layout: Layout) -> Reading:
    _check_archive(path)
    openpyxl = _library()
    collector = Collector(path, "xlsx", layout, "rows", "row", expected="source and target", strict=True)
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions, which no pair depends on
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
            return take_rows(collector, _rows(workbook.worksheets[0]), spreadsheet=True)
    except BilexError:
        raise
    except Exception as error:  # openpyxl raises whatever a damaged part makes it stumble over
        raise BilexError(
            f"{path}: is no workbook that can be read ({type(error).__name__}); save it again."
        ) from error


def _rows(sheet: Any) -> Iterator[Row]:
    """The rows with words in them, as wide as the sheet says or else up to their last word."""
    said = sheet.max_column
    width = min(said or MOST_COLUMNS, MOST_COLUMNS)
    before: object = None
    for number, row in enumerate(sheet.iter_rows(max_col=width, values_only=True), 1):
        if number > MOST_ROWS:
            return
        if row is before:  # openpyxl fills a gap between rows, which may be of millions, with one object
            continue
        before = row
        cells = tuple("" if cell is None else str(cell) for cell in row)
        if not said:
            cells = cells[: max((place for place, cell in enumerate(cells, 1) if cell), default=0)]
        if any(cell.strip() for cell in cells):
            yield Row(number, cells, "" if len(cells) > 1 else "fewer than two columns")


def _check_archive(path: Path) -> None:
    """Refuse what is no workbook, unpacks into too much, or has parts that declare a document type.

    Raises:
        BilexError: It is so.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if "[Content_Types].xml" not in archive.namelist():
                raise BilexError(f"{path}: is an archive, not a workbook; save the sheet as .xlsx or CSV.")
            if sum(member.file_size for member in members) > LARGEST_UNPACKED:
                raise BilexError(f"{path}: unpacks into more than 512 MB; give a smaller workbook.")
            for member in members:
                if member.filename.lower().endswith((".xml", ".rels")):
                    _check_part(path, archive, member)
    except OSError as error:
        raise cannot_be_read(path, error) from error
    except BilexError:
        raise
    except Exception as error:  # zipfile and zlib raise many things on damaged archives
        raise BilexError(
            f"{path}: is no workbook, or damaged ({type(error).__name__}); save it again."
        ) from error


def _check_part(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    before, size = b"", 0
    with archive.open(member) as part:
        while block := part.read(_BLOCK):
            if not size and not _UTF_8.match(block):
                raise BilexError(
                    f"{path}: its part {member.filename[:60]!r} is not XML in UTF-8; save it again."
                )
            size += len(block)
            if b"<!DOCTYPE" in before + block:
                raise BilexError(f"{path}: declares a document type, which no workbook does; it is not read.")
            if size > member.file_size:
                raise BilexError(f"{path}: unpacks into more than it says; it is damaged.")
            before = block[-16:]


def _library() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise BilexError(
            "workbooks need the package openpyxl; install it with: pip install 'bilex[xlsx]', or use CSV."
        ) from error
    return openpyxl


def _save(path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
    """Write one sheet; every cell is text, never a formula, and marked as text where that is asked for."""
    openpyxl = _library()
    if len(dictionary.entries) >= MOST_ROWS:
        raise BilexError(f"{path}: a sheet holds {MOST_ROWS - 1:,} pairs; write fewer, or CSV.")
    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet("dictionary")
    for row in table_rows(dictionary):
        sheet.append([_cell(openpyxl, sheet, value, options) for value in row])
    with atomic_file(path) as temporary:
        workbook.save(temporary)


def _cell(openpyxl: Any, sheet: Any, value: str | int, options: WriteOptions) -> Any:
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "#")):
        return value
    cell = openpyxl.cell.WriteOnlyCell(sheet)
    cell.value, cell.data_type = value, "s"
    cell.quotePrefix = options.defuse_formulas
    return cell


def _fault(entry: Entry) -> str:
    for text in (entry.source, entry.target, entry.part_of_speech, entry.status, entry.provenance):
        if len(text) > LONGEST_CELL:
            return f"a word of more than {LONGEST_CELL:,} characters"
        if _FORBIDDEN.search(text):
            return "a control character in a word"
        if "\r" in text or _ESCAPE.search(text):
            return "a carriage return or an escape such as _x0041_ in a word"
    return ""


FORMAT = DictionaryFormat(
    name="xlsx",
    description="a workbook, for Excel and LibreOffice (needs the extra xlsx)",
    suffixes=(".xlsx",),
    noun="a workbook",
    read=_read,
    save=_save,
    fault=_fault,
)
