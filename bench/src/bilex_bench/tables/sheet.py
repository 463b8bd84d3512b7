"""Results ordered for tables: by data set, by method, by pair and seeds."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from bilex.evaluation import Prediction
from bilex_bench.reported import (
    CITATION,
    PANLEX_LANGUAGES,
    PAPER_MIXING,
    XLING_PAIRS,
    Retrieval,
    about,
    benchmark_of,
    counterpart,
    reported,
)
from bilex_bench.results import DIRECTIONS, DirectionName, Result, Setup
from bilex_bench.tables.table import Column, Figures, Table, Value, best_marked

ReadPredictions = Callable[[Result], Mapping[DirectionName, tuple[Prediction, ...]]]
CSLS: tuple[Retrieval, ...] = ("csls",)
NN_AND_CSLS: tuple[Retrieval, ...] = ("nn", "csls")
PARTS = ("NN", "CSLS")
SAME_DIRECTIONS = "a mean goes over the same directions as ours"
# Setups that differ in one of these are different methods; those that differ in `seed` are runs of one.
_DISTINGUISHING = ("method", "settings", "limit", "lm", "tune", "tuning", "mixing")


class Direction(NamedTuple):
    """A pair read one way."""

    pair: str
    way: DirectionName

    @property
    def languages(self) -> tuple[str, str]:
        """Asked in, answered in."""
        source, _, target = self.pair.partition("-")
        return (source, target) if self.way == "forward" else (target, source)

    def __str__(self) -> str:
        return "→".join(self.languages)


@dataclass(frozen=True, eq=False)
class Method:
    """What has one name in tables."""

    name: str  # the label of its setups, with more where one label stands for several things
    # by pair and name of seeds, the finished results; several where only the random seed differs
    runs: Mapping[tuple[str, str], tuple[Result, ...]]

    @property
    def setup(self) -> Setup:
        """One of its setups."""
        return next(iter(self.runs.values()))[0].setup

    def score(
        self, direction: Direction, seeds: str, retrieval: Retrieval, *, leak_free: bool = False
    ) -> float | None:
        """P@1 × 100, the mean over runs; None where there is none."""
        found = [
            result.metric(direction.way, retrieval, leak_free=leak_free)
            for result in self.runs.get((direction.pair, seeds), ())
        ]
        values = [value for value in found if value is not None]
        return 100 * statistics.fmean(values) if values else None

    def reported(self, direction: Direction, seeds: str, retrieval: Retrieval) -> float | None:
        """What the paper reports for the same."""
        runs = self.runs.get((direction.pair, seeds))
        if not runs:
            return None
        return reported(runs[0].setup, direction.way, retrieval, dictionary_of(runs[0]))


@dataclass(frozen=True, eq=False)
class Sheet:
    """All finished results of one data set."""

    dataset: str  # its name
    methods: tuple[Method, ...]  # in the paper's order
    failed: tuple[Result, ...] = ()  # results of setups that failed
    predictions: ReadPredictions = attrgetter("predictions")  # reads the answers of a result
    baseline: str | None = None  # the method that others are tested against; None for C1

    @property
    def results(self) -> list[Result]:
        """All finished ones."""
        return [result for method in self.methods for runs in method.runs.values() for result in runs]

    @property
    def seeds(self) -> list[str]:
        """The names of the seed dictionaries, greatest first."""
        return sorted({seeds for method in self.methods for _, seeds in method.runs}, key=_by_size)

    @property
    def pairs(self) -> list[str]:
        """The pairs, by name."""
        return sorted({pair for method in self.methods for pair, _ in method.runs})

    @property
    def directions(self) -> list[Direction]:
        """Both directions of each pair."""
        return [Direction(pair, way) for pair in self.pairs for way in DIRECTIONS]

    @property
    def benchmark(self) -> Literal["xling", "panlex"] | None:
        """The paper's benchmark that this is, if it is one."""
        found = {benchmark_of(result.setup, dictionary_of(result)) for result in self.results}
        return found.pop() if len(found) == 1 else None

    def only(self, methods: Iterable[Method]) -> Sheet:
        """The same with some of the methods."""
        return replace(self, methods=tuple(methods))


def sheets(results: Iterable[Result]) -> list[Sheet]:
    """Results by data set, in order of first appearance."""
    by_dataset: dict[str, list[Result]] = {}
    for result in results:
        by_dataset.setdefault(result.setup.dataset, []).append(result)
    return [
        Sheet(
            dataset,
            tuple(_methods([result for result in found if result.status == "done" and result.evaluation])),
            tuple(result for result in found if result.status == "failed"),
        )
        for dataset, found in by_dataset.items()
    ]


def dictionary_of(result: Result) -> str:
    """The name of the test dictionary."""
    return str((result.evaluation or {}).get("dictionary", ""))


def name_of(setup: Setup) -> str:
    """The label, or what serves as one."""
    if setup.label:
        return setup.label
    if setup.lm is None:
        return setup.method
    return f"{'C2' if setup.tune else 'untuned'}({setup.method}) {setup.lm}"


def is_ablation(setup: Setup) -> bool:
    """Whether a part of the paper's method is switched off."""
    if setup.lm is not None and (not setup.tune or setup.mixing == 1):
        return True
    return not (setup.settings.get("contrastive", True) and setup.settings.get("self_learning", True))


def same_but(setup: Setup, *left_out: str) -> str:
    """A name for what a method is, some fields left out."""
    return _written([getattr(setup, name) for name in _DISTINGUISHING if name not in left_out])


def without_sweep(methods: Sequence[Method]) -> list[Method]:
    """All methods, but of a stage C2 that was mixed with more than two λ only the usual of these."""
    stages: dict[str, list[Method]] = {}
    for method in methods:
        if method.setup.lm is not None:
            stages.setdefault(same_but(method.setup, "mixing"), []).append(method)
    swept = {
        method.name
        for found in stages.values()
        if len(found) > 2
        for method in found
        if method.setup.mixing not in (PAPER_MIXING, "auto", 1)
    }
    return [method for method in methods if method.name not in swept]


def _methods(results: Sequence[Result]) -> list[Method]:
    """Results by label; a label that stands for several things in one place becomes several.

    One experiment may come several times, under other labels: that which most experiments have counts.
    """
    usual = _usual_names(results)
    by_name: dict[str, dict[str, Result]] = {}
    for result in results:
        name = name_of(result.setup)
        name = usual.get((name, same_but(result.setup)), name)
        by_name.setdefault(name, {}).setdefault(result.setup.key, result)
    methods = []
    for name, found in by_name.items():
        for more, part in _by_settings(list(found.values())):
            runs: dict[tuple[str, str], list[Result]] = {}
            for result in part:
                runs.setdefault((result.setup.pair, result.setup.seeds), []).append(result)
            methods.append(Method(name + more, {place: tuple(those) for place, those in runs.items()}))
    return sorted(methods, key=_in_papers_order)


def _usual_names(results: Sequence[Result]) -> dict[tuple[str, str], str]:
    """For a label and what it stands for, the more usual label of the same experiments, if they have one."""
    names_of_keys: dict[str, list[str]] = {}
    for result in results:
        names_of_keys.setdefault(result.setup.key, []).append(name_of(result.setup))
    counts = Counter(name for names in names_of_keys.values() for name in names)
    return {
        (name_of(result.setup), same_but(result.setup)): max(
            names_of_keys[result.setup.key], key=counts.__getitem__
        )
        for result in results
        if len(names_of_keys[result.setup.key]) > 1
    }


def _by_settings(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """Results of one label, split where one pair and seeds have several setups, with what to add to it."""
    variants: dict[str, list[Result]] = {}
    places: dict[tuple[str, str], set[str]] = {}
    for result in results:
        variant = same_but(result.setup)
        variants.setdefault(variant, []).append(result)
        places.setdefault((result.setup.pair, result.setup.seeds), set()).add(variant)
    if all(len(found) == 1 for found in places.values()):
        return [("", list(results))]
    setups = [found[0].setup for found in variants.values()]
    differing = [
        name for name in _DISTINGUISHING if len({_written(getattr(setup, name)) for setup in setups}) > 1
    ]
    return [
        (f" ({', '.join(_said(name, getattr(found[0].setup, name)) for name in differing)})", found)
        for found in variants.values()
    ]


def _said(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} = {v}" for k, v in value.items()) or f"no {name}"
    return f"{'λ' if name == 'mixing' else name} = {value}"


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=dict)


def _by_size(seeds: str) -> tuple[int, float, str]:
    """Greatest first, names that are no numbers last."""
    number = seeds.lower().removesuffix("k")
    if not number.replace(".", "", 1).isdigit():
        return 1, 0.0, seeds
    return 0, -float(number) * (1000 if seeds.lower().endswith("k") else 1), seeds


def _in_papers_order(method: Method) -> tuple[Any, ...]:
    """Rivals, ablations of C1, C1; then the language model alone, mixed in as it is, and stage C2."""
    setup = method.setup
    mixing = 2.0 if setup.mixing == "auto" else float(setup.mixing or 0)
    stage = (setup.lm is not None, setup.tune or setup.mixing == 1, setup.lm or "")
    if setup.lm is not None and setup.mixing == 1:
        stage = (True, False, "")
    return (*stage, setup.tune, about(setup.method).place, not is_ablation(setup), mixing, method.name)


def mean_metrics(
    method: Method,
    directions: Sequence[Direction],
    seeds: str,
    retrievals: Sequence[Retrieval],
    *,
    leak_free: bool = False,
    compared: bool = True,
) -> Figures:
    """The mean P@1 × 100 of a method over directions, with the reported mean over the same ones."""
    scores = [
        (direction, found)
        for direction in directions
        if None not in (found := [method.score(direction, seeds, r, leak_free=leak_free) for r in retrievals])
    ]
    if not scores:
        return Figures((None,) * len(retrievals))
    ours = tuple(mean_or_none(part) for part in zip(*(found for _, found in scores), strict=True))
    share = (len(scores), len(directions)) if len(scores) < len(directions) else None
    beside = (
        [mean_or_none([method.reported(d, seeds, r) for d, _ in scores]) for r in retrievals]
        if compared
        else []
    )
    return Figures(ours, tuple(beside) if any(v is not None for v in beside) else (), share=share)


def mean_rows(
    methods: Sequence[Method],
    seeds: str,
    groups: Iterable[tuple[str, Sequence[Direction]]],
    retrievals: Sequence[Retrieval] = CSLS,
) -> list[list[Value]]:
    """A row for each group of directions: the seeds, its name, and the mean of each method."""
    return [
        [seeds, name, *(mean_metrics(method, those, seeds, retrievals) for method in methods)]
        for name, those in groups
    ]


def finished_rows(rows: Sequence[Sequence[Value]]) -> list[list[Value]]:
    """Rows with the best of our figures marked, and dashes where a column lacks some reported figures."""
    lengths = [
        max((len(cell.reported) for cell in column if isinstance(cell, Figures)), default=0)
        for column in zip(*rows, strict=True)
    ]
    return [
        best_marked([_with_dashes(cell, n) for cell, n in zip(row, lengths, strict=True)]) for row in rows
    ]


def present(sheet: Sheet, seeds: str) -> list[Direction]:
    """The directions that any method has with these seeds."""
    return [
        direction
        for direction in sheet.directions
        if any((direction.pair, seeds) in method.runs for method in sheet.methods)
    ]


def figure_notes(
    sheet: Sheet,
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[Value]],
    means: str = SAME_DIRECTIONS,
) -> tuple[str, ...]:
    """On which pairs and vectors the figures of a table are, what the reported ones are and their `means`."""
    notes = [_pairs_sentence(sheet), _vectors_sentence(sheet)]
    figures = [cell for row in rows for cell in row if isinstance(cell, Figures)]
    if any(cell.reported for cell in figures):
        notes.append(
            f"In italics and parentheses: reported by {CITATION}, on fastText's Wikipedia vectors with "
            f"200,000 words per language; {means}. The vectors differ, so compare differences between "
            "methods rather than single figures."
        )
        notes += _differences(sheet, columns, rows)
    if any(cell.share for cell in figures):
        notes.append(
            "In brackets: over how many of the row's directions the mean goes, where some are missing."
        )
    several = {len(runs) for method in sheet.methods for runs in method.runs.values()} - {1}
    if several:
        notes.append("Where a method was run with several random seeds, its figure is the mean over runs.")
    return tuple(notes)


def figures_table(
    sheet: Sheet,
    name: str,
    title: str,
    caption: str,
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[Value]],
    notes: Sequence[str] = (),
    *,
    means: str = SAME_DIRECTIONS,
) -> list[Table]:
    """A table of figures with its best ones marked and its notes, or none without figures."""
    if not any(isinstance(cell, Figures) and cell.has_any for row in rows for cell in row):
        return []
    finished = finished_rows(rows)
    grouped = len(rows[0]) > 1 and isinstance(rows[0][1], str)
    every = (*figure_notes(sheet, columns, finished, means), *notes)
    return [Table.of(name, title, caption, columns, finished, every, grouped=grouped)]


def with_mean(directions: Sequence[Direction]) -> list[tuple[str, list[Direction]]]:
    """Each direction by itself with its name, and all of them."""
    return [*((str(direction), [direction]) for direction in directions), ("mean", list(directions))]


def mean_or_none(values: Sequence[float | None]) -> float | None:
    """The mean; None where a value is missing."""
    there = [value for value in values if value is not None]
    return statistics.fmean(there) if there and len(there) == len(values) else None


def _differences(sheet: Sheet, columns: Sequence[Column | str], rows: Sequence[Sequence[Value]]) -> list[str]:
    """What the paper did otherwise, one sentence a method that stands beside something else than itself."""
    compared = {
        column if isinstance(column, str) else column.name
        for column, cells in zip(columns, zip(*rows, strict=True), strict=True)
        if any(isinstance(cell, Figures) and cell.reported for cell in cells)
    }
    return [
        f"Reported beside {method.name}: {found.names[0]}, {found.difference}."
        for method in sheet.methods
        if method.name in compared and (found := counterpart(method.setup)) and found.difference
    ]


def _pairs_sentence(sheet: Sheet) -> str:
    listed = ", ".join(sheet.pairs)
    if sheet.benchmark == "xling":
        return f"{len(sheet.pairs)} of XLING's {XLING_PAIRS} pairs: {listed}."
    if sheet.benchmark == "panlex":
        count = len(PANLEX_LANGUAGES) * (len(PANLEX_LANGUAGES) - 1)
        return (
            f"{len(sheet.pairs)} of PanLex-BLI's {count} dictionaries among the paper's languages: {listed}."
        )
    return f"{len(sheet.pairs)} {'pair' if len(sheet.pairs) == 1 else 'pairs'}: {listed}."


def _vectors_sentence(sheet: Sheet) -> str:
    limits: set[Any] = {method.setup.limit for method in sheet.methods}
    words = {f"at most the {limit:,} most frequent words" if limit else "all words" for limit in limits}
    return f"Ours: the vectors of data set '{sheet.dataset}', {' or '.join(sorted(words))} of each language."


def _with_dashes(cell: Value, length: int) -> Value:
    if isinstance(cell, Figures) and not cell.reported and length and cell.has_any:
        return replace(cell, reported=(None,) * length)
    return cell
