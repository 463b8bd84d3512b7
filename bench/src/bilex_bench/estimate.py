"""How long setups will take, and in how much memory, from what earlier results took.

The estimates order the work and are shown by `--dry-run`. What was never measured has none.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bilex_bench.datasets import DataFolder
from bilex_bench.setups import Setup
from bilex_bench.store import ResultsStore
from bilex_bench.word_counts import word_count

_BY_MODEL = ("tune", "encode", "trial")  # steps whose cost depends on the language model


@dataclass(frozen=True)
class Estimate:
    """What a setup is expected to cost.

    Attributes:
        setup: The setup.
        seconds: What it adds to the setups before it: a fit counts for the first of its family only, tuning
            for the first of those that share it. None if its method or language model was never measured.
        gigabytes: Peak memory of its process; None if it was never measured.
    """

    setup: Setup
    seconds: float | None
    gigabytes: float | None


def estimate(
    setups: Iterable[Setup],
    datasets: Mapping[str, DataFolder],
    store: ResultsStore | None = None,
    *,
    on_gpu: bool = False,
) -> list[Estimate]:
    """Estimate the cost of setups from earlier results on the same device.

    A step takes the median time per word of earlier results of the same method or language model. Memory is
    the most that any of them needed.
    """
    device = "cuda" if on_gpu else "cpu"
    words = _Words(datasets)
    rates: dict[tuple[str, str], list[float]] = {}
    memory: dict[tuple[str, str | None], float] = {}
    for result in store.results() if store is not None else ():
        setup = result.setup
        if result.status != "done" or result.device != device or setup.dataset not in datasets:
            continue
        for step, seconds in result.seconds.items():
            rates.setdefault((step, _measured_by(setup, step)), []).append(seconds / words.of(setup))
        if result.gigabytes:
            place = setup.method, setup.lm
            memory[place] = max(memory.get(place, 0.0), result.gigabytes)
    counted: set[tuple[str, str]] = set()
    estimates = []
    for setup in setups:
        total: float | None = 0.0
        for step in _steps(setup):
            measured = rates.get((step, _measured_by(setup, step)))
            if measured is None and step in ("fit", "tune", "encode"):
                total = None
            if (share := _shared_by(setup, step)) not in counted and measured and total is not None:
                counted.add(share)
                total += statistics.median(measured) * words.of(setup)
        estimates.append(Estimate(setup, total, memory.get((setup.method, setup.lm))))
    return estimates


def by_family(estimates: Iterable[Estimate]) -> dict[str, tuple[float | None, float | None]]:
    """The seconds and the gigabytes of each family; None where a part of it was never measured."""
    found: dict[str, list[Estimate]] = {}
    for part in estimates:
        found.setdefault(part.setup.family, []).append(part)
    costs: dict[str, tuple[float | None, float | None]] = {}
    for family, parts in found.items():
        seconds = [part.seconds for part in parts if part.seconds is not None]
        gigabytes = [part.gigabytes for part in parts if part.gigabytes is not None]
        costs[family] = (
            sum(seconds) if len(seconds) == len(parts) else None,
            max(gigabytes) if len(gigabytes) == len(parts) else None,
        )
    return costs


class _Words:
    """The words of both vocabularies of a setup; each file is looked at once."""

    def __init__(self, datasets: Mapping[str, DataFolder]) -> None:
        self._datasets = datasets
        self._known: dict[tuple[str, str], int] = {}

    def of(self, setup: Setup) -> int:
        total = 0
        for language in setup.languages:
            place = (setup.dataset, language)
            if place not in self._known:
                self._known[place] = word_count(self._datasets[setup.dataset].vectors_path(language))
            total += min(self._known[place], setup.limit or self._known[place])
        return total


def _steps(setup: Setup) -> list[str]:
    """The steps of a setup, by the names of `Result.seconds`."""
    if setup.lm is None:
        return ["fit", "evaluate"]
    tune, trial = ["tune"] if setup.tune else [], ["trial"] if setup.mixing == "auto" else []
    return ["fit", *tune, "encode", *trial, "combine", "evaluate"]


def _shared_by(setup: Setup, step: str) -> tuple[str, str]:
    """What a step is done once for."""
    if step == "fit":
        return step, setup.family
    return (step, str(setup.stage)) if step in _BY_MODEL else (step, setup.key)


def _measured_by(setup: Setup, step: str) -> str:
    """Whose earlier results predict a step."""
    if step == "fit":
        return setup.method
    return str(setup.lm) if step in _BY_MODEL else ""
