"""The report: one page of HTML that holds everything and loads nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import bilex
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex_bench.figures import FIGURES, Drawing, draw_figures
from bilex_bench.figures.board import Board, slug
from bilex_bench.report import facts
from bilex_bench.report.svg import inline_svg, palette_css
from bilex_bench.results import Result
from bilex_bench.tables import Table, build_tables
from bilex_bench.tables.comparison import ReadPredictions

_EXAMPLES, _TSNE = "examples", "tsne"  # what names words of the test dictionary
_SHOWN_AT_ONCE = 2  # figures of one kind; the others unfold
# Sections of the page: their titles, the tables and the kinds of figures in them.
_SECTIONS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "results": ("Results", ("main", "panlex"), ("heat-map",)),
    "methods": ("Stage C2, ablations and λ", ("c2-over-others", "lms", "ablation", "lambda"), ("lambda",)),
    "significance": ("Significance", ("significance",), ()),
    "words": ("Words", (_EXAMPLES,), ("frequency", _TSNE)),
    "cost": ("Time and memory", ("cost",), ("time",)),
    "coverage": ("Coverage and leaks", ("leak-free", "coverage"), ()),
    "pairs": ("Every pair", ("full",), ()),
}


@dataclass(frozen=True)
class _Section:
    """A part of the page, with the tables and plots in it as its template takes them."""

    name: str
    title: str
    tables: Sequence[Mapping[str, Any]] = ()
    drawings: Sequence[Mapping[str, Any]] = ()
    has_entries: bool = False


def report_page(
    results: Sequence[Result],
    *,
    file_name: str,
    page_name: str = "report.html",
    predictions: ReadPredictions | None = None,
    words: bool = True,
    progress: Progress = SILENT,
) -> str:
    """The whole page."""
    if not results:
        raise BilexError(f"{file_name}: holds no results yet; run 'bilex benchmark run' first.")
    board = Board.of(results)
    drawings = draw_figures(results, progress=progress)
    sections = [_Section("overview", "At a glance")]
    with progress.task("Tables", len(_SECTIONS)) as task:
        for name, (title, tables, kinds) in _SECTIONS.items():
            wanted = [table for table in tables if words or table != _EXAMPLES]
            built = build_tables(results, predictions=predictions, names=wanted) if wanted else []
            shown = [drawing for kind in kinds for drawing in drawings if drawing.kind == kind]
            if not words:
                shown = [replace(one, marks=()) if one.kind == _TSNE else one for one in shown]
            if built or shown:
                sections.append(_section(name, title, built, shown))
            task.advance()
    failed = facts.failures(results)
    sections += _record(results, board, failed=bool(failed))
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=f"Word translation benchmark: {Path(file_name).stem}",
            subtitle=f"{_when(results)}bilex {bilex.__version__}",
            sections=sections,
            cards=facts.cards(results, board),
            glance=facts.at_a_glance(board),
            failures=failed,
            environments=facts.environments(results),
            commands=facts.commands(results, file_name, page_name),
            style=Markup(palette_css() + _packaged("report.css")),
            script=Markup(_packaged("report.js")),
        )
    )


def _section(name: str, title: str, tables: Sequence[Table], drawings: Sequence[Drawing]) -> _Section:
    seen: Counter[str] = Counter()
    shown = []
    for drawing in sorted(drawings, key=lambda drawing: list(FIGURES).index(drawing.kind)):
        seen[drawing.kind] += 1
        shown.append(_for_template(drawing) | {"folded": seen[drawing.kind] > _SHOWN_AT_ONCE})
    return _Section(name, title, [_with_id(table) for table in tables], shown, has_entries=True)


def _record(results: Sequence[Result], board: Board, *, failed: bool) -> list[_Section]:
    """What was run, where, by which commands, and what went wrong."""
    sections = []
    setups = facts.setups_table(board)
    if setups is not None:
        sections.append(_Section("setups", setups.title, [_with_id(setups)]))
    missing = build_tables(results, names=["missing"])
    if missing or failed:
        sections.append(_Section("failures", "Failures and gaps", [_with_id(table) for table in missing]))
    sections.append(_Section("environment", "Environment"))
    sections.append(_Section("commands", "Commands"))
    return sections


def _with_id(table: Table) -> dict[str, Any]:
    """A table's plain values with the columns of C1 and C2 first, and the name of its place in the page."""
    shown = table.as_dict() | {"id": f"table-{slug(table.name)}"}

    first = (*shown["numeric"], True).index(True)
    ours = [place >= first and name.startswith(("C1", "C2")) for place, name in enumerate(shown["columns"])]
    order = sorted(range(len(ours)), key=lambda place: (place >= first) * (2 - ours[place]))
    shown |= {part: [shown[part][column] for column in order] for part in ("columns", "numeric")}
    return shown | {"rows": [[row[column] for column in order] for row in shown["rows"]]}


def _for_template(drawing: Drawing) -> dict[str, Any]:
    """A plot, its marks by their text: a word and its translation are shown together, in all panels."""
    marks: dict[str, list[str | float]] = {}
    for mark in drawing.marks:
        marks.setdefault(mark.text, [mark.text]).extend([mark.x, mark.y])
    return {
        "name": drawing.name,
        "title": drawing.title,
        "caption": drawing.caption,
        "width": f"{drawing.figure.get_figwidth():g}",
        "svg": inline_svg(drawing.svg(transparent=True), drawing.name),
        "marks": list(marks.values()),
    }


def _when(results: Sequence[Result]) -> str:
    started = sorted(result.started for result in results if result.started)
    first, last = (started[place][:16].replace("T", " ") for place in (0, -1)) if started else ("", "")
    return f"run from {first} to {last} UTC, " if started else ""


def _environment() -> jinja2.Environment:
    """Templates of this package, in which every text is escaped."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("bilex_bench", "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return found


def _packaged(name: str) -> str:
    return (resources.files("bilex_bench.report") / name).read_text(encoding="utf-8")
