"""A table as data: columns, cells and notes, written as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import jinja2

MISSING = "–"
Style = Literal["plain", "bold", "italic"]
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{letter: f"\\{letter}" for letter in "{}$&#%_"},
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': "''",
        "*": "$*$",
        "→": r"$\to$",
        "λ": r"$\lambda$",
        "×": r"$\times$",
        "−": "$-$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "†": r"$\dagger$",
        "–": "--",
        "—": "---",
        "…": r"\ldots{}",
        "“": "``",
        "”": "''",
        "\N{NO-BREAK SPACE}": "~",
        "[": "{[}",
        "]": "{]}",
        "\n": " ",
    }
)
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~]|&(?=#?\w+;))")


class Span(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: Style = "plain"


@dataclass(frozen=True)
class Plain:
    """Text, a number, words, or nothing: what is shown, and what is sorted by and written to CSV."""

    spans: tuple[Span, ...] = (Span(MISSING),)
    value: Any = None
    is_number: bool = False


@dataclass(frozen=True)
class Figures:
    """Our metrics, and the reported ones beside them."""

    is_number: ClassVar[bool] = True
    ours: tuple[float | None, ...]  # one or more, such as those of NN and CSLS; None where one is missing
    reported: tuple[float | None, ...] = ()  # as many; empty where nothing is reported for such a setup
    best: frozenset[int] = frozenset()  # the places of metrics that are the best of their row
    share: tuple[int, int] | None = None  # over how many of how many directions a mean goes, if not over all
    decimals: int = 2

    @property
    def has_any(self) -> bool:
        """Whether any metric, ours or reported, is there."""
        return any(value is not None for value in (*self.ours, *self.reported))

    @property
    def value(self) -> float | None:
        """The last of ours."""
        return self.ours[-1]

    @property
    def spans(self) -> tuple[Span, ...]:
        """Ours; in brackets how many directions; in italics and parentheses the reported ones."""
        if not self.has_any:
            return (Span(MISSING),)
        spans = []
        for place, value in enumerate(self.ours):
            spans += [Span("/")] if place else []
            spans.append(Span(self._shown(value), "bold" if place in self.best else "plain"))
        if self.share:
            spans.append(Span(f" [{self.share[0]}/{self.share[1]}]"))
        if self.reported:
            spans += [Span(" "), Span(f"({'/'.join(map(self._shown, self.reported))})", "italic")]
        return tuple(spans)

    def _shown(self, value: float | None) -> str:
        return MISSING if value is None else f"{value:.{self.decimals}f}"


Cell = Plain | Figures
Value = Cell | str | None  # what a row may be given: text is a text, None is nothing


def number(
    value: float | None, decimals: int = 0, *, signed: bool = False, bold: bool = False, text: str = ""
) -> Plain:
    """A number with so many decimals, or as `text` writes it; nothing for None."""
    if value is None:
        return Plain()
    shown = Span(text or f"{value:{'+' if signed else ''},.{decimals}f}", "bold" if bold else "plain")
    return Plain((shown,), value if text else round(value, max(decimals, 6)), is_number=True)


def words(listed: Sequence[str], right: frozenset[str] = frozenset()) -> Plain:
    """Words, of which those that are right stand out."""
    spans: list[Span] = []
    for word in listed:
        spans += [Span(", ")] if spans else []
        spans.append(Span(word, "bold" if word in right else "plain"))
    return Plain(tuple(spans) or (Span(MISSING),), ", ".join(listed))


class Column(NamedTuple):
    """A column's heading, and what each of several metrics in its cells is, such as NN and CSLS."""

    name: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """One table; `Table.of` makes it of plain values."""

    name: str  # for file names and references, such as "main"
    title: str
    caption: str  # what the metrics are
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    grouped: bool = True  # whether rows with the same first cell belong together

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        caption: str,
        columns: Sequence[Column | str],
        rows: Sequence[Sequence[Value]],
        notes: Sequence[str] = (),
        *,
        grouped: bool = True,
    ) -> Table:
        """A table whose columns and texts may be given as plain strings."""
        for row in rows:
            if len(row) != len(columns):
                raise ValueError(f"table '{name}': a row of {len(row)} cells, {len(columns)} columns")
        headings = tuple(Column(one) if isinstance(one, str) else one for one in columns)
        return cls(
            name,
            title,
            caption,
            headings,
            tuple(tuple(map(_cell, row)) for row in rows),
            tuple(notes),
            grouped,
        )

    def markdown(self) -> str:
        """As Markdown, with heading, caption and notes."""
        marks: dict[Style, str] = {"plain": "{}", "bold": "**{}**", "italic": "*{}*"}
        return self._filled("table.md", lambda text: _MARKDOWN.sub(r"\\\1", text.replace("\n", " ")), marks)

    def latex(self) -> str:
        """As a LaTeX float: it needs booktabs and graphicx, and a font that has the words' letters."""
        marks: dict[Style, str] = {"plain": "{}", "bold": r"\textbf{{{}}}", "italic": r"\textit{{{}}}"}
        return self._filled("table.tex", lambda text: text.translate(_LATEX), marks, minus="$-$")

    def csv(self) -> str:
        """As CSV: every metric in a column of its own, the reported ones in columns marked so."""
        shapes = [_Shape(column, cells) for column, cells in zip(self.columns, self._columns(), strict=True)]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([name for shape in shapes for name in shape.names()])
        for row in self.rows:
            writer.writerow([v for shape, cell in zip(shapes, row, strict=True) for v in shape.values(cell)])
        return file.getvalue()

    def as_dict(self) -> dict[str, Any]:
        """As plain values, ready for JSON or a page."""
        return {
            "name": self.name,
            "title": self.title,
            "caption": self.caption,
            "columns": [column.name for column in self.columns],
            "numeric": self._numeric(),
            "grouped": self.grouped,
            "notes": list(self.notes),
            "rows": [[_plain(cell) for cell in row] for row in self.rows],
        }

    def _columns(self) -> list[tuple[Cell, ...]]:
        return list(zip(*self.rows, strict=True)) if self.rows else [() for _ in self.columns]

    def _numeric(self) -> list[bool]:
        """Whether each column holds numbers."""
        return [any(cell.is_number for cell in cells) for cells in self._columns()]

    def _filled(
        self, template: str, escape: Callable[[str], str], marks: Mapping[Style, str], minus: str = "-"
    ) -> str:
        """A template with the table's texts in it."""

        def written(cell: Cell) -> str:
            shown = "".join(marks[span.style].format(escape(span.text)) for span in cell.spans)
            return minus + shown[1:] if cell.is_number and shown.startswith("-") else shown

        before = [None, *(row[0].value for row in self.rows)]
        return (
            _templates()
            .get_template(template)
            .render(
                name=self.name,
                title=escape(self.title),
                caption=escape(self.caption),
                headings=[f"{escape(name)} {'/'.join(parts)}".strip() for name, parts in self.columns],
                numeric=self._numeric(),
                rows=[
                    {"cells": [*map(written, row)], "starts": self.grouped and row[0].value != last}
                    for row, last in zip(self.rows, before, strict=False)
                ],
                notes=[escape(note) for note in self.notes],
            )
        )


def best_marked(cells: Sequence[Value]) -> list[Value]:
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

    return [marked(c) if isinstance(c, Figures) and c.share is None else c for c in cells]


def _cell(value: Value) -> Cell:
    if value is None:
        return Plain()
    return Plain((Span(value),), value) if isinstance(value, str) else value


def _plain(cell: Cell) -> dict[str, Any]:
    return {
        "text": "".join(span.text for span in cell.spans),
        "value": cell.value,
        "spans": [span._asdict() for span in cell.spans],
    }


@functools.cache
def _templates() -> jinja2.Environment:
    """Templates without HTML's escapes: every text comes escaped for its own format."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("bilex_bench", "tables/templates"),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=jinja2.StrictUndefined,
    )


class _Shape:
    """How many columns of CSV a column becomes: its metrics, the reported ones, the directions of means."""

    def __init__(self, column: Column, cells: Sequence[Cell]) -> None:
        self._column = column
        figures = [cell for cell in cells if isinstance(cell, Figures)]
        self._figures = max((len(cell.ours) for cell in figures), default=1)
        self._reported = max((len(cell.reported) for cell in figures), default=0)
        self._shared = any(cell.share for cell in figures)

    def names(self) -> Iterator[str]:
        parts = self._column.parts or ("",) * self._figures
        for part in parts:
            yield f"{self._column.name} {part}".strip()
        for part in parts if self._reported else ():
            yield " ".join(f"{self._column.name} {part} reported".split())
        if self._shared:
            yield f"{self._column.name} directions"

    def values(self, cell: Cell) -> Iterator[str]:
        if not isinstance(cell, Figures):
            yield "" if cell.value is None else str(cell.value)
            yield from [""] * (self._figures - 1 + self._reported + self._shared)
            return
        missing = [None] * (self._reported - len(cell.reported))
        for value in (*cell.ours, *cell.reported, *missing):
            yield "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")
        if self._shared:
            yield f"{cell.share[0]}/{cell.share[1]}" if cell.share else ""
