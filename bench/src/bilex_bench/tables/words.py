"""Methods compared word by word: whether chance explains a difference, and examples of what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bilex.evaluation import Prediction
from bilex_bench.reported import counterpart
from bilex_bench.results import DIRECTIONS
from bilex_bench.significance import (
    DRAWS,
    REPLICATES,
    Difference,
    Scored,
    compare,
    differences,
    holm,
    sign_flip_p,
)
from bilex_bench.tables.sheet import Direction, Method, Sheet, without_sweep
from bilex_bench.tables.table import Plain, Table, Value, number, words

DEFAULT_BASELINE = "C1"
LEVEL = 0.05
_PAPERS_CHOICE = ("C1 w/o CL", "C1", "C2 (C1)")
_SHOWN, _EXAMPLES = 5, 2


class _Pooled(NamedTuple):
    """A method against the baseline over all directions together."""

    seeds: str
    method: str
    difference: Difference


class _Single(NamedTuple):
    """A method against the baseline in one direction."""

    seeds: str
    method: str
    direction: Direction
    mean: float
    p: float


def significance_tables(sheet: Sheet) -> list[Table]:
    """Every method against the baseline: over all directions together, and in each by itself."""
    against = _baseline_of(sheet)
    if against is None or len(sheet.methods) < 2:
        return []
    chosen = [method for method in without_sweep(sheet.methods) if method is not against]
    pooled: list[_Pooled] = []
    single: list[_Single] = []
    for seeds in sheet.seeds:
        base = _scored(sheet, against, seeds)
        for method in chosen if base else ():
            scored = _scored(sheet, method, seeds)
            both = {
                direction: (scored[direction], base[direction]) for direction in scored if direction in base
            }
            if difference := compare(list(both.values())):
                pooled.append(_Pooled(seeds, method.name, difference))
            for direction, pair in both.items():
                if len(found := differences(*pair).scores):
                    p = sign_flip_p(found)
                    single.append(_Single(seeds, method.name, direction, float(found.mean()), p))
    if not pooled:
        return []
    return [_pooled_table(against, pooled), _single_table(sheet, against, single)]


def _baseline_of(sheet: Sheet) -> Method | None:
    """The method that the sheet names, or C1, or what is nearest to it; None where there is no method."""
    named = [method for method in sheet.methods if method.name == sheet.baseline]
    papers = [m for m in sheet.methods if (c := counterpart(m.setup)) and DEFAULT_BASELINE in c.names]
    by_method = [m for m in sheet.methods if m.setup.method == "c1" and m.setup.lm is None]
    return next(iter([*named, *papers, *by_method, *sheet.methods]), None)


def _scored(sheet: Sheet, method: Method, seeds: str) -> dict[Direction, Scored]:
    """Whether each test word was answered rightly at rank 1 by CSLS; the share over runs."""
    found: dict[Direction, Scored] = {}
    for (pair, name), runs in method.runs.items():
        predictions = [sheet.predictions(result) for result in runs] if name == seeds else []
        for way in DIRECTIONS:
            of_runs = [those[way] for those in predictions if those.get(way)]
            if of_runs:
                direction = Direction(pair, way)
                found[direction] = _mean_of_runs(direction, of_runs)
    return found


def _mean_of_runs(direction: Direction, runs: Sequence[Sequence[Prediction]]) -> Scored:
    hits = [{p.source: float(p.ranks["csls"] <= 1) for p in run} for run in runs]
    kept = [p for p in runs[0] if all(p.source in hit for hit in hits)]
    scores = np.array([sum(hit[p.source] for hit in hits) / len(hits) for p in kept], dtype=np.float64)
    return Scored(*direction.languages, tuple(p.source for p in kept), tuple(p.golds for p in kept), scores)


def _pooled_table(against: Method, compared: Sequence[_Pooled]) -> Table:
    corrected = holm([one.difference.p for one in compared])
    rows: list[list[Value]] = []
    for (seeds, method, found), p in zip(compared, corrected, strict=True):
        ends = (number(100 * end, 2, signed=True) for end in (found.low, found.high))
        better = number(found.better, text=f"{found.better} : {found.worse}")
        counts = (number(count) for count in (found.directions, found.words, found.units))
        mean = number(100 * found.mean, 2, signed=True, bold=p < LEVEL)
        rows.append([seeds, method, mean, *ends, _p(found.p), _p(p), better, *counts])
    return Table.of(
        "significance",
        f"Every method against {against.name}",
        f"Difference of P@1 × 100 by CSLS from {against.name}, mean over the directions that both have, with "
        f"its 95 % interval; bold where the corrected p is under {LEVEL}.",
        [
            *("seeds", "method", "difference", "from", "to", "p", "p (Holm)"),
            *("better : worse", "directions", "words", "units"),
        ],
        rows,
        (
            f"p: paired approximate randomisation, two-sided, {DRAWS:,} draws (exact with few differences). "
            f"Interval: paired bootstrap, {REPLICATES:,} resamplings.",
            "A unit is what is flipped or resampled as one: all test words of all directions and pairs that "
            "translations link, since the same meanings are asked for again and again.",
            f"p (Holm) is corrected for the number of comparisons in this table, {len(rows)}.",
            "better : worse counts directions.",
            "All this is about the choice of test words; what randomness does in training is not in it.",
        ),
    )


def _single_table(sheet: Sheet, against: Method, compared: Sequence[_Single]) -> Table:
    corrected = holm([one.p for one in compared])
    found = {
        (one.seeds, one.direction, one.method): number(100 * one.mean, 2, signed=True, bold=p < LEVEL)
        for one, p in zip(compared, corrected, strict=True)
    }
    methods = [m.name for m in sheet.methods if any(one.method == m.name for one in compared)]
    rows: list[list[Value]] = []
    for seeds in sheet.seeds:
        for direction in sheet.directions:
            cells = [found.get((seeds, direction, name)) for name in methods]
            if any(cells):
                rows.append([seeds, str(direction), *cells])
    return Table.of(
        "significance-by-direction",
        f"Every method against {against.name} in each direction",
        f"Difference of P@1 × 100 by CSLS from {against.name}; bold where p is under {LEVEL} after Holm's "
        f"correction for the number of comparisons in this table, {len(compared)}.",
        ["seeds", "direction", *methods],
        rows,
        ["p: the exact paired test on the words that one method answered rightly and the other did not."],
    )


def _p(value: float) -> Plain:
    least = 1e-4
    return number(value, text=f"{value:.4f}" if value >= least else f"< {least:.4f}")


def example_tables(sheet: Sheet) -> list[Table]:
    """In each direction some words that the last of up to three methods gets right and the first does not.

    As many words that it is the other way round with stand beside them. They are taken evenly from all
    such words, in the order of the test dictionary, so that nobody chooses them.
    """
    methods = _shown_methods(sheet.methods)
    common = [  # the greatest seeds with which all the methods have a pair in common
        (pair, seeds)
        for seeds in sheet.seeds
        for pair in sheet.pairs
        if all((pair, seeds) in method.runs for method in methods)
    ]
    if len(methods) < 2 or not common:
        return []
    shown_seeds = common[0][1]
    rows: list[list[Value]] = []
    for pair in (pair for pair, seeds in common if seeds == shown_seeds):
        answers = [sheet.predictions(method.runs[pair, shown_seeds][0]) for method in methods]
        for way in DIRECTIONS:
            if all(those.get(way) for those in answers):
                rows += _example_rows(Direction(pair, way), [those[way] for those in answers])
    first, last = methods[0].name, methods[-1].name
    table = Table.of(
        "examples",
        "Translation examples",
        f"The {_SHOWN} best answers by CSLS, {shown_seeds} seeds; right ones are bold. Gain: {last} is "
        f"right where {first} is not; loss: the other way round.",
        ["direction", "word", "right", *(method.name for method in methods), "effect"],
        rows,
        [
            f"Words are taken evenly from all those on which {first} and {last} differ, in the order of "
            "the test dictionary; how many there are stands beside the effect."
        ],
    )
    return [table] if rows else []


def _shown_methods(methods: Sequence[Method]) -> list[Method]:
    """The paper's three, where they are there; else the first, the middle and the last of all."""
    named: dict[str, Method] = {}
    for method in methods:
        found = counterpart(method.setup)
        if found:
            named.setdefault(found.names[0], method)
    chosen = [named[name] for name in _PAPERS_CHOICE if name in named]
    if len(chosen) >= 2:
        return chosen
    places = sorted({0, len(methods) // 2, len(methods) - 1}) if methods else []
    return [methods[place] for place in places]


def _example_rows(direction: Direction, answers: Sequence[Sequence[Prediction]]) -> list[list[Value]]:
    by_word = [{p.source: p for p in those} for those in answers]
    common = [p.source for p in answers[0] if all(p.source in those for those in by_word)]
    right = [{word for word in common if those[word].ranks["csls"] <= 1} for those in by_word]
    rows: list[list[Value]] = []
    for effect, found in (("gain", right[-1] - right[0]), ("loss", right[0] - right[-1])):
        listed = [word for word in common if word in found]
        for word in _evenly(listed, _EXAMPLES):
            golds = by_word[0][word].golds
            shown = (words(those[word].answers["csls"][:_SHOWN], frozenset(golds)) for those in by_word)
            rows.append([str(direction), word, words(golds), *shown, f"{effect} (of {len(listed)})"])
    return rows


def _evenly(listed: Sequence[str], count: int) -> list[str]:
    """So many words at equal distances."""
    if len(listed) <= count:
        return list(listed)
    return [listed[(2 * place + 1) * len(listed) // (2 * count)] for place in range(count)]
