"""Tables written as Markdown and LaTeX, by templates, and as CSV."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import jinja2

if TYPE_CHECKING:
    from bilex_bench.tables.table import Cell, Style, Table

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


def markdown(table: Table) -> str:
    """A heading, the caption, a pipe table and the notes."""
    marks: dict[Style, str] = {"plain": "{}", "bold": "**{}**", "italic": "*{}*"}
    return _filled("table.md", table, lambda text: _MARKDOWN.sub(r"\\\1", text.replace("\n", " ")), marks)


def latex(table: Table) -> str:
    """A float that needs the packages booktabs and graphicx, and a font that has the words' letters."""
    marks: dict[Style, str] = {"plain": "{}", "bold": r"\textbf{{{}}}", "italic": r"\textit{{{}}}"}
    return _filled("table.tex", table, lambda text: text.translate(_LATEX), marks, minus="$-$")


def comma_separated(table: Table) -> str:
    """One line per row, each metric in a column of its own; caption and notes are left to the others."""
    shapes = [_Shape(table, place) for place in range(len(table.columns))]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([name for shape in shapes for name in shape.names()])
    for row in table.rows:
        writer.writerow(
            [value for shape, cell in zip(shapes, row, strict=True) for value in shape.values(cell)]
        )
    return file.getvalue()


def _filled(
    template: str, table: Table, escape: Callable[[str], str], marks: Mapping[Style, str], minus: str = "-"
) -> str:
    """A template with the table's texts in it."""

    def written(cell: Cell) -> str:
        shown = "".join(marks[span.style].format(escape(span.text)) for span in cell.spans())
        return minus + shown[1:] if cell.is_number and shown.startswith("-") else shown

    before = [None, *(row[0].value for row in table.rows)]
    return (
        _environment()
        .get_template(template)
        .render(
            name=table.name,
            title=escape(table.title),
            caption=escape(table.caption),
            headings=[f"{escape(column.name)} {'/'.join(column.parts)}".strip() for column in table.columns],
            numeric=[table.is_numeric(place) for place in range(len(table.columns))],
            rows=[
                {"cells": [written(cell) for cell in row], "starts": table.grouped and row[0].value != last}
                for row, last in zip(table.rows, before, strict=False)
            ],
            notes=[escape(note) for note in table.notes],
        )
    )


@functools.cache
def _environment() -> jinja2.Environment:
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

    def __init__(self, table: Table, place: int) -> None:
        from bilex_bench.tables.table import Figures

        self._column, self._kind = table.columns[place], Figures
        figures = [cell for row in table.rows if isinstance(cell := row[place], Figures)]
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
        if not isinstance(cell, self._kind):
            yield "" if cell.value is None else str(cell.value)
            yield from [""] * (self._figures - 1 + self._reported + self._shared)
            return
        missing = [None] * (self._reported - len(cell.reported))
        for value in (*cell.ours, *cell.reported, *missing):
            yield "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")
        if self._shared:
            yield f"{cell.share[0]}/{cell.share[1]}" if cell.share else ""
