"""A table as data: its columns, what can stand in its cells, and its notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

from bilex_bench.tables import formats

MISSING = "–"
Style = Literal["plain", "bold", "italic"]


class Span(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: Style = "plain"


class Cell:
    """What stands in a table: text, a number, metrics with reported ones beside them, words, or nothing."""

    is_number: ClassVar[bool] = False

    @property
    def value(self) -> Any:
        """What to sort by, and what CSV gets."""
        return None

    def spans(self) -> list[Span]:
        """What is shown."""
        return [Span(MISSING)]


@dataclass(frozen=True)
class Missing(Cell):
    """Nothing."""


@dataclass(frozen=True)
class Text(Cell):
    """A name or a sentence."""

    text: str

    @property
    def value(self) -> str:
        """The text."""
        return self.text

    def spans(self) -> list[Span]:
        """The text as it is."""
        return [Span(self.text)]


@dataclass(frozen=True)
class Number(Cell):
    """A number and how it is written; `Number.of` writes it with a number of decimals.

    Args:
        number: What is sorted by, and written to CSV.
        text: What is shown.
        bold: Whether it stands out.
    """

    is_number = True
    number: float
    text: str
    bold: bool = False

    @classmethod
    def of(cls, value: float, decimals: int = 0, *, signed: bool = False, bold: bool = False) -> Number:
        """A number with so many decimals, with its sign if asked for."""
        return cls(round(value, max(decimals, 6)), f"{value:{'+' if signed else ''},.{decimals}f}", bold)

    @property
    def value(self) -> float:
        """The number."""
        return self.number

    def spans(self) -> list[Span]:
        """The number as it is shown."""
        return [Span(self.text, "bold" if self.bold else "plain")]


@dataclass(frozen=True)
class Figures(Cell):
    """Our metrics, and the reported ones beside them.

    Args:
        ours: One or more, such as those of NN and CSLS; None where one is missing.
        reported: As many; empty where nothing is reported for a setup of this kind.
        best: The places of metrics that are the best of their row.
        share: Over how many of how many directions a mean goes, if not over all.
        decimals: How many are shown.
    """

    is_number = True
    ours: tuple[float | None, ...]
    reported: tuple[float | None, ...] = ()
    best: frozenset[int] = frozenset()
    share: tuple[int, int] | None = None
    decimals: int = 2

    @property
    def has_any(self) -> bool:
        """Whether any metric, ours or reported, is there."""
        return any(value is not None for value in (*self.ours, *self.reported))

    @property
    def value(self) -> float | None:
        """The last of ours."""
        return self.ours[-1]

    def spans(self) -> list[Span]:
        """Ours; in brackets how many directions; in italics and parentheses the reported ones."""
        if not self.has_any:
            return [Span(MISSING)]
        spans = []
        for place, value in enumerate(self.ours):
            spans += [Span("/")] if place else []
            spans.append(Span(self._shown(value), "bold" if place in self.best else "plain"))
        if self.share:
            spans.append(Span(f" [{self.share[0]}/{self.share[1]}]"))
        if self.reported:
            spans += [Span(" "), Span(f"({'/'.join(map(self._shown, self.reported))})", "italic")]
        return spans

    def _shown(self, value: float | None) -> str:
        return MISSING if value is None else f"{value:.{self.decimals}f}"


@dataclass(frozen=True)
class Words(Cell):
    """Words, of which those that are right stand out."""

    words: tuple[str, ...]
    right: frozenset[str] = frozenset()

    @property
    def value(self) -> str:
        """All words."""
        return ", ".join(self.words)

    def spans(self) -> list[Span]:
        """The words, commas between them."""
        spans: list[Span] = []
        for word in self.words:
            spans += [Span(", ")] if spans else []
            spans.append(Span(word, "bold" if word in self.right else "plain"))
        return spans or [Span(MISSING)]


@dataclass(frozen=True)
class Column:
    """A column's heading, and what its metrics are.

    Args:
        name: The heading.
        parts: What each of several metrics in a cell is, such as NN and CSLS; empty for one.
    """

    name: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """One table.

    Args:
        name: For file names and references, such as "main".
        title: A few words.
        caption: What the metrics are.
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
        return formats.markdown(self)

    def latex(self) -> str:
        """As a LaTeX float with booktabs' rules."""
        return formats.latex(self)

    def csv(self) -> str:
        """As CSV: every metric in a column of its own, the reported ones in columns marked so."""
        return formats.comma_separated(self)

    def as_dict(self) -> dict[str, Any]:
        """As plain values, ready for JSON or a page."""
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
        return any(row[place].is_number for row in self.rows)


def best_marked(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells of a row with the greatest of our metrics, as shown, marked part by part.

    Means over fewer directions than the row has are not comparable, and left out. A metric alone in its
    row is not marked.
    """
    comparable = [cell for cell in cells if isinstance(cell, Figures) and cell.share is None]
    best: dict[int, float] = {}
    for place in range(max((len(cell.ours) for cell in comparable), default=0)):
        shown = [
            round(value, cell.decimals) for cell in comparable if (value := cell.ours[place]) is not None
        ]
        if len(shown) > 1:
            best[place] = max(shown)

    def marked(cell: Figures) -> Figures:
        rounded = (value if value is None else round(value, cell.decimals) for value in cell.ours)
        return replace(cell, best=frozenset(n for n, value in enumerate(rounded) if value == best.get(n, "")))

    return tuple(marked(c) if isinstance(c, Figures) and c.share is None else c for c in cells)


def _plain(cell: Cell) -> dict[str, Any]:
    spans = cell.spans()
    return {
        "text": "".join(span.text for span in spans),
        "value": cell.value,
        "spans": [span._asdict() for span in spans],
    }
