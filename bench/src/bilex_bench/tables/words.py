"""Methods compared word by word: whether a difference is significant, and examples of answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bilex.evaluation import Prediction
from bilex_bench import significance
from bilex_bench.reported import counterpart
from bilex_bench.results import DIRECTIONS
from bilex_bench.tables.sheet import Direction, Method, Sheet, without_sweep
from bilex_bench.tables.table import Plain, Table, Value, number, words

_BASELINE = "C1"
_LEVEL = 0.05
_LEAST_P = 1e-4
_EXAMPLE_METHODS = ("C1 w/o CL", "C1", "C2 (C1)")
_ANSWERS, _EXAMPLES = 5, 2


def significance_tables(sheet: Sheet) -> Iterator[Table]:
    """Every method against the baseline: over all directions together, and in each direction."""
    against = _baseline(sheet)
    if against is None:
        return
    methods = [method for method in without_sweep(sheet.methods) if method is not against]
    pooled: list[tuple[str, str, significance.Difference]] = []
    single: dict[tuple[str, Direction, str], tuple[float, float]] = {}  # difference and p
    for seeds in sheet.seeds:
        base = _scored(sheet, against, seeds)
        for method in methods if base else ():
            scored = _scored(sheet, method, seeds)
            both = {
                direction: (scored[direction], base[direction]) for direction in scored if direction in base
            }
            if difference := significance.compare(list(both.values())):
                pooled.append((seeds, method.name, difference))
            for direction, pair in both.items():
                if len(found := significance.differences(*pair).scores):
                    single[seeds, direction, method.name] = (
                        float(found.mean()),
                        significance.sign_flip_p(found),
                    )
    yield _pooled_table(against.name, pooled)
    yield _single_table(sheet, against.name, single)


def _baseline(sheet: Sheet) -> Method | None:
    """The method that the sheet names, or C1, or what is nearest to it."""
    named = [method for method in sheet.methods if method.name == sheet.baseline]
    papers = [m for m in sheet.methods if (c := counterpart(m.setup)) and _BASELINE in c.names]
    by_method = [m for m in sheet.methods if m.setup.method == "c1" and m.setup.lm is None]
    return next(iter([*named, *papers, *by_method, *sheet.methods]), None)


def _scored(sheet: Sheet, method: Method, seeds: str) -> dict[Direction, significance.Scored]:
    """Whether the first answer to each test word by CSLS is right; with several runs, how often."""
    found: dict[Direction, significance.Scored] = {}
    for (pair, name), results in method.runs.items():
        predictions = [sheet.predictions(result) for result in results] if name == seeds else []
        for direction in DIRECTIONS:
            runs = [those[direction] for those in predictions if those.get(direction)]
            if runs:
                hits = [{p.source: float(p.ranks["csls"] <= 1) for p in run} for run in runs]
                kept = [p for p in runs[0] if all(p.source in hit for hit in hits)]
                scores = np.array([sum(hit[p.source] for hit in hits) / len(hits) for p in kept], np.float64)
                place = Direction(pair, direction)
                sources, right = tuple(p.source for p in kept), tuple(p.translations for p in kept)
                found[place] = significance.Scored(*place.languages, sources, right, scores)
    return found


def _pooled_table(against: str, compared: Sequence[tuple[str, str, significance.Difference]]) -> Table:
    corrected = significance.holm([found.p for _, _, found in compared])
    rows: list[list[Value]] = []
    for (seeds, method, found), p in zip(compared, corrected, strict=True):
        interval = (number(100 * end, 2, signed=True) for end in (found.low, found.high))
        better = number(found.better, text=f"{found.better} : {found.worse}")
        counts = (number(count) for count in (found.directions, found.words, found.units))
        mean = number(100 * found.mean, 2, signed=True, bold=p < _LEVEL)
        rows.append([seeds, method, mean, *interval, _p(found.p), _p(p), better, *counts])
    return Table(
        "significance",
        f"Every method against {against}",
        f"Difference of P@1 × 100 by CSLS from {against}, mean over the directions that both have, with "
        f"its 95 % interval; bold where the corrected p is under {_LEVEL}.",
        [
            *("seeds", "method", "difference", "from", "to", "p", "p (Holm)"),
            *("better : worse", "directions", "words", "units"),
        ],
        rows,
        (
            f"p: paired approximate randomisation, two-sided, {significance.DRAWS:,} draws (exact with few "
            f"differences). Interval: paired bootstrap, {significance.REPLICATES:,} resamplings.",
            "A unit is what is flipped or resampled as one: all test words of all directions and pairs that "
            "translations link, since the same meanings are queried again and again.",
            f"p (Holm) is corrected for the number of comparisons in this table, {len(rows)}.",
            "better : worse counts directions.",
            "All this is about the choice of test words; what randomness does in training is not in it.",
        ),
    )


def _single_table(
    sheet: Sheet, against: str, compared: dict[tuple[str, Direction, str], tuple[float, float]]
) -> Table:
    corrected = significance.holm([p for _, p in compared.values()])
    found = {
        place: number(100 * mean, 2, signed=True, bold=p < _LEVEL)
        for (place, (mean, _)), p in zip(compared.items(), corrected, strict=True)
    }
    methods = [m.name for m in sheet.methods if any(name == m.name for _, _, name in compared)]
    rows: list[list[Value]] = []
    for seeds in sheet.seeds:
        for direction in sheet.directions(seeds):
            cells = [found.get((seeds, direction, name)) for name in methods]
            if any(cells):
                rows.append([seeds, str(direction), *cells])
    return Table(
        "significance-by-direction",
        f"Every method against {against} in each direction",
        f"Difference of P@1 × 100 by CSLS from {against}; bold where p is under {_LEVEL} after Holm's "
        f"correction for the number of comparisons in this table, {len(compared)}.",
        ["seeds", "direction", *methods],
        rows,
        ["p: the exact paired test on the words that one method answered rightly and the other did not."],
    )


def _p(value: float) -> Plain:
    return number(value, text=f"{value:.4f}" if value >= _LEAST_P else f"< {_LEAST_P:.4f}")


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
    rows: list[list[Value]] = []
    for pair in common.get(seeds, ()) if len(methods) > 1 else ():
        answers = [sheet.predictions(method.runs[pair, seeds][0]) for method in methods]
        for direction in DIRECTIONS:
            if all(those.get(direction) for those in answers):
                rows += _example_rows(Direction(pair, direction), [those[direction] for those in answers])
    if rows:
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
    named: dict[str, Method] = {}
    for method in methods:
        found = counterpart(method.setup)
        if found:
            named.setdefault(found.names[0], method)
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
