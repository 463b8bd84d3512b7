"""From setups to results in a file: what is done is skipped, the rest is run and kept at once.

What earlier results took estimates what setups will take; that orders the work and is shown by `--dry-run`.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import statistics
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.files import read_json
from bilex.vectors.folder import CONFIG
from bilex.vectors.formats import sniff
from bilex.vectors.reading import open_source
from bilex_bench.datasets import DataFolder
from bilex_bench.engine import News
from bilex_bench.live import View
from bilex_bench.results import Result, Setup, families
from bilex_bench.store import ResultsStore
from bilex_bench.workplace import WorkPlan, sweep

_HEADER = re.compile(rb"\s*(\d+)[ \t]+\d+[ \t\r]*\n")
_UNKNOWN = 200_000
_PACKING = 2.5  # how much longer packed text is, unpacked


@dataclass(frozen=True)
class Outcome:
    """What a run has brought."""

    done: int  # setups that were run and went well
    failed: int  # setups that were run and failed
    skipped: int  # setups that needed no run: done before, or failed before and not to be tried again


def todo(setups: Iterable[Setup], store: ResultsStore, *, retry_failed: bool = False) -> list[Setup]:
    """The setups that are yet to be run, each experiment once."""
    known = store.keys("done") if retry_failed else store.keys(None)
    found: dict[str, Setup] = {}
    for setup in setups:
        if setup.key not in known:
            found.setdefault(setup.key, setup)
    return list(found.values())


def check_data(setups: Iterable[Setup], folders: Mapping[str, DataFolder]) -> None:
    """See that all vectors and dictionaries are there, before anything runs."""
    missing: dict[str, None] = {}
    for dataset, pair, seeds in dict.fromkeys((s.dataset, s.pair, s.seeds) for s in setups):
        if dataset not in folders:
            missing[f"data set '{dataset}' has no folder; give one with --data {dataset}=FOLDER."] = None
            continue
        try:
            folders[dataset].check(pair, seeds)
        except BilexError as error:
            missing[str(error)] = None
    if missing:
        first, *others = missing
        more = f" ({len(others)} more things are missing, such as: {others[0]})" if others else ""
        raise BilexError(f"{first}{more}")


def in_order(setups: Iterable[Setup], cost: Mapping[str, float], workers: int) -> list[list[Setup]]:
    """Families in the order of work.

    One worker goes through the families pair by pair, so that vocabularies are read once. Several workers
    begin with the longest families, so that none is left with a long one when the others have ended; of
    families that cost about the same, those with the same vocabularies follow each other. Families whose
    cost is not known come first, since they may be long.
    """
    groups = families(setups)
    place: dict[tuple[str, str, int | None], int] = {}
    for group in groups:
        place.setdefault((group[0].dataset, group[0].pair, group[0].limit), len(place))

    def by_vocabulary(group: list[Setup]) -> int:
        return place[(group[0].dataset, group[0].pair, group[0].limit)]

    def about(group: list[Setup]) -> float:
        seconds = cost.get(group[0].family)
        return -math.inf if seconds is None else -(max(1, round(seconds)).bit_length())

    if workers == 1:
        return sorted(groups, key=by_vocabulary)
    return sorted(groups, key=lambda group: (about(group), by_vocabulary(group)))


def run_setups(
    setups: Sequence[Setup],
    plan: WorkPlan,
    store: ResultsStore,
    run: Callable[[Sequence[Sequence[Setup]]], Generator[News, None, None]],
    view: View,
    *,
    order: Sequence[Sequence[Setup]],
) -> Outcome:
    """Run setups and keep each result as soon as it is there."""
    store.name(setups)
    with contextlib.suppress(OSError):
        sweep(Path(plan.work))
    waiting = sum(map(len, order))
    counts = {"done": 0, "failed": 0}
    try:
        if waiting:
            with view, contextlib.closing(run(order)) as all_news:
                for job, event in all_news:
                    if isinstance(event, Result):
                        store.add(replace(event, attempts=event.attempts + store.attempts(event.setup.key)))
                        counts[event.status] += 1
                    view.show(job, event)
    except BaseException as error:
        kept = sum(counts.values())
        if kept or not isinstance(error, BilexError):
            view.say(
                f"Stopped: {kept} of {waiting} setups were finished and are kept in {store.path}; "
                "run the same command to go on."
            )
        raise
    return Outcome(**counts, skipped=len({setup.key for setup in setups}) - waiting)


@dataclass(frozen=True)
class Estimate:
    """What a setup is expected to cost."""

    setup: Setup
    # What it adds to the setups before it: a fit counts for the first of its family only, tuning for the
    # first of those that share it. None if its method or language model was never measured.
    seconds: float | None
    gigabytes: float | None  # peak memory of its process; None if it was never measured


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

    @functools.cache
    def count(dataset: str, language: str) -> int:
        return word_count(datasets[dataset].vectors_path(language))

    def words(setup: Setup) -> int:
        counts = [count(setup.dataset, language) for language in setup.languages]
        return sum(min(number, setup.limit or number) for number in counts)

    device = "cuda" if on_gpu else "cpu"
    rates: dict[tuple[str, str], list[float]] = {}
    memory: dict[tuple[str, str | None], float] = {}
    earlier = store.results() if store is not None else []
    here = [r for r in earlier if r.status == "done" and r.device == device and r.setup.dataset in datasets]
    for result in here:
        setup = result.setup
        for step, seconds in result.seconds.items():
            rates.setdefault((step, _shared(setup, step)[1]), []).append(seconds / words(setup))
        if result.gigabytes:
            place = setup.method, setup.lm
            memory[place] = max(memory.get(place, 0.0), result.gigabytes)
    counted: set[tuple[str, str]] = set()
    estimates = []
    for setup in setups:
        total: float | None = 0.0
        for step in _steps(setup):
            owner, predictor = _shared(setup, step)
            measured = rates.get((step, predictor))
            if measured is None and step in ("fit", "tune", "encode"):
                total = None
            if (step, owner) not in counted and measured and total is not None:
                counted.add((step, owner))
                total += statistics.median(measured) * words(setup)
        estimates.append(Estimate(setup, total, memory.get((setup.method, setup.lm))))
    return estimates


def by_family(estimates: Iterable[Estimate]) -> dict[str, tuple[float | None, float | None]]:
    """The seconds and the gigabytes of each family; None where a part of it was never measured."""
    found: dict[str, list[Estimate]] = {}
    for part in estimates:
        found.setdefault(part.setup.family, []).append(part)
    return {
        family: (
            all_known([part.seconds for part in parts], sum),
            all_known([part.gigabytes for part in parts], max),
        )
        for family, parts in found.items()
    }


def all_known(values: Sequence[float | None], combine: Callable[[list[float]], float]) -> float | None:
    """Values combined; None where one is missing."""
    known = [value for value in values if value is not None]
    return combine(known) if len(known) == len(values) else None


def _steps(setup: Setup) -> list[str]:
    """The steps of a setup, by the names of `Result.seconds`."""
    if setup.lm is None:
        return ["fit", "evaluate"]
    tune, trial = ["tune"] if setup.tune else [], ["trial"] if setup.mixing == "auto" else []
    return ["fit", *tune, "encode", *trial, "combine", "evaluate"]


def _shared(setup: Setup, step: str) -> tuple[str, str]:
    """What a step is done once for, and whose earlier results predict it."""
    if step == "fit":
        return setup.family, setup.method
    return (str(setup.stage), str(setup.lm)) if step in ("tune", "encode", "trial") else (setup.key, "")


def word_count(path: Path) -> int:
    """The number of words: as the file states, else guessed from its size; 200,000 if nothing helps."""
    try:
        if path.is_dir():
            return int(read_json(path / CONFIG)["words"])
        with open_source(path) as source:
            kind = sniff(source)
            if kind == "npy":
                return int(np.load(path, mmap_mode="r").shape[0])
            header = _HEADER.match(source.head)
            if header:
                return int(header[1])
            if kind != "text":
                return _UNKNOWN
            lines = source.head.count(b"\n") or 1
            unpacked = source.size * (_PACKING if source.compression else 1)
            return max(lines, round(unpacked * lines / len(source.head)))
    except (BilexError, OSError, ValueError, KeyError, TypeError):
        return _UNKNOWN
