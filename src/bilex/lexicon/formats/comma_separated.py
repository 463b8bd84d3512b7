"""CSV with a header, as spreadsheets read it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from bilex.lexicon.entries import Dictionary
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions
from bilex.lexicon.formats.formulas import defused
from bilex.lexicon.formats.rows import read_rows
from bilex.lexicon.formats.tables import table_rows
from bilex.lexicon.reading import Layout, Reading


def _read(path: Path, layout: Layout) -> Reading:
    return read_rows(path, layout, "csv")


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    for row in table_rows(dictionary):
        cells = [str(cell) for cell in row]
        if options.defuse_formulas:
            cells = [defused(cell) for cell in cells]
        yield csv_line(cells)


def csv_line(cells: Sequence[object]) -> str:
    """One row of CSV, quoted where it must be.

    Until Python 3.13 a writer quotes carriage returns only if its line ends have one; spreadsheets end rows
    there.
    """
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().removesuffix("\r\n") + "\n"


FORMAT = DictionaryFormat(
    name="csv",
    description="comma-separated text with a header, for spreadsheets",
    suffixes=(".csv",),
    noun="a CSV file",
    read=_read,
    pieces=_pieces,
)
