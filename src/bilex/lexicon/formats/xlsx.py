"""XLSX workbooks: the first sheet, one pair per row.

A workbook is a zip archive of XML. Its parts are read as streams with the bounds of `formats.xml`, so that
neither time nor memory depends on what a small file unpacks into.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file, opened
from bilex.core.reading import ZIP, check_unpacked
from bilex.lexicon.entries import TEXTS, Dictionary, Entry
from bilex.lexicon.files import DictionaryFormat, Reading, WriteOptions
from bilex.lexicon.formats.tables import Row, table_rows, take_rows
from bilex.lexicon.formats.xml import DECLARATION, elements, whole_text

MOST_ROWS, MOST_COLUMNS, LONGEST_CELL = 1_048_576, 256, 32_767
LARGEST_PART = 1 << 28
MOST_TEXT = 1 << 27  # of all shared strings, with what Python needs for each
_COST_OF_A_STRING = 64
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_COLUMN = re.compile("[A-Z]{1,3}")
_PHONETIC = ("rPh", "phoneticPr")
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_FIXED_PARTS = {
    "[Content_Types].xml": (
        f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPES}.worksheet+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPES}.styles+xml"/></Types>'
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="dictionary" sheetId="1" r:id="rId1"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" '
        f'Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>'
    ),
    # The second style has quotePrefix, which marks a cell as text that is no formula.
    "xl/styles.xml": (
        f'<styleSheet xmlns="{_MAIN}"><fonts count="1"><font/></fonts><fills count="2"><fill>'
        '<patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
        '<cellXfs count="2"><xf xfId="0"/><xf xfId="0" quotePrefix="1"/></cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    ),
}


class XLSX(DictionaryFormat):
    """A workbook, for Excel and LibreOffice."""

    name, noun, suffixes = "xlsx", "a workbook", (".xlsx",)
    read_suffixes = (".xlsx", ".xlsm")
    units, unit, expected = "rows", "row", "source and target"
    strict = has_columns = True

    def recognizes(self, path: Path, head: bytes) -> bool:
        """By the suffix, if it is a zip archive."""
        return head.startswith(ZIP) and super().recognizes(path, head)

    def _parse(self, reading: Reading) -> None:
        try:
            with opened(reading.path) as file, zipfile.ZipFile(file) as archive:
                take_rows(reading, _rows(reading.path, archive), spreadsheet=True)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
            raise BilexError(
                f"{reading.path}: is not a workbook, or damaged ({type(error).__name__}); save it again."
            ) from error

    def save(self, path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
        """Write one sheet; every cell is text or a number, never a formula."""
        if len(dictionary.entries) >= MOST_ROWS:
            raise BilexError(f"{path}: a sheet holds {MOST_ROWS - 1:,} pairs; write fewer, or CSV.")
        with atomic_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in _FIXED_PARTS.items():
                archive.writestr(zipfile.ZipInfo(name), DECLARATION + text, zipfile.ZIP_DEFLATED)
            sheet = zipfile.ZipInfo("xl/worksheets/sheet1.xml")
            sheet.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(sheet, "w", force_zip64=True) as part:
                part.write(f'{DECLARATION}<worksheet xmlns="{_MAIN}"><sheetData>\n'.encode())
                for row in table_rows(dictionary):
                    cells = "".join(_cell(value, options.defuse_formulas) for value in row)
                    part.write(f"<row>{cells}</row>\n".encode())
                part.write(b"</sheetData></worksheet>\n")

    def _fault(self, entry: Entry) -> str:
        texts = (entry.source, entry.target, *(getattr(entry, name) for name in TEXTS))
        too_long = any(len(text) > LONGEST_CELL for text in texts)
        return f"a word of more than {LONGEST_CELL:,} characters" if too_long else ""


def _cell(value: str | int, defuse: bool) -> str:
    if not isinstance(value, str):
        return f"<c><v>{value}</v></c>"
    if not value:
        return "<c/>"
    style = ' s="1"' if defuse and value.startswith(("=", "+", "-", "@", "#")) else ""
    text = escape(_ESCAPE.sub(r"_x005F_x\1_", value))
    return f'<c t="inlineStr"{style}><is><t xml:space="preserve">{text}</t></is></c>'


def _part(path: Path, archive: zipfile.ZipFile, name: str, root: str, kind: str) -> Iterator[Element]:
    """The elements of a kind in a part of a workbook."""
    try:
        part = archive.getinfo(name)
    except KeyError as error:
        raise BilexError(
            f"{path}: is not a workbook: it lacks {name[:60]!r}; save the sheet as .xlsx or CSV."
        ) from error
    check_unpacked(path, part.file_size, part.compress_size, LARGEST_PART)
    return (found for _, found in elements(path, (root,), (kind,), part=archive.open(part)))


def _rows(path: Path, archive: zipfile.ZipFile) -> Iterator[Row]:
    """The rows of the first sheet with words in them, as wide as the widest so far."""
    sheets = list(_part(path, archive, "xl/workbook.xml", "workbook", "sheet"))
    first = sheets[0].get("id", "") if sheets else None
    sheet = strings = ""
    for link in _part(path, archive, "xl/_rels/workbook.xml.rels", "Relationships", "Relationship"):
        target = posixpath.normpath(posixpath.join("/xl", link.get("Target", ""))).lstrip("/")
        if link.get("Id") == first:
            sheet = target
        elif link.get("Type", "").endswith("/sharedStrings"):
            strings = target
    if not sheet:
        raise BilexError(f"{path}: is a workbook without a sheet; save it again.")
    shared = _shared_strings(path, archive, strings) if strings in archive.namelist() else []
    width, number = 0, 0
    for count, row in enumerate(_part(path, archive, sheet, "worksheet", "row"), 1):
        if count > MOST_ROWS:
            raise BilexError(f"{path}: holds more than {MOST_ROWS:,} rows; give a part of it.")
        stated = row.get("r", "")
        number = int(stated) if stated.isdecimal() and len(stated) < 10 else number + 1
        cells: dict[int, str] = {}
        place = -1
        for cell in row.findall("c"):
            letters = _COLUMN.match(cell.get("r", ""))
            place = _column(letters[0]) if letters else place + 1
            if place < MOST_COLUMNS:
                cells[place] = _value(cell, shared)
        if any(value.strip() for value in cells.values()):
            width = max(width, *(place + 1 for place, value in cells.items() if value))
            values = [cells.get(place, "") for place in range(width)]
            yield number, values, "" if width > 1 else "fewer than two columns"


def _shared_strings(path: Path, archive: zipfile.ZipFile, name: str) -> list[str]:
    """The texts that cells refer to by number."""
    found: list[str] = []
    size = 0
    for node in _part(path, archive, name, "sst", "si"):
        found.append(_text(node))
        size += len(found[-1]) + _COST_OF_A_STRING
        if size > MOST_TEXT:
            raise BilexError(f"{path}: holds more than {MOST_TEXT >> 20} MB of text; give a part of it.")
    return found


def _column(letters: str) -> int:
    """The number of a column, from 0: 1 for "B"."""
    place = 0
    for letter in letters:
        place = 26 * place + ord(letter) - ord("A") + 1
    return place - 1


def _value(cell: Element, shared: list[str]) -> str:
    kind = cell.get("t", "n")
    value = "".join(map(_text, cell.findall("is" if kind == "inlineStr" else "v")))
    if kind == "s":
        known = value.strip().isdecimal() and len(value) < 10 and int(value) < len(shared)
        return shared[int(value)] if known else ""
    if kind == "b":
        return {"1": "TRUE", "0": "FALSE"}.get(value.strip(), "")
    return "" if kind == "e" else value


def _text(node: Element) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), whole_text(node, _PHONETIC))
