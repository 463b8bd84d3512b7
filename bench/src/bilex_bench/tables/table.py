"""A table as data: columns, cells and notes, written as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

MISSING = "–"
Style = Literal["plain", "bold", "italic"]
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{letter: f"\\{letter}" for letter in "{}$&#%_"},
        **{"^": r"\textasciicircum{}", "~": r"\textasciitilde{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "[": "{[}", "]": "{]}"},
        **{'"': "''", "“": "``", "”": "''", "–": "--", "—": "---", "…": r"\ldots{}"},
        **{"*": "$*$", "→": r"$\to$", "λ": r"$\lambda$", "×": r"$\times$", "−": "$-$"},
        **{"≤": r"$\leq$", "≥": r"$\geq$", "†": r"$\dagger$"},
        **{"\N{NO-BREAK SPACE}": "~", "\n": " "},
    }
)
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~]|&(?=#?\w+;))")


class Span(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: Style = "plain"


@dataclass(frozen=True)
class Plain:
    """Text, a number, words, or nothing: what is shown, and the value to sort by and to write to CSV."""

    spans: tuple[Span, ...] = (Span(MISSING),)
    value: Any = None
    is_number: bool = False


@dataclass(frozen=True)
class Metrics:
    """Our metrics by name ("" where there is only one), and the reported ones."""

    is_number: ClassVar[bool] = True
    ours: Mapping[str, float | None]
    reported: Mapping[str, float | None] = field(default_factory=dict)  # empty where none is reported
    best: frozenset[str] = frozenset()  # the names of metrics that are the best of their row
    share: tuple[int, int] | None = None  # over how many of how many directions a mean goes, if not over all

    @property
    def has_any(self) -> bool:
        """Whether any metric, ours or reported, is there."""
        return any(value is not None for value in (*self.ours.values(), *self.reported.values()))

    @property
    def value(self) -> float | None:
        """The last of ours."""
        return list(self.ours.values())[-1]

    @property
    def spans(self) -> tuple[Span, ...]:
        """Ours; in brackets how many directions; in italics and parentheses the reported ones."""
        if not self.has_any:
            return (Span(MISSING),)
        spans: list[Span] = []
        for name, value in self.ours.items():
            spans += [Span("/")] if spans else []
            spans.append(Span(_shown(value), "bold" if name in self.best else "plain"))
        if self.share:
            spans.append(Span(f" [{self.share[0]}/{self.share[1]}]"))
        if self.reported:
            spans += [Span(" "), Span(f"({'/'.join(map(_shown, self.reported.values()))})", "italic")]
        return tuple(spans)


def _shown(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


Cell = Plain | Metrics
Value = Cell | str | None  # what a row may be given: text is a text, None is nothing


def number(
    value: float | None, decimals: int = 0, *, signed: bool = False, bold: bool = False, text: str = ""
) -> Plain:
    """A number with some decimals, or as `text` writes it; nothing for None."""
    if value is None:
        return Plain()
    shown = Span(text or f"{value:{'+' if signed else ''},.{decimals}f}", "bold" if bold else "plain")
    return Plain((shown,), value if text else round(value, max(decimals, 6)), is_number=True)


def words(listed: Sequence[str], right: Sequence[str] = ()) -> Plain:
    """Words; those that are right are bold."""
    spans: list[Span] = []
    for word in listed:
        spans += [Span(", ")] if spans else []
        spans.append(Span(word, "bold" if word in right else "plain"))
    return Plain(tuple(spans) or (Span(MISSING),), ", ".join(listed))


@dataclass(frozen=True)
class Table:
    """One table; rows may be given texts and None instead of cells."""

    name: str  # for file names and references, such as "main"
    title: str
    caption: str  # what the metrics are
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    grouped: bool = True  # whether rows with the same first cell belong together

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(tuple(map(_cell, row)) for row in self.rows))

    def markdown(self) -> str:
        """As Markdown, with heading, caption and notes."""

        def escape(text: str) -> str:
            return _MARKDOWN.sub(r"\\\1", text.replace("\n", " "))

        marks: dict[Style, str] = {"plain": "{}", "bold": "**{}**", "italic": "*{}*"}
        table = [[escape(heading) for heading in self._headings()]]
        table.append(["---:" if numeric else "---" for numeric in self._numeric()])
        table += [[_written(cell, escape, marks) for cell in row] for row in self.rows]
        lines = [f"### {escape(self.title)}", "", escape(self.caption), ""]
        lines += [f"| {' | '.join(cells)} |" for cells in table]
        lines += ["", *(f"- {escape(note)}" for note in self.notes)] if self.notes else []
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """As a LaTeX float: it needs booktabs and graphicx, and a font that has the words' letters."""

        def escape(text: str) -> str:
            return text.translate(_LATEX)

        marks: dict[Style, str] = {"plain": "{}", "bold": r"\textbf{{{}}}", "italic": r"\textit{{{}}}"}
        body: list[str] = []
        for place, row in enumerate(self.rows):
            if place and self.grouped and row[0].value != self.rows[place - 1][0].value:
                body.append(r"\midrule")
            body.append(" & ".join(_written(cell, escape, marks, minus="$-$") for cell in row) + r" \\")
        alignment = "".join("r" if numeric else "l" for numeric in self._numeric())
        lines = [
            r"% \usepackage{booktabs,graphicx}; words in other alphabets need LuaLaTeX or XeLaTeX.",
            *(r"\begin{table*}[t]", r"\centering"),
            rf"\caption{{{escape(self.title)}. {escape(self.caption)}}}",
            rf"\label{{tab:{self.name}}}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{alignment}}}",
            *(r"\toprule", " & ".join(map(escape, self._headings())) + r" \\", r"\midrule"),
            *(*body, r"\bottomrule", r"\end{tabular}}"),
            *(rf"\par\footnotesize {escape(note)}" for note in self.notes),
            r"\end{table*}",
        ]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """As CSV: every metric in its own column, the reported ones in columns marked so."""
        columns = [
            column
            for heading, cells in zip(self.columns, self._by_column(), strict=True)
            for column in _csv_columns(heading, cells)
        ]
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows(zip(*columns, strict=True))
        return file.getvalue()

    def as_dict(self) -> dict[str, Any]:
        """As plain values, ready for JSON or a page."""
        return {
            "name": self.name,
            "title": self.title,
            "caption": self.caption,
            "columns": list(self.columns),
            "numeric": self._numeric(),
            "grouped": self.grouped,
            "notes": list(self.notes),
            "rows": [[_plain_values(cell) for cell in row] for row in self.rows],
        }

    def _by_column(self) -> list[tuple[Cell, ...]]:
        return list(zip(*self.rows, strict=True)) if self.rows else [() for _ in self.columns]

    def _headings(self) -> list[str]:
        """The columns, with the names of several metrics in their cells, such as NN/CSLS."""
        found = zip(self.columns, map(_metric_names, self._by_column()), strict=True)
        return [f"{column} {'/'.join(names)}".strip() for column, names in found]

    def _numeric(self) -> list[bool]:
        """Whether each column holds numbers."""
        return [any(cell.is_number for cell in cells) for cells in self._by_column()]


def _cell(value: Value) -> Cell:
    if value is None:
        return Plain()
    return Plain((Span(value),), value) if isinstance(value, str) else value


def _plain_values(cell: Cell) -> dict[str, Any]:
    text = "".join(span.text for span in cell.spans)
    return {"text": text, "value": cell.value, "spans": [span._asdict() for span in cell.spans]}


def _metric_names(cells: Sequence[Cell]) -> list[str]:
    return list(next((cell.ours for cell in cells if isinstance(cell, Metrics)), [""]))


def _written(cell: Cell, escape: Callable[[str], str], marks: Mapping[Style, str], minus: str = "-") -> str:
    shown = "".join(marks[span.style].format(escape(span.text)) for span in cell.spans)
    return minus + shown[1:] if cell.is_number and shown.startswith("-") else shown


def _csv_columns(heading: str, cells: Sequence[Cell]) -> Iterator[list[str]]:
    """A column as columns of CSV: its metrics, the reported ones, the number of directions of means."""
    metrics = [cell for cell in cells if isinstance(cell, Metrics)]
    reported = next((cell.reported for cell in metrics if cell.reported), {})
    parts = [("ours", name) for name in _metric_names(cells)] + [("reported", name) for name in reported]
    for place, (kind, name) in enumerate(parts):
        column = [f"{heading} {name}".strip() + (" reported" if kind == "reported" else "")]
        for cell in cells:
            if isinstance(cell, Metrics):
                value = getattr(cell, kind).get(name)
                column.append("" if value is None else f"{value:.4f}".rstrip("0").rstrip("."))
            else:
                column.append("" if place or cell.value is None else str(cell.value))
        yield column
    if any(cell.share for cell in metrics):
        shares = (cell.share if isinstance(cell, Metrics) else None for cell in cells)
        yield [f"{heading} directions", *(f"{share[0]}/{share[1]}" if share else "" for share in shares)]


def best_marked(cells: Sequence[Metrics]) -> list[Metrics]:
    """The cells of a row with the greatest of our metrics, as shown, marked.

    Means over fewer directions than the row has are not comparable, and left out. A metric alone in its
    row is not marked.
    """
    shown: dict[str, list[str]] = {}
    for cell in (cell for cell in cells if cell.share is None):
        for name, value in cell.ours.items():
            shown.setdefault(name, []).extend([] if value is None else [_shown(value)])
    best = {name: max(values, key=float) for name, values in shown.items() if len(values) > 1}
    return [
        replace(cell, best=frozenset(n for n, v in cell.ours.items() if _shown(v) == best.get(n)))
        if cell.share is None
        else cell
        for cell in cells
    ]
