"""Tables written as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from bilex_bench.tables.cells import Cell, Figures, Missing, Number, Span
from bilex_bench.tables.table import Column, Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
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
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~]|&(?=#?\w+;))")


def markdown(table: Table) -> str:
    """A heading, the caption, a pipe table and the notes."""
    header = [_markdown_text(column.name) + _parts(column) for column in table.columns]
    rule = ["---:" if table.is_numeric(place) else "---" for place in range(len(table.columns))]
    lines = [header, rule, *([_markdown_cell(cell) for cell in row] for row in table.rows)]
    blocks = [f"### {_markdown_text(table.title)}", _markdown_text(table.caption)]
    blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    if table.notes:
        blocks.append("\n".join(f"- {_markdown_text(note)}" for note in table.notes))
    return "\n\n".join(blocks) + "\n"


def latex(table: Table) -> str:
    """A float that needs the packages booktabs and graphicx, and a font that has the words' letters."""
    places = range(len(table.columns))
    alignment = "".join("r" if table.is_numeric(place) else "l" for place in places)
    lines = [" & ".join(latex_text(column.name) + _parts(column) for column in table.columns) + r" \\"]
    lines.append(r"\midrule")
    for number, row in enumerate(table.rows):
        if table.grouped and number and row[0].value != table.rows[number - 1][0].value:
            lines.append(r"\midrule")
        lines.append(" & ".join(_latex_cell(cell) for cell in row) + r" \\")
    notes = [rf"\par\footnotesize {latex_text(note)}" for note in table.notes]
    return (
        "\n".join(
            [
                r"% \usepackage{booktabs,graphicx}; words in other alphabets need LuaLaTeX or XeLaTeX.",
                r"\begin{table*}[t]",
                r"\centering",
                rf"\caption{{{latex_text(table.title)}. {latex_text(table.caption)}}}",
                rf"\label{{tab:{table.name}}}",
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                rf"\begin{{tabular}}{{{alignment}}}",
                r"\toprule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}}",
                *notes,
                r"\end{table*}",
            ]
        )
        + "\n"
    )


def comma_separated(table: Table) -> str:
    """One line a row; caption and notes are left to the other formats."""
    shapes = [_Shape(table, place) for place in range(len(table.columns))]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([name for shape in shapes for name in shape.names()])
    for row in table.rows:
        writer.writerow(
            [value for shape, cell in zip(shapes, row, strict=True) for value in shape.values(cell)]
        )
    return file.getvalue()


def latex_text(text: str) -> str:
    """Text with everything that means something to LaTeX written out."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


class _Shape:
    """How many columns of CSV a column becomes: its figures, the reported ones, the directions of means."""

    def __init__(self, table: Table, place: int) -> None:
        self._column = table.columns[place]
        cells = [row[place] for row in table.rows]
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
        if isinstance(cell, Figures):
            yield from (_csv_number(value) for value in cell.ours)
            yield from (_csv_number(value) for value in _padded(cell.reported, self._reported))
            if self._shared:
                yield f"{cell.share[0]}/{cell.share[1]}" if cell.share else ""
            return
        yield "" if isinstance(cell, Missing) else str(cell.value)
        yield from [""] * (self._figures - 1 + self._reported + self._shared)


def _padded(values: tuple[float | None, ...], length: int) -> list[float | None]:
    return [*values, *[None] * (length - len(values))]


def _csv_number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")


def _parts(column: Column) -> str:
    return f" {'/'.join(column.parts)}" if column.parts else ""


def _markdown_text(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _markdown_cell(cell: Cell) -> str:
    marks = {"plain": "", "bold": "**", "italic": "*"}
    return "".join(_marked(span, marks[span.style]) for span in cell.spans())


def _marked(span: Span, mark: str) -> str:
    text = _MARKDOWN.sub(r"\\\1", span.text.replace("\n", " "))
    return f"{mark}{text}{mark}"


def _latex_cell(cell: Cell) -> str:
    commands = {"plain": "{}", "bold": r"\textbf{{{}}}", "italic": r"\textit{{{}}}"}
    shown = "".join(commands[span.style].format(latex_text(span.text)) for span in cell.spans())
    if isinstance(cell, Number) and shown.startswith("-"):
        return f"${shown[0]}${shown[1:]}"
    return shown
