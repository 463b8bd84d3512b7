"""Every method against one: differences, their intervals, and whether chance explains them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bilex.evaluation import Prediction
from bilex_bench.reported import counterpart
from bilex_bench.results import DIRECTIONS, DirectionName, Result
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
from bilex_bench.tables.table import Cell, Column, Missing, Number, Table, Text

ReadPredictions = Callable[[Result], Mapping[DirectionName, tuple[Prediction, ...]]]

DEFAULT_BASELINE = "C1"
LEVEL = 0.05


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


def significance_tables(sheet: Sheet, read: ReadPredictions, baseline: str | None = None) -> list[Table]:
    """Every method against the baseline: over all directions together, and in each by itself."""
    against = baseline_of(sheet, baseline)
    if against is None or len(sheet.methods) < 2:
        return []
    chosen = [method for method in without_sweep(sheet.methods) if method is not against]
    pooled: list[_Pooled] = []
    single: list[_Single] = []
    for seeds in sheet.seeds:
        base = _scored(against, seeds, read)
        for method in chosen if base else ():
            scored = _scored(method, seeds, read)
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
    return [_pooled_table(sheet, against, pooled), _single_table(sheet, against, single)]


def baseline_of(sheet: Sheet, name: str | None) -> Method | None:
    """The method called so, or C1, or what is nearest to it; None where there is no method at all."""
    for method in sheet.methods:
        if method.name == name:
            return method
    for method in sheet.methods:
        found = counterpart(method.setup)
        if found and DEFAULT_BASELINE in found.names:
            return method
    by_method = [m for m in sheet.methods if m.setup.method == "c1" and m.setup.lm is None]
    return next(iter([*by_method, *sheet.methods]), None)


def _scored(method: Method, seeds: str, read: ReadPredictions) -> dict[Direction, Scored]:
    """Whether each test word was answered rightly at rank 1 by CSLS; the share over runs."""
    found: dict[Direction, Scored] = {}
    for (pair, name), runs in method.runs.items():
        if name != seeds:
            continue
        predictions = [read(result) for result in runs]
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


def _pooled_table(sheet: Sheet, against: Method, compared: Sequence[_Pooled]) -> Table:
    corrected = holm([one.difference.p for one in compared])
    rows = []
    for one, p in zip(compared, corrected, strict=True):
        found = one.difference
        rows.append(
            (
                Text(one.seeds),
                Text(one.method),
                Number.of(100 * found.mean, 2, signed=True, bold=p < LEVEL),
                Number.of(100 * found.low, 2, signed=True),
                Number.of(100 * found.high, 2, signed=True),
                _p(found.p),
                _p(p),
                Number(found.better, f"{found.better} : {found.worse}"),
                Number.of(found.directions),
                Number.of(found.words),
                Number.of(found.units),
            )
        )
    names = ("seeds", "method", "difference", "from", "to", "p", "p (Holm)", "better : worse", "directions")
    return Table(
        "significance",
        f"Every method against {against.name}",
        f"Difference of P@1 × 100 by CSLS from {against.name}, mean over the directions that both have, with "
        f"its 95 % interval; bold where the corrected p is under {LEVEL}.",
        tuple(map(Column, (*names, "words", "units"))),
        tuple(rows),
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
        (one.seeds, one.direction, one.method): Number.of(100 * one.mean, 2, signed=True, bold=p < LEVEL)
        for one, p in zip(compared, corrected, strict=True)
    }
    methods = [m.name for m in sheet.methods if any(one.method == m.name for one in compared)]
    rows: list[tuple[Cell, ...]] = []
    for seeds in sheet.seeds:
        for direction in sheet.directions:
            cells = [found.get((seeds, direction, name), Missing()) for name in methods]
            if any(isinstance(cell, Number) for cell in cells):
                rows.append((Text(seeds), Text(str(direction)), *cells))
    return Table(
        "significance-by-direction",
        f"Every method against {against.name} in each direction",
        f"Difference of P@1 × 100 by CSLS from {against.name}; bold where p is under {LEVEL} after Holm's "
        f"correction for the number of comparisons in this table, {len(compared)}.",
        tuple(map(Column, ("seeds", "direction", *methods))),
        tuple(rows),
        ("p: the exact paired test on the words that one method answered rightly and the other did not.",),
    )


def _p(value: float) -> Number:
    least = 1e-4
    return Number(value, f"{value:.4f}" if value >= least else f"< {least:.4f}")
