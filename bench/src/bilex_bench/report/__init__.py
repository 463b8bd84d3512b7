"""The report: one page of HTML that holds everything and loads nothing."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import bilex
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex_bench.figures import Drawing, draw_figures
from bilex_bench.figures.charts import readable
from bilex_bench.figures.drawing import DARK, PlotData, slug
from bilex_bench.results import DIRECTIONS, Result
from bilex_bench.tables import Table, build_tables
from bilex_bench.tables.sheet import ReadPredictions
from bilex_bench.tables.table import Value, number

__all__ = ["report_page"]

_EXAMPLES, _TSNE = "examples", "tsne"  # what shows words of the test dictionary
_SHOWN_AT_ONCE = 2  # plots of one kind; the others are folded
# Sections of the page: their titles, the tables and the kinds of plots in them.
_SECTIONS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "results": ("Results", ("main", "panlex"), ("heat-map",)),
    "methods": ("Stage C2, ablations and λ", ("c2-over-others", "lms", "ablation", "lambda"), ("lambda",)),
    "significance": ("Significance", ("significance",), ()),
    "words": ("Words", (_EXAMPLES,), ("frequency", _TSNE)),
    "cost": ("Time and memory", ("cost",), ("time",)),
    "coverage": ("Coverage and leaks", ("leak-free", "coverage"), ()),
    "pairs": ("Every pair", ("full",), ()),
}
_COLOUR = re.compile("|".join(DARK), re.IGNORECASE)


def report_page(
    results: Sequence[Result],
    *,
    file_name: str,
    page_name: str = "report.html",
    predictions: ReadPredictions = attrgetter("predictions"),
    words: bool = True,
    progress: Progress = SILENT,
) -> str:
    """The whole page; without `words`, no word of the test dictionary is in it."""
    if not results:
        raise BilexError(f"{file_name}: holds no results yet; run 'bilex benchmark run' first.")
    data = PlotData.of(results)
    distinct = list({result.setup.key: result for result in results}.values())
    failed = [result for result in distinct if result.status == "failed"]
    drawings = draw_figures(results, progress=progress)
    if not words:
        drawings = [replace(one, marks=()) if one.kind == _TSNE else one for one in drawings]
    sections = [_section("overview", "At a glance")]
    with progress.task("Tables", len(_SECTIONS)) as task:
        for name, (title, tables, kinds) in _SECTIONS.items():
            wanted = [table for table in tables if words or table != _EXAMPLES]
            built = build_tables(results, predictions=predictions, names=wanted)
            shown = [drawing for kind in kinds for drawing in drawings if drawing.kind == kind]
            if built or shown:
                sections.append(_section(name, title, built, shown, listed=True))
            task.advance()
    setups, missing = _setups_table(data), build_tables(results, names=["missing"])
    sections += [_section("setups", "Every setup", [setups])] if setups.rows else []
    sections += [_section("failures", "Failures and gaps", missing)] if missing or failed else []
    sections += [_section("environment", "Environment"), _section("commands", "Commands")]
    started = sorted(result.started for result in results if result.started)
    first, last = (started[place][:16].replace("T", " ") for place in (0, -1)) if started else ("", "")
    parts = (("report", page_name), ("tables", "tables"), ("figures", "figures"))
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("bilex_bench", "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return templates.get_template("report.html").render(
        title=f"Word translation benchmark: {Path(file_name).stem}",
        subtitle=f"{f'run from {first} to {last} UTC, ' if started else ''}bilex {bilex.__version__}",
        sections=sections,
        cards=_cards(distinct, data),
        glance=_glance(data),
        failures=failed,
        environments=_environments(distinct),
        recorded=list(dict.fromkeys(str(c) for r in results if (c := r.environment.get("command")))),
        again=[shlex.join(["bilex", "benchmark", part, file_name, "-o", out]) for part, out in parts],
        setups=[result.setup.as_dict() for result in distinct],
        style=Markup(_palette_css() + _packaged("report.css")),
        script=Markup(_packaged("report.js")),
    )


def _packaged(name: str) -> str:
    return (resources.files("bilex_bench.report") / name).read_text(encoding="utf-8")


def _section(
    name: str,
    title: str,
    tables: Sequence[Table] = (),
    drawings: Sequence[Drawing] = (),
    *,
    listed: bool = False,
) -> dict[str, Any]:
    """A part of the page; `listed` if the contents name its tables and plots."""
    seen: Counter[str] = Counter()
    plots = []
    for drawing in drawings:
        seen[drawing.kind] += 1
        plots.append(_plot(drawing) | {"folded": seen[drawing.kind] > _SHOWN_AT_ONCE})
    shown = [_table(table) for table in tables]
    return {"name": name, "title": title, "tables": shown, "drawings": plots, "has_entries": listed}


def _table(table: Table) -> dict[str, Any]:
    """A table for the template, with the columns of C1 and C2 first."""
    shown = table.as_dict() | {"id": f"table-{slug(table.name)}"}
    first = (*shown["numeric"], True).index(True)
    ours = [place >= first and name.startswith(("C1", "C2")) for place, name in enumerate(shown["columns"])]
    order = sorted(range(len(ours)), key=lambda place: (place >= first) * (2 - ours[place]))
    shown |= {part: [shown[part][column] for column in order] for part in ("columns", "numeric")}
    return shown | {"rows": [[row[column] for column in order] for row in shown["rows"]]}


def _plot(drawing: Drawing) -> dict[str, Any]:
    """A plot for the template; its marks by text, so that a pair of words is shown in all panels."""
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


def _cards(results: Sequence[Result], data: PlotData) -> list[tuple[str, str]]:
    """The size of the benchmark in a few numbers, each with what it counts."""
    failed = sum(result.status == "failed" for result in results)
    pairs = {(r.setup.dataset, r.setup.pair) for r in results if r.status == "done"}
    words = {
        (r.setup.dataset, r.setup.pair, direction): r.evaluation[direction]["covered"]
        for r in results
        if r.evaluation is not None
        for direction in DIRECTIONS
    }
    seconds = {  # a fit or a stage that several setups share counts once
        (result.setup.owner(step), step): spent
        for result in results
        for step, spent in result.seconds.items()
    }
    return [
        (f"{len(results) - failed:,}", "setups done" if not failed else f"setups done, {failed:,} failed"),
        (f"{len(pairs):,}", f"language pairs, {2 * len(pairs):,} directions"),
        (f"{len(data.styles):,}", "methods compared"),
        (f"{sum(words.values()):,}", "test words translated by each"),
        (readable(sum(seconds.values())), "of computing"),
    ]


def _glance(data: PlotData) -> list[dict[str, Any]]:
    """Bars of the mean P@1 of every method that was run on all pairs, best first."""
    blocks = []
    for comparison in (one for sheet in data.sheets for one in data.comparisons(sheet)):
        means = [(comparison.mean(method), method.name) for method in comparison.methods]
        ranked = sorted(((mean, name) for mean, name in means if mean is not None), reverse=True)
        top = max((mean for mean, _ in ranked), default=1.0) or 1.0
        bars = [
            {
                "name": name,
                "share": f"{mean / top:.4f}",
                "colour": f"var({_variable(data.styles[name].colour)})",
                "value": f"{mean:.1f}",
            }
            for mean, name in ranked
        ]
        directions = 2 * len(comparison.pairs)
        caption = f"Mean P@1 by CSLS over {directions} directions, in percent.{comparison.note}"
        blocks.append({"title": comparison.title, "caption": caption, "bars": bars})
    return blocks


def _setups_table(data: PlotData) -> Table:
    """Every finished setup."""
    rows: list[list[Value]] = []
    for method in (method for sheet in data.sheets for method in sheet.methods):
        for result in method.results:
            setup, scores = result.setup, []
            for direction in DIRECTIONS:
                for retrieval, leak_free in (("nn", False), ("csls", False), ("csls", True)):
                    score = result.metric(direction, retrieval, leak_free=leak_free)
                    scores.append(number(None if score is None else 100 * score, 2))
            place = (setup.dataset, setup.pair, setup.seeds)
            cost = (number(result.working_seconds, 1), number(result.gigabytes, 1), result.device)
            rows.append([method.name, *place, number(result.mixing, 2), *scores, *cost])
    return Table(
        "setups",
        "Every setup",
        "P@1 in percent from source to target (→) and back (←); leak-free is CSLS without the words that "
        "have a pair in the training dictionary. λ is what was chosen where it was left to choose. Time is "
        "from the vectors to a finished space.",
        [
            *("method", "data", "pair", "seeds", "λ", "→ NN", "→ CSLS", "→ leak-free"),
            *("← NN", "← CSLS", "← leak-free", "time (s)", "GB", "device"),
        ],
        rows,
        grouped=False,
    )


def _environments(results: Iterable[Result]) -> list[tuple[int, list[tuple[str, str]]]]:
    """The machines and versions, each with how many setups ran there."""
    counted: Counter[str] = Counter()
    for result in results:
        facts = []
        for name, value in sorted(result.environment.items()):
            if isinstance(value, dict):
                facts.append((name, ", ".join(f"{key} {part}" for key, part in sorted(value.items()))))
            elif value is not None and name != "command":
                facts.append((name.replace("_gigabytes", " (GB)"), str(value)))
        counted[json.dumps(facts)] += 1
    return [(count, facts) for text, count in counted.most_common() if (facts := json.loads(text))]


def _palette_css() -> str:
    """The variables of the colours of plots, for a light and for a dark page."""
    light = "".join(f"{_variable(colour)}:{colour};" for colour in DARK)
    dark = "".join(f"{_variable(colour)}:{other};" for colour, other in DARK.items())
    return (
        f":root{{{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
    )


def _variable(colour: str) -> str:
    return f"--f{colour.lower()[1:]}"


def inline_svg(svg: str, prefix: str) -> Markup:
    """SVG of matplotlib for the middle of a page.

    Its ids get a prefix, so that no two plots share one; its fonts are the page's; the colours of our palette
    become variables that the page sets for light and dark; numbers are shortened.
    """
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r"<[^>]*>", lambda tag: _shortened(tag[0], prefix), svg)
    svg = re.sub(r">\s+<", "><", svg)
    svg = re.sub(r"<g( [^>]*)>((?:<use [^>]*>)+)</g>", _with_shared_style, svg)
    return Markup(svg.strip())


def _shortened(tag: str, prefix: str) -> str:
    """A tag of inline SVG; text between tags stays as it is."""
    if tag.startswith("<svg"):
        (box,) = re.findall(r'viewBox="[^"]*"', tag)
        return f'<svg {box} aria-hidden="true">'
    tag = re.sub(r'^<g id="[^"]*"', "<g", tag).replace("xlink:href", "href")
    tag = re.sub(r'(id="|href="#|url\(#)', rf"\1{prefix}-", tag)
    tag = re.sub(r'font-family: [^;"]*;? ?| transform="rotate\(-?0 [^"]*"', "", tag)
    tag = _COLOUR.sub(lambda colour: f"var({_variable(colour[0])})", tag)
    return " ".join(re.sub(r"-?\d+\.\d{3,}", lambda n: f"{float(n[0]):.2f}", tag).split())


def _with_shared_style(group: re.Match[str]) -> str:
    """A group of marks that look the same, with their style once."""
    styles = set(re.findall(r' style="[^"]*"', group[2]))
    if len(styles) != 1:
        return group[0]
    (style,) = styles
    return f"<g{group[1]}{style}>{group[2].replace(style, '')}</g>"
