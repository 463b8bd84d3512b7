"""Cells of tables that a spreadsheet would run as a formula: defused, and read back as they were."""

from __future__ import annotations

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
