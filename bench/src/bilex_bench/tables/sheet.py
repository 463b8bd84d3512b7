"""Results arranged for tables and plots: by data set, by method, by pair and seeds."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from bilex.evaluation import Prediction
from bilex_bench.datasets.folder import size_of
from bilex_bench.reported import PAPER_MIXING, Retrieval, about, benchmark_of, reported
from bilex_bench.results import DIRECTIONS, DirectionName, Result, Setup, grouped

ReadPredictions = Callable[[Result], Mapping[DirectionName, tuple[Prediction, ...]]]
# Setups that differ in one of these are different methods; those that differ in `seed` are runs of one.
_DISTINGUISHING = ("method", "settings", "limit", "lm", "tune", "tuning", "mixing")


class Direction(NamedTuple):
    """A direction of a pair."""

    pair: str
    name: DirectionName

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of queries and of answers."""
        source, _, target = self.pair.partition("-")
        return (source, target) if self.name == "forward" else (target, source)

    def __str__(self) -> str:
        return "→".join(self.languages)


@dataclass(frozen=True, eq=False)
class Method:
    """What has one name in tables."""

    name: str  # the label of its setups, with more where one label stands for several things
    # finished results by pair and seeds; several where only the random seed differs
    runs: Mapping[tuple[str, str], Sequence[Result]]

    @property
    def setup(self) -> Setup:
        """One of its setups."""
        return next(iter(self.runs.values()))[0].setup

    @property
    def results(self) -> list[Result]:
        """All its results."""
        return [result for runs in self.runs.values() for result in runs]

    def score(
        self, direction: Direction, seeds: str, retrieval: Retrieval, *, leak_free: bool = False
    ) -> float | None:
        """P@1 × 100, the mean over runs; None where there is none."""
        runs = self.runs.get((direction.pair, seeds), ())
        found = [result.metric(direction.name, retrieval, leak_free=leak_free) for result in runs]
        values = [value for value in found if value is not None]
        return 100 * statistics.fmean(values) if values else None

    def reported(self, direction: Direction, seeds: str, retrieval: Retrieval) -> float | None:
        """What the paper reports for the same."""
        for result in self.runs.get((direction.pair, seeds), ()):
            return reported(result.setup, direction.name, retrieval, _dictionary(result))
        return None


@dataclass(frozen=True, eq=False)
class Sheet:
    """All results of one data set."""

    dataset: str
    methods: Sequence[Method]  # in the paper's order
    failed: Sequence[Result] = ()
    predictions: ReadPredictions = attrgetter("predictions")  # reads the answers of a result
    baseline: str | None = None  # the method that others are tested against; None for C1

    @property
    def results(self) -> list[Result]:
        """All finished results."""
        return [result for method in self.methods for result in method.results]

    @property
    def seeds(self) -> list[str]:
        """The names of the seed dictionaries, largest first."""
        return sorted({seeds for method in self.methods for _, seeds in method.runs}, key=_by_size)

    @property
    def pairs(self) -> list[str]:
        """The pairs, by name."""
        return sorted({pair for method in self.methods for pair, _ in method.runs})

    @property
    def benchmark(self) -> Literal["xling", "panlex"] | None:
        """The paper's benchmark that this is, if it is one."""
        found = {benchmark_of(result.setup, _dictionary(result)) for result in self.results}
        return found.pop() if len(found) == 1 else None

    def directions(self, seeds: str) -> list[Direction]:
        """The directions that any method has with these seeds."""
        pairs = [pair for pair in self.pairs if any((pair, seeds) in method.runs for method in self.methods)]
        return [Direction(pair, direction) for pair in pairs for direction in DIRECTIONS]

    def only(self, methods: Iterable[Method]) -> Sheet:
        """The same with some of the methods."""
        return replace(self, methods=tuple(methods))


def sheets(results: Iterable[Result]) -> list[Sheet]:
    """Results by data set, in order of first appearance."""
    return [
        Sheet(
            dataset,
            _methods([result for result in found if result.status == "done" and result.evaluation]),
            [result for result in found if result.status == "failed"],
        )
        for dataset, found in grouped(results, lambda result: result.setup.dataset).items()
    ]


def name_of(setup: Setup) -> str:
    """The label, or what serves as one."""
    if setup.label or setup.lm is None:
        return setup.label or setup.method
    return f"{'C2' if setup.tune else 'untuned'}({setup.method}) {setup.lm}"


def is_ablation(setup: Setup) -> bool:
    """Whether a part of the paper's method is switched off."""
    if setup.lm is not None and (not setup.tune or setup.mixing == 1):
        return True
    return not (setup.settings.get("contrastive", True) and setup.settings.get("self_learning", True))


def same_but(setup: Setup, *left_out: str) -> str:
    """A name for what a method is, without some fields."""
    content = [getattr(setup, name) for name in _DISTINGUISHING if name not in left_out]
    return json.dumps(content, sort_keys=True, default=dict)


def without_sweep(
    methods: Iterable[Method], *, most: int = 2, kept: tuple[Any, ...] = (PAPER_MIXING, "auto", 1)
) -> list[Method]:
    """All methods, but of a stage C2 with more than `most` λ only those with the λ that are `kept`."""
    methods = list(methods)
    stages = grouped(methods, lambda method: same_but(method.setup, "mixing"))
    swept = {name for name, stage in stages.items() if len({m.setup.mixing for m in stage}) > most}
    return [m for m in methods if same_but(m.setup, "mixing") not in swept or m.setup.mixing in kept]


def _dictionary(result: Result) -> str:
    """The name of the test dictionary."""
    return str((result.evaluation or {}).get("dictionary", ""))


def _methods(results: Sequence[Result]) -> list[Method]:
    """Results by label; a label that stands for several things in one place becomes several.

    Of several labels of one experiment the one that most experiments have counts.
    """
    experiments = grouped(results, lambda result: result.setup.key)
    labels = {key: [name_of(result.setup) for result in found] for key, found in experiments.items()}
    counts = Counter(label for found in labels.values() for label in found)
    usual = {
        (name_of(r.setup), same_but(r.setup)): max(labels[r.setup.key], key=counts.__getitem__)
        for r in results
        if len(labels[r.setup.key]) > 1
    }

    def name(result: Result) -> str:
        own = name_of(result.setup)
        return usual.get((own, same_but(result.setup)), own)

    methods = []
    for label, found in grouped(results, name).items():
        distinct = [same[0] for same in grouped(found, lambda result: result.setup.key).values()]
        methods += [Method(label + more, grouped(part, _place)) for more, part in _by_settings(distinct)]
    return sorted(methods, key=_paper_order)


def _place(result: Result) -> tuple[str, str]:
    return result.setup.pair, result.setup.seeds


def _by_settings(results: Sequence[Result]) -> list[tuple[str, Sequence[Result]]]:
    """Results of one label, with what to add to it where one pair and seeds have several setups."""
    places = grouped(results, _place).values()
    if all(len({same_but(result.setup) for result in found}) == 1 for found in places):
        return [("", results)]
    variants = grouped(results, lambda result: same_but(result.setup))
    others = {name: [other for other in _DISTINGUISHING if other != name] for name in _DISTINGUISHING}
    setups = [found[0].setup for found in variants.values()]
    differing = [n for n in _DISTINGUISHING if len({same_but(setup, *others[n]) for setup in setups}) > 1]
    return [
        (f" ({', '.join(_described(name, getattr(found[0].setup, name)) for name in differing)})", found)
        for found in variants.values()
    ]


def _described(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} = {v}" for k, v in value.items()) or f"no {name}"
    return f"{'λ' if name == 'mixing' else name} = {value}"


def _by_size(seeds: str) -> tuple[bool, int, str]:
    """Largest first, names that are no numbers last."""
    size = size_of(seeds)
    return size is None, -(size or 0), seeds


def _paper_order(method: Method) -> tuple[Any, ...]:
    """Baselines, ablations of C1, C1; then the language model alone, untuned mixtures, and stage C2."""
    setup = method.setup
    mixing = 2.0 if setup.mixing == "auto" else float(setup.mixing or 0)
    stage = (setup.lm is not None, setup.tune or setup.mixing == 1, setup.lm or "")
    if setup.lm is not None and setup.mixing == 1:
        stage = (True, False, "")
    return (*stage, setup.tune, about(setup.method).place, not is_ablation(setup), mixing, method.name)
