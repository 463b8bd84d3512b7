"""The report: one page of HTML that holds everything and loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import NamedTuple

import bilex
from bilex.errors import BilexError
from bilex.progress import SILENT, Progress
from bilex_bench.figures import FIGURES, Drawing, draw_figures
from bilex_bench.figures.board import Board
from bilex_bench.report import facts
from bilex_bench.report.figures_html import figure_block, palette_css
from bilex_bench.report.markup import Html, element
from bilex_bench.report.tables_html import table_block, table_id
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


class _Section(NamedTuple):
    """A part of the page, with the entries below it in the table of contents."""

    name: str
    title: str
    content: Html
    entries: tuple[tuple[str, str], ...] = ()


def report_page(
    results: Sequence[Result],
    *,
    file_name: str,
    page_name: str = "report.html",
    predictions: ReadPredictions | None = None,
    words: bool = True,
    progress: Progress = SILENT,
) -> str:
    """The whole page.

    Args:
        results: Finished and failed ones.
        file_name: The results file, for the title and the commands.
        page_name: Where the page goes, for the commands.
        predictions: Gives the predictions of a result; None takes those in the results themselves.
        words: Whether words of the test dictionary appear; False for a dictionary that may not be passed on.
        progress: Who is told how far the work is.

    Returns:
        HTML that holds its style, its script and its figures; the same results give the same text.

    Raises:
        BilexError: There are no results, or matplotlib or scikit-learn is not installed.
    """
    if not results:
        raise BilexError(f"{file_name}: holds no results yet; run 'bilex benchmark run' first.")
    board = Board.of(results)
    drawings = draw_figures(results, progress=progress)
    sections = [_overview(results, board)]
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
    sections += _record(results, board, file_name, page_name)
    return _filled(sections, f"Word translation benchmark: {Path(file_name).stem}", results)


def _overview(results: Sequence[Result], board: Board) -> _Section:
    return _Section("overview", "At a glance", Html(facts.cards(results, board) + facts.at_a_glance(board)))


def _section(name: str, title: str, tables: Sequence[Table], drawings: Sequence[Drawing]) -> _Section:
    blocks = [table_block(table) for table in tables]
    for kind in FIGURES:
        of_kind = [drawing for drawing in drawings if drawing.kind == kind]
        blocks += [figure_block(drawing) for drawing in of_kind[:_SHOWN_AT_ONCE]]
        blocks += [
            element("details", element("summary", drawing.title), figure_block(drawing), class_="more")
            for drawing in of_kind[_SHOWN_AT_ONCE:]
        ]
    entries = [(table_id(table), table.title) for table in tables]
    entries += [(drawing.name, drawing.title) for drawing in drawings]
    return _Section(name, title, Html("".join(blocks)), tuple(entries))


def _record(results: Sequence[Result], board: Board, file_name: str, page_name: str) -> list[_Section]:
    """What was run, where, by which commands, and what went wrong."""
    sections = []
    setups = facts.setups_table(board)
    if setups is not None:
        sections.append(_Section("setups", setups.title, table_block(setups)))
    missing = build_tables(results, names=["missing"])
    failed = facts.failures(results)
    if missing or failed is not None:
        content = Html((failed or "") + "".join(map(table_block, missing)))
        sections.append(_Section("failures", "Failures and gaps", content))
    sections.append(_Section("environment", "Environment", facts.environments(results)))
    sections.append(_Section("commands", "Commands", facts.commands(results, file_name, page_name)))
    return sections


def _filled(sections: Sequence[_Section], title: str, results: Sequence[Result]) -> str:
    started = sorted(result.started for result in results if result.started)
    first, last = (started[place][:16].replace("T", " ") for place in (0, -1)) if started else ("", "")
    when = f"run from {first} to {last} UTC, " if started else ""
    contents = element("ol", *map(_contents, sections))
    main = [
        element("section", element("h2", section.title), section.content, id=section.name, class_="part")
        for section in sections
    ]
    parts = {
        "title": element("span", title),
        "subtitle": element("span", f"{when}bilex {bilex.__version__}"),
        "contents": contents,
        "main": "\n".join(main),
        "style": palette_css() + _packaged("report.css"),
        "script": _packaged("report.js"),
    }
    return Template(_packaged("report.html")).substitute(parts)


def _contents(section: _Section) -> Html:
    below = [element("li", element("a", title, href=f"#{name}")) for name, title in section.entries]
    own = element("a", section.title, href=f"#{section.name}")
    return element("li", own, element("ol", *below)) if below else element("li", own)


def _packaged(name: str) -> str:
    return (resources.files("bilex_bench.report") / name).read_text(encoding="utf-8")
