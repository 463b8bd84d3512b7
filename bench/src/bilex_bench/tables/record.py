"""Tables about the runs: coverage of the test dictionaries, time and memory, and what is missing."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from bilex_bench.results import Result, grouped
from bilex_bench.tables.sheet import Sheet, name_of, without_sweep
from bilex_bench.tables.table import Plain, Table, Value, number

_STEPS = ("fit", "tune", "encode", "combine", "trial", "evaluate")


def coverage_tables(sheet: Sheet) -> Iterator[Table]:
    """How much of each test dictionary the vectors know, and how much of it was among the seeds."""
    rows: list[list[Value]] = []
    for seeds in sheet.seeds:
        for direction in sheet.directions(seeds):
            counts = dict.fromkeys(  # several where vocabularies of several sizes were used
                _counts((result.evaluation or {})[direction.name])
                for method in sheet.methods
                for result in method.runs.get((direction.pair, seeds), ())
            )
            rows += [[seeds, str(direction), *found] for found in counts]
    yield Table(
        "coverage",
        "Coverage of the test dictionaries",
        "Distinct source words of the test dictionary, those with a pair that the vectors know (over "
        "which P@1 is taken), and those of them that have a pair in the training dictionary.",
        [
            *("seeds", "direction", "test words", "covered"),
            *("covered %", "pairs", "pairs covered", "leaked words"),
        ],
        rows,
    )


def _counts(scored: Mapping[str, Any]) -> tuple[Plain, ...]:
    leak_free, covered, total = scored["leak_free"], scored["covered"], scored["total"]
    return (
        number(total),
        number(covered),
        number(100 * covered / total if total else None, 1),
        number(scored["pairs"]),
        number(scored["pairs_covered"]),
        number(None if leak_free is None else covered - leak_free["covered"]),
    )


def cost_tables(sheet: Sheet) -> Iterator[Table]:
    """Median seconds of each step, and peak memory, by method, seeds and machine."""
    rows: list[list[Value]] = []
    for method in without_sweep(sheet.methods):
        groups = grouped(method.results, lambda result: (result.setup.seeds, _machine(result)))
        for (seeds, machine), results in sorted(groups.items(), key=lambda one: sheet.seeds.index(one[0][0])):
            spent = [[r.seconds[step] for r in results if step in r.seconds] for step in _STEPS]
            spent.append([sum(result.seconds.values()) for result in results])
            medians = (statistics.median(values) if values else None for values in spent)
            peaks = [[r.gigabytes for r in results], [r.gpu_gigabytes for r in results]]
            greatest = (max((p for p in values if p is not None), default=None) for values in peaks)
            memory = (number(peak, 2) for peak in greatest)
            rows.append([method.name, seeds, *map(_seconds, medians), *memory, number(len(results)), machine])
    yield Table(
        "cost",
        "Time and memory",
        "Median seconds of each step over the setups of a method; the greatest memory of any of them.",
        [
            *("method", "seeds", *(f"{step} s" for step in _STEPS)),
            *("all s", "peak GB", "peak GPU GB", "setups", "machine"),
        ],
        rows,
        (
            "Setups that share a fit, a tuning or encodings are charged with it each; it was done once.",
            "Memory is that of the whole process while a method and all that is built on it ran.",
        ),
    )


def _seconds(seconds: float | None) -> Plain:
    """Seconds with as many decimals as are meaningful."""
    return number(seconds, 0 if seconds is None or seconds >= 100 else 1 if seconds >= 1 else 3)


def _machine(result: Result) -> str:
    """The hardware of a result in a few words."""
    stated = result.environment
    parts = [stated.get("gpu") if result.device == "cuda" else None, stated.get("processor")]
    name = ", ".join(str(part) for part in parts if part) or result.device
    threads = stated.get("threads")
    return f"{name}, {threads} threads" if threads else name


def missing_tables(sheet: Sheet) -> Iterator[Table]:
    """Setups that failed with their reasons, and pairs that a method was not run on."""
    failed = {(name_of(r.setup), r.setup.pair, r.setup.seeds) for r in sheet.failed}
    rows: list[list[Value]] = [
        [name_of(r.setup), r.setup.seeds, r.setup.pair, f"failed: {r.error}"] for r in sheet.failed
    ]
    for method in sheet.methods:
        for seeds in sheet.seeds:
            holes = [
                pair
                for pair in sheet.pairs
                if (pair, seeds) not in method.runs and (method.name, pair, seeds) not in failed
            ]
            if 0 < len(holes) < len(sheet.pairs):
                rows.append([method.name, seeds, ", ".join(holes), "not run"])
    yield Table(
        "missing",
        "What is missing",
        "Setups that failed, and pairs on which a method was not run that others with these seeds have.",
        ["method", "seeds", "pairs", "why"],
        rows,
    )
