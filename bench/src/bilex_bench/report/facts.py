"""What a report tells besides tables and figures: a glance, setups, failures, machines, commands."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from bilex_bench.figures.board import Board, Comparison
from bilex_bench.figures.time_accuracy import readable, seconds_of
from bilex_bench.report.markup import Html, element, json_block
from bilex_bench.results import DIRECTIONS, Result
from bilex_bench.tables import Column, Table
from bilex_bench.tables.cells import Cell, Missing, Number, Text

_SETUP_COLUMNS = (
    *("method", "data", "pair", "seeds", "λ"),
    *("→ NN", "→ CSLS", "→ leak-free", "← NN", "← CSLS", "← leak-free"),
    *("time (s)", "GB", "device"),
)


def cards(results: Sequence[Result], board: Board) -> Html:
    """The size of the benchmark in a few numbers."""
    distinct = {result.setup.key: result for result in results}.values()
    failed = sum(result.status == "failed" for result in distinct)
    directions = {(r.setup.dataset, r.setup.pair) for r in distinct if r.status == "done"}
    words = {
        (r.setup.dataset, r.setup.pair, way): r.evaluation[way]["covered"]
        for r in distinct
        if r.evaluation is not None
        for way in DIRECTIONS
    }
    facts = [
        (f"{len(distinct) - failed:,}", "setups done" if not failed else f"setups done, {failed:,} failed"),
        (f"{len(directions):,}", f"language pairs, {2 * len(directions):,} directions"),
        (f"{len(board.styles):,}", "methods compared"),
        (f"{sum(words.values()):,}", "test words translated by each"),
        (readable(_own_seconds(distinct)), "of computing"),
    ]
    return element(
        "dl",
        *(
            element("div", element("dt", label), element("dd", number), class_="card")
            for number, label in facts
        ),
        class_="cards",
    )


def at_a_glance(board: Board) -> Html:
    """Bars of the mean P@1 of every method that was run on all pairs, best first."""
    blocks = [
        _bars(comparison, board)
        for dataset in dict.fromkeys(heading.dataset for heading in board.headings)
        for comparison in board.comparisons(dataset)
    ]
    return element("div", *blocks, class_="glance")


def setups_table(board: Board) -> Table | None:
    """Every setup in one table; None where nothing was reached."""
    rows: list[tuple[Cell, ...]] = [
        _setup_row(method.name, result)
        for sheet in board.sheets
        for method in sheet.methods
        for runs in method.runs.values()
        for result in runs
    ]
    if not rows:
        return None
    return Table(
        "setups",
        "Every setup",
        "P@1 in percent from source to target (→) and back (←); leak-free is CSLS without the words that "
        "have a pair in the training dictionary. λ is what was chosen where it was left to choose. Time is "
        "from the vectors to a finished space.",
        tuple(map(Column, _SETUP_COLUMNS)),
        tuple(rows),
        grouped=False,
    )


def failures(results: Iterable[Result]) -> Html | None:
    """Setups that failed, each with its error; None if there are none."""
    failed = {result.setup.key: result for result in results if result.status == "failed"}
    if not failed:
        return None
    return element("div", *map(_failure, failed.values()), class_="failures")


def environments(results: Iterable[Result]) -> Html:
    """The machines and versions, each with how many setups ran there."""
    counted: Counter[str] = Counter()
    for result in {result.setup.key: result for result in results}.values():
        told = {key: value for key, value in result.environment.items() if key != "command"}
        counted[json.dumps(told, sort_keys=True, ensure_ascii=False)] += 1
    blocks = []
    for text, count in counted.most_common():
        facts = _flat(json.loads(text))
        if facts:
            rows = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
            title = f"{count:,} setup{'s' if count > 1 else ''}"
            blocks.append(element("div", element("h3", title), element("dl", *rows), class_="environment"))
    return element("div", *blocks, class_="environments")


def commands(results: Sequence[Result], file_name: str, page_name: str) -> Html:
    """The commands that made the results, as recorded, and those that make this page and its parts again."""
    recorded = dict.fromkeys(str(told) for r in results if (told := r.environment.get("command")))
    again = [
        shlex.join(["bilex", "benchmark", part, file_name, "-o", output])
        for part, output in (("report", page_name), ("tables", "tables"), ("figures", "figures"))
    ]
    setups = list({result.setup.key: result.setup.as_dict() for result in results}.values())
    return element(
        "div",
        _shell("The results were made by", recorded) if recorded else Html(""),
        _shell("This page, its tables and its figures are made from the results file by", again),
        element(
            "p",
            f"All settings of the {len(setups):,} setups, as the results file has them: ",
            element("button", "setups.json", type="button", class_="download", data_block="setups-json"),
        ),
        json_block(setups, id="setups-json"),
    )


def _own_seconds(results: Iterable[Result]) -> float:
    """What was really computed: a fit or a stage that several setups share counts once."""
    seconds: dict[tuple[str | None, str], float] = {}
    for result in results:
        setup = result.setup
        owner = {"fit": setup.family, "combine": setup.key, "evaluate": setup.key}
        for step, spent in result.seconds.items():
            seconds[owner.get(step, setup.stage), step] = spent
    return sum(seconds.values())


def _bars(comparison: Comparison, board: Board) -> Html:
    means = [(method.name, comparison.mean(method)) for method in comparison.methods]
    ranked = sorted(((mean, name) for name, mean in means if mean is not None), reverse=True)
    top = max((mean for mean, _ in ranked), default=1.0) or 1.0
    rows = [
        element(
            "li",
            element("span", name, class_="name"),
            element("span", class_="bar", style=_bar_style(mean / top, board.styles[name].colour)),
            element("span", f"{mean:.1f}", class_="value"),
        )
        for mean, name in ranked
    ]
    pairs = len(comparison.pairs)
    return element(
        "div",
        element("h3", comparison.heading.text),
        element("p", f"Mean P@1 by CSLS over {2 * pairs} directions, in percent.{comparison.note}"),
        element("ol", *rows, class_="bars"),
    )


def _bar_style(share: float, colour: str) -> str:
    return f"--share: {share:.4f}; --colour: var(--f{colour[1:]})"


def _setup_row(name: str, result: Result) -> tuple[Cell, ...]:
    setup = result.setup
    mixing = result.report.get("mixing") if setup.mixing == "auto" else setup.mixing
    scores = [
        result.figure(way, retrieval, leak_free=leak_free)
        for way in DIRECTIONS
        for retrieval, leak_free in (("nn", False), ("csls", False), ("csls", True))
    ]
    return (
        Text(name),
        Text(setup.dataset),
        Text(setup.pair),
        Text(setup.seeds),
        Missing() if mixing is None else Number.of(float(mixing), 2),
        *(Missing() if score is None else Number.of(100 * score, 2) for score in scores),
        Number.of(seconds_of(result), 1),
        Missing() if result.gigabytes is None else Number.of(result.gigabytes, 1),
        Text(result.device),
    )


def _failure(result: Result) -> Html:
    told = [
        element("h3", result.setup.sentence()),
        element("p", result.error or "no reason was recorded", class_="error"),
        element("p", f"tried {result.attempts} time{'s' if result.attempts > 1 else ''}, {result.started}"),
    ]
    traceback = result.report.get("traceback")
    if traceback:
        told.append(element("details", element("summary", "traceback"), element("pre", str(traceback))))
    return element("article", *told)


def _flat(environment: dict[str, Any]) -> list[tuple[str, str]]:
    """An environment as lines to read."""
    lines = []
    for name, value in environment.items():
        if isinstance(value, dict):
            lines.append((name, ", ".join(f"{key} {version}" for key, version in value.items())))
        elif value is not None:
            lines.append((name.replace("_gigabytes", " (GB)"), str(value)))
    return lines


def _shell(title: str, lines: Iterable[str]) -> Html:
    return element("div", element("p", f"{title}:"), element("pre", element("code", "\n".join(lines))))
