"""CSV for spreadsheets: cells that would run as a formula are defused, and read back as they were."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def defused(cell: str) -> str:
    """A cell that no spreadsheet runs: an apostrophe before what would start a formula.

    Cells that begin with apostrophes and then such a sign get one more, so that `restored` is exact.
    """
    return f"'{cell}" if cell.lstrip("'").startswith(_STARTS) else cell


def restored(cell: str) -> str:
    """What `defused` was given."""
    inner = cell[1:] if cell.startswith("'") else cell
    return inner if inner != cell and inner.lstrip("'").startswith(_STARTS) else cell


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file with a header, all text cells defused."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([defused(cell) if isinstance(cell, str) else cell for cell in row])
    return buffer.getvalue()
