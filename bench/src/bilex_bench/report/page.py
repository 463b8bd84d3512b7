"""The report: one page of HTML that holds everything and loads nothing."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jinja2
from markupsafe import Markup

import bilex
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex_bench.figures import FIGURES, Drawing, draw_figures
from bilex_bench.figures.board import DARK, Board, Comparison, slug
from bilex_bench.figures.charts import readable
from bilex_bench.results import DIRECTIONS, Result
from bilex_bench.tables import Table, build_tables
from bilex_bench.tables.sheet import ReadPredictions
from bilex_bench.tables.table import Value, number

_EXAMPLES, _TSNE = "examples", "tsne"  # what names words of the test dictionary
_SHOWN_AT_ONCE = 2  # figures of one kind; the others unfold
_SETUP_COLUMNS = (
    *("method", "data", "pair", "seeds", "λ"),
    *("→ NN", "→ CSLS", "→ leak-free", "← NN", "← CSLS", "← leak-free"),
    *("time (s)", "GB", "device"),
)
_NAMESPACE = re.compile(r"^\{[^}]*\}")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_COLOUR = re.compile("|".join(DARK), re.IGNORECASE)
_NO_TURN = re.compile(r"^rotate\(-?0 [^)]*\)$")
_LEFT_OUT = ("metadata", "style")
_FONT = re.compile(r"font-family: [^;]*;? ?")
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
    predictions: ReadPredictions = attrgetter("predictions"),
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
    failed = failures(results)
    sections += _record(results, board, failed=bool(failed))
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=f"Word translation benchmark: {Path(file_name).stem}",
            subtitle=f"{_when(results)}bilex {bilex.__version__}",
            sections=sections,
            cards=cards(results, board),
            glance=at_a_glance(board),
            failures=failed,
            environments=environments(results),
            commands=commands(results, file_name, page_name),
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
    setups = setups_table(board)
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


def cards(results: Sequence[Result], board: Board) -> list[tuple[str, str]]:
    """The size of the benchmark in a few numbers, each with what it counts."""
    distinct = {result.setup.key: result for result in results}.values()
    failed = sum(result.status == "failed" for result in distinct)
    directions = {(r.setup.dataset, r.setup.pair) for r in distinct if r.status == "done"}
    words = {
        (r.setup.dataset, r.setup.pair, way): r.evaluation[way]["covered"]
        for r in distinct
        if r.evaluation is not None
        for way in DIRECTIONS
    }
    return [
        (f"{len(distinct) - failed:,}", "setups done" if not failed else f"setups done, {failed:,} failed"),
        (f"{len(directions):,}", f"language pairs, {2 * len(directions):,} directions"),
        (f"{len(board.styles):,}", "methods compared"),
        (f"{sum(words.values()):,}", "test words translated by each"),
        (readable(_own_seconds(distinct)), "of computing"),
    ]


def at_a_glance(board: Board) -> list[dict[str, Any]]:
    """Bars of the mean P@1 of every method that was run on all pairs, best first."""
    return [
        _bars(comparison, board)
        for dataset in dict.fromkeys(heading.dataset for heading in board.headings)
        for comparison in board.comparisons(dataset)
    ]


def setups_table(board: Board) -> Table | None:
    """Every setup in one table; None where nothing was reached."""
    rows: list[list[Value]] = []
    for method, result in board.results():
        setup, scores = result.setup, []
        for way in DIRECTIONS:
            for retrieval, leak_free in (("nn", False), ("csls", False), ("csls", True)):
                score = result.metric(way, retrieval, leak_free=leak_free)
                scores.append(number(None if score is None else 100 * score, 2))
        place = (setup.dataset, setup.pair, setup.seeds)
        cost = (number(result.working_seconds, 1), number(result.gigabytes, 1), result.device)
        rows.append([method, *place, number(result.mixing, 2), *scores, *cost])
    table = Table(
        "setups",
        "Every setup",
        "P@1 in percent from source to target (→) and back (←); leak-free is CSLS without the words that "
        "have a pair in the training dictionary. λ is what was chosen where it was left to choose. Time is "
        "from the vectors to a finished space.",
        _SETUP_COLUMNS,
        rows,
        grouped=False,
    )
    return table if rows else None


def failures(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Setups that failed, each with its error."""
    failed = {result.setup.key: result for result in results if result.status == "failed"}
    return [
        {
            "setup": result.setup.sentence(),
            "error": result.error or "no reason was recorded",
            "attempts": result.attempts,
            "started": result.started,
            "traceback": result.report.get("traceback"),
        }
        for result in failed.values()
    ]


def environments(results: Iterable[Result]) -> list[tuple[int, list[tuple[str, str]]]]:
    """The machines and versions, each with how many setups ran there."""
    counted: Counter[str] = Counter()
    for result in {result.setup.key: result for result in results}.values():
        stated = {key: value for key, value in result.environment.items() if key != "command"}
        counted[json.dumps(stated, sort_keys=True, ensure_ascii=False)] += 1
    found = [(count, _flat(json.loads(text))) for text, count in counted.most_common()]
    return [(count, facts) for count, facts in found if facts]


def commands(results: Sequence[Result], file_name: str, page_name: str) -> dict[str, Any]:
    """The commands that made the results, as recorded, and those that make this page and its parts again."""
    parts = (("report", page_name), ("tables", "tables"), ("figures", "figures"))
    again = [["bilex", "benchmark", part, file_name, "-o", output] for part, output in parts]
    return {
        "recorded": list(dict.fromkeys(str(c) for r in results if (c := r.environment.get("command")))),
        "again": [shlex.join(words) for words in again],
        "setups": list({result.setup.key: result.setup.as_dict() for result in results}.values()),
    }


def _own_seconds(results: Iterable[Result]) -> float:
    """What was really computed: a fit or a stage that several setups share counts once."""
    seconds: dict[tuple[str | None, str], float] = {}
    for result in results:
        setup = result.setup
        owner = {"fit": setup.family, "combine": setup.key, "evaluate": setup.key}
        for step, spent in result.seconds.items():
            seconds[owner.get(step, setup.stage), step] = spent
    return sum(seconds.values())


def _bars(comparison: Comparison, board: Board) -> dict[str, Any]:
    means = [(method.name, comparison.mean(method)) for method in comparison.methods]
    ranked = sorted(((mean, name) for name, mean in means if mean is not None), reverse=True)
    top = max((mean for mean, _ in ranked), default=1.0) or 1.0
    directions = 2 * len(comparison.pairs)
    return {
        "title": comparison.heading.text,
        "caption": f"Mean P@1 by CSLS over {directions} directions, in percent.{comparison.note}",
        "bars": [
            {
                "name": name,
                "share": f"{mean / top:.4f}",
                "colour": css_colour(board.styles[name].colour),
                "value": f"{mean:.1f}",
            }
            for mean, name in ranked
        ],
    }


def _flat(environment: dict[str, Any]) -> list[tuple[str, str]]:
    """An environment as lines to read."""
    lines = []
    for name, value in environment.items():
        if isinstance(value, dict):
            lines.append((name, ", ".join(f"{key} {version}" for key, version in value.items())))
        elif value is not None:
            lines.append((name.replace("_gigabytes", " (GB)"), str(value)))
    return lines


def inline_svg(svg: str, prefix: str) -> Markup:
    """SVG for the middle of a page.

    The names in it get a prefix, so that no two figures share one; its fonts are the page's; the colours of
    our palette become variables that the page sets for light and dark; what says nothing is left out.
    """
    root = ElementTree.fromstring(svg)
    _tidy(root, prefix)
    root.attrib.pop("width")
    root.attrib.pop("height")
    root.set("aria-hidden", "true")
    return Markup(ElementTree.tostring(root, encoding="unicode", method="html"))


def palette_css() -> str:
    """The variables that figures are coloured by, for a light and for a dark page."""
    light = "".join(f"{_variable(colour)}:{colour};" for colour in DARK)
    dark = "".join(f"{_variable(colour)}:{other};" for colour, other in DARK.items())
    return (
        f":root{{{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
    )


def css_colour(colour: str) -> str:
    """A colour as the page sets it; one that is not of our palette as it is."""
    return f"var({_variable(colour)})" if colour.lower() in DARK else colour


def _tidy(node: ElementTree.Element, prefix: str) -> None:
    node.tag = _NAMESPACE.sub("", node.tag)
    attributes = {_NAMESPACE.sub("", name): value for name, value in node.attrib.items()}
    node.attrib.clear()
    for name, value in attributes.items():
        if (name == "id" and node.tag == "g") or name == "version" or _NO_TURN.match(value):
            continue
        node.set(name, _value(name, value, prefix))
    node.tail = None
    if node.tag != "text":
        node.text = None
    for child in list(node):
        if _NAMESPACE.sub("", child.tag) in _LEFT_OUT:
            node.remove(child)
            continue
        _tidy(child, prefix)
    _share_style(node)


def _value(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href":
        return f"#{prefix}-{value[1:]}"
    if name == "clip-path":
        return value.replace("url(#", f"url(#{prefix}-")
    if name == "style":
        value = _COLOUR.sub(lambda found: f"var({_variable(found[0])})", _FONT.sub("", value))
    return " ".join(_LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", value).split())


def _share_style(node: ElementTree.Element) -> None:
    """Where a group holds nothing but marks that look the same, the group says so once."""
    marks = [child for child in node if child.tag == "use"]
    styles = {mark.get("style", "") for mark in marks}
    if len(styles) != 1 or len(marks) + sum(child.tag == "defs" for child in node) != len(node):
        return
    for mark in marks:
        mark.attrib.pop("style", None)
    node.set("style", f"{styles.pop()}; {node.get('style', '')}".strip("; "))


def _variable(colour: str) -> str:
    return f"--f{colour.lower()[1:]}"
