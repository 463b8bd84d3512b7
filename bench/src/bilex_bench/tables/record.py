"""Tables about the runs: coverage of the test dictionaries, examples, time and memory, what is missing."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from bilex.evaluation import Prediction
from bilex_bench.reported import counterpart
from bilex_bench.results import DIRECTIONS, Result, grouped
from bilex_bench.tables.sheet import Direction, Method, Sheet, name_of, without_sweep
from bilex_bench.tables.table import Plain, Table, Value, number, words

_EXAMPLE_METHODS = ("C1 w/o CL", "C1", "C2 (C1)")
_ANSWERS, _EXAMPLES = 5, 2
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


def example_tables(sheet: Sheet) -> Iterator[Table]:
    """In each direction some words that the last of up to three methods gets right and the first does not.

    As many words for which the opposite holds are beside them. They are taken evenly from all such
    words, in the order of the test dictionary, so that nobody chooses them.
    """
    methods = _example_methods(sheet.methods)
    common = {
        seeds: [pair for pair in sheet.pairs if all((pair, seeds) in method.runs for method in methods)]
        for seeds in sheet.seeds
    }
    seeds = next((seeds for seeds, pairs in common.items() if pairs), "")  # the largest
    if len(methods) < 2 or not seeds:
        return
    rows: list[list[Value]] = []
    for pair in common[seeds]:
        answers = [sheet.predictions(method.runs[pair, seeds][0]) for method in methods]
        for direction in DIRECTIONS:
            if all(those.get(direction) for those in answers):
                rows += _example_rows(Direction(pair, direction), [those[direction] for those in answers])
    first, last = methods[0].name, methods[-1].name
    yield Table(
        "examples",
        "Translation examples",
        f"The {_ANSWERS} best answers by CSLS, {seeds} seeds; right ones are bold. Gain: {last} "
        f"is right where {first} is not; loss: the opposite.",
        ["direction", "word", "right", *(method.name for method in methods), "effect"],
        rows,
        [
            f"Words are taken evenly from all those on which {first} and {last} differ, in the order of "
            "the test dictionary; their number is beside the effect."
        ],
    )


def _example_methods(methods: Sequence[Method]) -> list[Method]:
    """The paper's three, if at least two of them were run; else the first, the middle and the last of all."""
    papers = [(found.names[0], method) for method in methods if (found := counterpart(method.setup))]
    named = dict(reversed(papers))  # of several the first
    chosen = [named[name] for name in _EXAMPLE_METHODS if name in named]
    if len(chosen) >= 2 or not methods:
        return chosen
    return [methods[place] for place in sorted({0, len(methods) // 2, len(methods) - 1})]


def _example_rows(direction: Direction, answers: Sequence[Sequence[Prediction]]) -> list[list[Value]]:
    by_word = [{p.source: p for p in those} for those in answers]
    common = [p.source for p in answers[0] if all(p.source in those for those in by_word)]
    right = [{word for word in common if those[word].ranks["csls"] <= 1} for those in by_word]
    rows: list[list[Value]] = []
    for effect, found in (("gain", right[-1] - right[0]), ("loss", right[0] - right[-1])):
        listed = [word for word in common if word in found]
        count = min(len(listed), _EXAMPLES)
        for place in range(count):
            word = listed[(2 * place + 1) * len(listed) // (2 * count)]
            translations = by_word[0][word].translations
            shown = (words(those[word].answers["csls"][:_ANSWERS], translations) for those in by_word)
            rows.append([str(direction), word, words(translations), *shown, f"{effect} (of {len(listed)})"])
    return rows


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
    failed = {(name_of(r.setup), r.setup.seeds, r.setup.pair) for r in sheet.failed}
    rows: list[list[Value]] = [
        [name_of(r.setup), r.setup.seeds, r.setup.pair, f"failed: {r.error}"] for r in sheet.failed
    ]
    for method, seeds in product(sheet.methods, sheet.seeds):
        missing = [pair for pair in sheet.pairs if (pair, seeds) not in method.runs]
        holes = [pair for pair in missing if (method.name, seeds, pair) not in failed]
        if 0 < len(holes) < len(sheet.pairs):
            rows.append([method.name, seeds, ", ".join(holes), "not run"])
    yield Table(
        "missing",
        "What is missing",
        "Setups that failed, and pairs on which a method was not run that others with these seeds have.",
        ["method", "seeds", "pairs", "why"],
        rows,
    )
