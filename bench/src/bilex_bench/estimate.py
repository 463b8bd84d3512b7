"""How long setups will take, and in how much memory: estimates, for `--dry-run` and for the order of work."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bilex_bench.costs import Device, Size, gigabytes, seconds
from bilex_bench.datasets import NO_SEEDS, DataFolder
from bilex_bench.results import Result
from bilex_bench.setups import Setup
from bilex_bench.store import ResultsStore
from bilex_bench.word_counts import word_count

Ratios = dict[tuple[str, str], float]
_SHARED_BY_STAGE = ("tune", "encode", "trial")


@dataclass(frozen=True)
class Estimate:
    """What a setup is thought to cost.

    Attributes:
        setup: The setup.
        seconds: What it adds to the setups before it: a fit counts for the first of its family only, tuning
            for the first of those that share it.
        gigabytes: Peak memory of its process.
        measured: Whether earlier results of this method had a say.
    """

    setup: Setup
    seconds: float
    gigabytes: float
    measured: bool


def estimate(
    setups: Iterable[Setup],
    datasets: Mapping[str, DataFolder],
    store: ResultsStore | None = None,
    *,
    on_gpu: bool = False,
) -> list[Estimate]:
    """Estimate the cost of setups.

    Rough formulas (`bilex_bench.costs`, for two cores and one GPU) are corrected by what earlier results
    of the same method or language model took on the same device: by the median of measured over computed.

    Args:
        setups: The setups to run, each once, in the order of work.
        datasets: Their data.
        store: Earlier results, if there are any.
        on_gpu: Whether they will run on a GPU.

    Returns:
        One estimate a setup.
    """
    device: Device = "cuda" if on_gpu else "cpu"
    sizes = _Sizes(datasets)
    earlier = [] if store is None else store.results()
    done = [r for r in earlier if r.status == "done" and r.device == device and r.setup.dataset in datasets]
    times, memory = _ratios(done, sizes, device)
    counted: set[tuple[str, str]] = set()
    estimates = []
    for setup in setups:
        size = sizes.of(setup)
        total = 0.0
        for step, cost in seconds(setup, size, device).items():
            share = _share(setup, step)
            if share not in counted:
                counted.add(share)
                total += cost * times.get((step, _who(setup, step)), 1.0)
        estimates.append(
            Estimate(
                setup,
                total,
                gigabytes(setup, size) * memory.get(("memory", _whose_memory(setup)), 1.0),
                ("fit", setup.method) in times and (setup.lm is None or ("encode", setup.lm) in times),
            )
        )
    return estimates


def by_family(estimates: Iterable[Estimate]) -> dict[str, tuple[float, float]]:
    """The seconds and the gigabytes of each family."""
    found: dict[str, tuple[float, float]] = {}
    for part in estimates:
        seconds, gigabytes = found.get(part.setup.family, (0.0, 0.0))
        found[part.setup.family] = (seconds + part.seconds, max(gigabytes, part.gigabytes))
    return found


class _Sizes:
    """How much the setups work on, each file looked at once."""

    def __init__(self, datasets: Mapping[str, DataFolder]) -> None:
        self._datasets = datasets
        self._words: dict[tuple[str, str], int] = {}
        self._seeds: dict[tuple[str, str, str], int] = {}

    def of(self, setup: Setup) -> Size:
        """The size of a setup."""
        source, target = setup.languages
        return Size(self._vocabulary(setup, source), self._vocabulary(setup, target), self._seed_pairs(setup))

    def _vocabulary(self, setup: Setup, language: str) -> int:
        place = (setup.dataset, language)
        if place not in self._words:
            self._words[place] = word_count(self._datasets[setup.dataset].vectors_path(language))
        return min(self._words[place], setup.limit or self._words[place])

    def _seed_pairs(self, setup: Setup) -> int:
        if setup.seeds == NO_SEEDS:
            return 0
        place = (setup.dataset, setup.pair, setup.seeds)
        if place not in self._seeds:
            self._seeds[place] = len(self._datasets[setup.dataset].seeds(setup.pair, setup.seeds))
        return self._seeds[place]


def _share(setup: Setup, step: str) -> tuple[str, str]:
    """What a step is done once for."""
    if step == "fit":
        return step, setup.family
    return (step, str(setup.stage)) if step in _SHARED_BY_STAGE else (step, setup.key)


def _who(setup: Setup, step: str) -> str:
    """Whose earlier results say something about a step."""
    if step == "fit":
        return setup.method
    return str(setup.lm) if step in _SHARED_BY_STAGE else ""


def _whose_memory(setup: Setup) -> str:
    return f"{setup.method} {setup.lm}"


def _ratios(done: Iterable[Result], sizes: _Sizes, device: Device) -> tuple[Ratios, Ratios]:
    """Measured over computed, for time and for memory, each the median over the earlier results."""
    times: dict[tuple[str, str], list[float]] = {}
    memory: dict[tuple[str, str], list[float]] = {}
    for result in done:
        setup = result.setup
        size = sizes.of(setup)
        for step, cost in seconds(setup, size, device).items():
            if cost and step in result.seconds:
                times.setdefault((step, _who(setup, step)), []).append(result.seconds[step] / cost)
        if result.gigabytes:
            ratio = result.gigabytes / gigabytes(setup, size)
            memory.setdefault(("memory", _whose_memory(setup)), []).append(ratio)
    return _medians(times), _medians(memory)


def _medians(found: Mapping[tuple[str, str], list[float]]) -> Ratios:
    return {name: statistics.median(ratios) for name, ratios in found.items()}
