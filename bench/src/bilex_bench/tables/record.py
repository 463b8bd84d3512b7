"""What the runs were like: coverage of the test dictionaries, time and memory, and what is missing."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bilex_bench.results import Result
from bilex_bench.tables.sheet import Sheet, name_of, without_sweep
from bilex_bench.tables.table import Cell, Column, Missing, Number, Table, Text

_STEPS = ("fit", "tune", "encode", "combine", "trial", "evaluate")


def coverage_tables(sheet: Sheet) -> list[Table]:
    """How much of each test dictionary the vectors know, and how much of it was among the seeds."""
    rows: list[tuple[Cell, ...]] = []
    for seeds in sheet.seeds:
        for direction in sheet.directions:
            for stated in _distinct_coverages(sheet, direction.pair, seeds, direction.way):
                rows.append((Text(seeds), Text(str(direction)), *stated))
    names = (
        "seeds",
        "direction",
        "test words",
        "covered",
        "covered %",
        "pairs",
        "pairs covered",
        "leaked words",
    )
    if not rows:
        return []
    return [
        Table(
            "coverage",
            "Coverage of the test dictionaries",
            "Distinct source words of the test dictionary, those with a pair that the vectors know (over "
            "which P@1 is taken), and those of them that have a pair in the training dictionary.",
            tuple(map(Column, names)),
            tuple(rows),
        )
    ]


def cost_tables(sheet: Sheet) -> list[Table]:
    """Median seconds of each step, and peak memory, by method, seeds and machine."""
    rows: list[tuple[Cell, ...]] = []
    for method in without_sweep(sheet.methods):
        groups: dict[tuple[str, str], list[Result]] = {}
        for seeds in sheet.seeds:
            for (_, name), runs in method.runs.items():
                if name == seeds:
                    for result in runs:
                        groups.setdefault((seeds, machine(result)), []).append(result)
        for (seeds, hardware), results in groups.items():
            steps = [_median(result.seconds.get(step) for result in results) for step in _STEPS]
            total = _median(sum(result.seconds.values()) for result in results)
            rows.append(
                (
                    Text(method.name),
                    Text(seeds),
                    *steps,
                    total,
                    _greatest(result.gigabytes for result in results),
                    _greatest(result.gpu_gigabytes for result in results),
                    Number.of(len(results)),
                    Text(hardware),
                )
            )
    if not rows:
        return []
    names = (
        "method",
        "seeds",
        *(f"{step} s" for step in _STEPS),
        "all s",
        "peak GB",
        "peak GPU GB",
        "setups",
    )
    return [
        Table(
            "cost",
            "Time and memory",
            "Median seconds of each step over the setups of a method; the greatest memory of any of them.",
            tuple(map(Column, (*names, "machine"))),
            tuple(rows),
            (
                "Setups that share a fit, a tuning or encodings are charged with it each; it was done once.",
                "Memory is that of the whole process while a method and all that is built on it ran.",
            ),
        )
    ]


def missing_tables(sheet: Sheet) -> list[Table]:
    """Setups that failed with their reasons, and pairs that a method was not run on."""
    rows: list[tuple[Cell, ...]] = []
    failed = {(name_of(r.setup), r.setup.pair, r.setup.seeds) for r in sheet.failed}
    for result in sheet.failed:
        setup = result.setup
        rows.append(
            (Text(name_of(setup)), Text(setup.seeds), Text(setup.pair), Text(f"failed: {result.error}"))
        )
    for method in sheet.methods:
        for seeds in sheet.seeds:
            holes = [
                pair
                for pair in sheet.pairs
                if (pair, seeds) not in method.runs and (method.name, pair, seeds) not in failed
            ]
            if 0 < len(holes) < len(sheet.pairs):
                rows.append((Text(method.name), Text(seeds), Text(", ".join(holes)), Text("not run")))
    if not rows:
        return []
    return [
        Table(
            "missing",
            "What is missing",
            "Setups that failed, and pairs on which a method was not run that others with these seeds have.",
            tuple(map(Column, ("method", "seeds", "pairs", "why"))),
            tuple(rows),
        )
    ]


def machine(result: Result) -> str:
    """The hardware of a result in a few words."""
    stated = result.environment
    parts = [stated.get("gpu") if result.device == "cuda" else None, stated.get("processor")]
    name = ", ".join(str(part) for part in parts if part) or result.device
    threads = stated.get("threads")
    return f"{name}, {threads} threads" if threads else name


def _distinct_coverages(sheet: Sheet, pair: str, seeds: str, way: str) -> list[list[Cell]]:
    """Counts by words and pairs; more than once only where vocabularies of several sizes were used."""
    found: dict[tuple[Any, ...], None] = {}
    for method in sheet.methods:
        for result in method.runs.get((pair, seeds), ()):
            found[_counts((result.evaluation or {})[way])] = None
    return [[Missing() if count is None else count for count in counts] for counts in found]


def _counts(scored: Mapping[str, Any]) -> tuple[Number | None, ...]:
    leak_free, covered, total = scored["leak_free"], scored["covered"], scored["total"]
    return (
        Number.of(total),
        Number.of(covered),
        Number.of(100 * covered / total, 1) if total else None,
        Number.of(scored["pairs"]),
        Number.of(scored["pairs_covered"]),
        None if leak_free is None else Number.of(covered - leak_free["covered"]),
    )


def _median(values: Iterable[float | None]) -> Cell:
    there = [value for value in values if value is not None]
    return _sized(statistics.median(there)) if there else Missing()


def _greatest(values: Iterable[float | None]) -> Cell:
    there: Sequence[float] = [value for value in values if value is not None]
    return Number.of(max(there), 2) if there else Missing()


def _sized(seconds: float) -> Number:
    """Seconds with as many decimals as say something."""
    return Number.of(seconds, 0 if seconds >= 100 else 1 if seconds >= 1 else 3)
