"""A table as data, and as Markdown, LaTeX, CSV and plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bilex_bench.tables.cells import Cell, Figures, Number


@dataclass(frozen=True)
class Column:
    """A column's heading, and what its figures are made of.

    Args:
        name: The heading.
        parts: What each of several figures in a cell is, such as NN and CSLS; empty for one figure.
    """

    name: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """One table.

    Args:
        name: For file names and references, such as "main".
        title: A few words.
        caption: What the figures are.
        columns: One for each cell of a row.
        rows: The cells.
        notes: What else a reader must know.
        grouped: Whether rows with the same first cell belong together.
    """

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    grouped: bool = True

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table '{self.name}': a row of {len(row)} cells, {len(self.columns)} columns"
                )

    def markdown(self) -> str:
        """As Markdown, with heading, caption and notes."""
        from bilex_bench.tables.formats import markdown

        return markdown(self)

    def latex(self) -> str:
        """As a LaTeX float with booktabs' rules."""
        from bilex_bench.tables.formats import latex

        return latex(self)

    def csv(self) -> str:
        """As CSV: every figure in a column of its own, the reported ones in columns marked so."""
        from bilex_bench.tables.formats import comma_separated

        return comma_separated(self)

    def as_dict(self) -> dict[str, Any]:
        """As plain values, ready for JSON or a page.

        Returns:
            "name", "title", "caption", "columns" (their headings), "numeric" (for each column, whether
            it holds numbers), "grouped", "notes", and "rows": lists of cells, each with "text" (what is
            shown), "value" (what to sort by: a number, a text or None) and "spans" (the text in pieces of
            "text" and "style": "plain", "bold" or "italic"; italics are reported figures).
        """
        return {
            "name": self.name,
            "title": self.title,
            "caption": self.caption,
            "columns": [column.name for column in self.columns],
            "numeric": [self.is_numeric(place) for place in range(len(self.columns))],
            "grouped": self.grouped,
            "notes": list(self.notes),
            "rows": [[_plain(cell) for cell in row] for row in self.rows],
        }

    def is_numeric(self, place: int) -> bool:
        """Whether a column holds numbers."""
        return any(isinstance(row[place], (Number, Figures)) for row in self.rows)


def best_marked(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells of a row with the greatest of our figures marked, part by part.

    Means over fewer directions than the row has are not comparable, and left out. A figure alone in its
    row is not marked.
    """
    from dataclasses import replace

    comparable = [cell for cell in cells if isinstance(cell, Figures) and cell.share is None]
    best: list[float | None] = []
    for place in range(max((len(cell.ours) for cell in comparable), default=0)):
        values = [v for cell in comparable if (v := cell.ours[place]) is not None]
        best.append(max(values) if len(values) > 1 else None)
    marked: list[Cell] = []
    for cell in cells:
        if isinstance(cell, Figures) and cell.share is None:
            marked.append(replace(cell, best=frozenset(_at_top(cell, best))))
        else:
            marked.append(cell)
    return tuple(marked)


def _at_top(cell: Figures, best: Sequence[float | None]) -> list[int]:
    """The places whose figures, as shown, are the best."""
    return [
        place
        for place, (value, top) in enumerate(zip(cell.ours, best, strict=True))
        if value is not None and top is not None and round(value, cell.decimals) == round(top, cell.decimals)
    ]


def _plain(cell: Cell) -> dict[str, Any]:
    spans = cell.spans()
    return {
        "text": "".join(span.text for span in spans),
        "value": cell.value,
        "spans": [{"text": span.text, "style": span.style} for span in spans],
    }
