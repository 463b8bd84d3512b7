"""What a report says besides tables and plots, as plain values for its template."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from bilex_bench.figures.board import Board, Comparison
from bilex_bench.figures.time_accuracy import readable, seconds_of
from bilex_bench.report.svg import css_colour
from bilex_bench.results import DIRECTIONS, Result
from bilex_bench.tables import Column, Table
from bilex_bench.tables.table import Cell, Missing, Number, Text

_SETUP_COLUMNS = (
    *("method", "data", "pair", "seeds", "λ"),
    *("→ NN", "→ CSLS", "→ leak-free", "← NN", "← CSLS", "← leak-free"),
    *("time (s)", "GB", "device"),
)


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


def _flat(environment: dict[str, Any]) -> list[tuple[str, str]]:
    """An environment as lines to read."""
    lines = []
    for name, value in environment.items():
        if isinstance(value, dict):
            lines.append((name, ", ".join(f"{key} {version}" for key, version in value.items())))
        elif value is not None:
            lines.append((name.replace("_gigabytes", " (GB)"), str(value)))
    return lines
