"""From setups to results in a file: what is done is skipped, the rest is run, stored at once and shown.

Earlier results estimate the cost of setups; that orders the work and is shown by `--dry-run`.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Self

from rich import progress
from rich.console import Console
from rich.text import Text

from bilex.core.errors import BilexError
from bilex.core.text import safe_console
from bilex_bench import engine
from bilex_bench.datasets import DataFolder
from bilex_bench.engine import Begun, Ended, Event, Job, Retried, Step
from bilex_bench.results import DIRECTIONS, Result, Setup, families, grouped
from bilex_bench.store import ResultsStore

_ALL_WORDS = 1_000_000  # per language, where a setup has no limit
_LINE_EVERY_SECONDS = 60


@dataclass(frozen=True)
class Outcome:
    """How many setups of a run were done, failed, or needed no run."""

    done: int
    failed: int
    skipped: int


def todo(setups: Iterable[Setup], store: ResultsStore | None, *, retry_failed: bool = False) -> list[Setup]:
    """The setups that are yet to be run, each experiment once."""
    known = store.keys("done" if retry_failed else None) if store else set()
    return [same[0] for key, same in grouped(setups, lambda setup: setup.key).items() if key not in known]


def check_data(setups: Iterable[Setup], folders: Mapping[str, DataFolder]) -> None:
    """Check that all vectors and dictionaries exist, before anything runs."""
    missing: list[str] = []
    for dataset, pair, seeds in dict.fromkeys((s.dataset, s.pair, s.seeds) for s in setups):
        if dataset not in folders:
            missing.append(f"data set '{dataset}' has no folder; give one with --data {dataset}=FOLDER.")
            continue
        try:
            folders[dataset].check(pair, seeds)
        except BilexError as error:
            missing.append(str(error))
    if missing:
        first, *others = dict.fromkeys(missing)
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
    by_vocabularies = grouped(groups, lambda group: (group[0].dataset, group[0].pair, group[0].limit))
    pair_by_pair = [group for same in by_vocabularies.values() for group in same]

    def magnitude(group: list[Setup]) -> float:
        seconds = cost.get(group[0].family, math.inf)
        return seconds if seconds == math.inf else max(1, round(seconds)).bit_length()

    return sorted(pair_by_pair, key=magnitude, reverse=True) if workers > 1 else pair_by_pair


def run_setups(
    setups: Sequence[Setup],
    executor: engine.Executor,
    store: ResultsStore,
    *,
    workers: int = 1,
    on_gpu: bool = False,
    retry_failed: bool = False,
) -> Outcome:
    """Run the setups that the store does not have, and store each result as soon as it exists."""
    waiting = todo(setups, store, retry_failed=retry_failed)
    costs = combined(estimate(waiting, store, on_gpu=on_gpu), attrgetter("family"))
    seconds = {family: spent for family, (spent, _) in costs.items() if spent is not None}
    memory = {family: gigabytes for family, (_, gigabytes) in costs.items() if gigabytes is not None}
    store.name(setups)
    counts = {"done": 0, "failed": 0}
    view = View(len(waiting))
    try:
        if waiting:
            order = in_order(waiting, seconds, workers)
            with view, contextlib.closing(engine.run(executor, order, memory)) as news:
                for job, event in news:
                    if isinstance(event, Result):
                        store.add(replace(event, attempts=event.attempts + store.attempts(event.setup.key)))
                        counts[event.status] += 1
                    view.show(job, event)
    except BaseException as error:
        kept = sum(counts.values())
        if kept or not isinstance(error, BilexError):
            view.log(
                f"Stopped: {kept} of {len(waiting)} setups were finished and are kept in {store.path}; "
                "run the same command to continue."
            )
        raise
    return Outcome(**counts, skipped=len({setup.key for setup in setups}) - len(waiting))


@dataclass(frozen=True)
class Estimate:
    """The expected cost of a setup."""

    setup: Setup
    # What it adds to the setups before it: a fit counts for the first of its family only, tuning for the
    # first of those that share it. None if its method or language model was never measured.
    seconds: float | None
    gigabytes: float | None  # peak memory of its process; None if it was never measured


def estimate(
    setups: Iterable[Setup], store: ResultsStore | None = None, *, on_gpu: bool = False
) -> list[Estimate]:
    """Estimate the cost of setups from earlier results on the same device.

    A step takes the median time per word of earlier results of the same method or language model. Memory is
    the most that any of them needed.
    """
    rates: dict[tuple[str, str], list[float]] = {}
    memory: dict[tuple[str, str | None], float] = {}
    for result in store.results() if store is not None else []:
        setup = result.setup
        if result.status == "done" and result.device == ("cuda" if on_gpu else "cpu"):
            for step, seconds in result.seconds.items():
                rates.setdefault(_predictor(setup, step), []).append(seconds / (setup.limit or _ALL_WORDS))
            place = setup.method, setup.lm
            memory[place] = max(memory.get(place, 0.0), result.gigabytes or 0.0)
    counted: set[tuple[str, str]] = set()
    estimates = []
    for setup in setups:
        total: float | None = 0.0
        for step in _steps(setup):
            owned, measured = (step, setup.owner(step)), rates.get(_predictor(setup, step))
            if measured is None and step in ("fit", "tune", "encode"):
                total = None
            if owned not in counted and measured and total is not None:
                counted.add(owned)
                total += statistics.median(measured) * (setup.limit or _ALL_WORDS)
        estimates.append(Estimate(setup, total, memory.get((setup.method, setup.lm)) or None))
    return estimates


def combined(
    estimates: Iterable[Estimate], key: Callable[[Setup], str]
) -> dict[str, tuple[float | None, float | None]]:
    """Seconds of setups together and most memory of any, by key; None where one was never measured."""
    found = {}
    for name, parts in grouped(estimates, lambda part: key(part.setup)).items():
        seconds = [part.seconds for part in parts if part.seconds is not None]
        gigabytes = [part.gigabytes for part in parts if part.gigabytes is not None]
        together = sum(seconds) if len(seconds) == len(parts) else None
        found[name] = together, max(gigabytes) if len(gigabytes) == len(parts) else None
    return found


def _steps(setup: Setup) -> list[str]:
    """The steps of a setup, by the names of `Result.seconds`."""
    if setup.lm is None:
        return ["fit", "evaluate"]
    tune, trial = ["tune"] if setup.tune else [], ["trial"] if setup.mixing == "auto" else []
    return ["fit", *tune, "encode", *trial, "combine", "evaluate"]


def _predictor(setup: Setup, step: str) -> tuple[str, str]:
    """The step, and the method or language model whose earlier results predict its time."""
    kinds = {setup.family: setup.method, str(setup.stage): str(setup.lm)}
    return step, kinds.get(setup.owner(step), "")


def in_a_line(result: Result) -> str:
    """A result in one line: the setup, its P@1 in both directions by CSLS, and the time."""
    name = result.setup.sentence()
    if result.status == "failed":
        return f"{name}: failed: {result.error}"
    scores = [(arrow, result.metric(name, "csls")) for arrow, name in zip("→←", DIRECTIONS, strict=True)]
    shown = ", ".join(f"{arrow} {100 * score:.1f}" for arrow, score in scores if score is not None)
    return f"{name}: {f'P@1 {shown}' if shown else 'done'} ({sum(result.seconds.values()):.1f} s)"


class View:
    """Shows the events of a run, as long as its `with` block lasts.

    On a terminal there are bars for the whole run and for each family; in a log, a line about each family
    once a minute. Results and retries are lines in both.
    """

    def __init__(self, total: int, console: Console | None = None) -> None:
        self._console = console or safe_console(stderr=True)
        self._bars = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[step]}", markup=False),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._setups = self._bars.add_task("setups", total=total, step="")
        self._total, self._done = total, 0
        self._running: dict[Job, progress.TaskID] = {}
        self._logged: dict[Job, float] = {}  # when there was a line about a family

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def log(self, sentence: str, style: str = "") -> None:
        """Write a line that stays."""
        self._console.print(Text(sentence, style=style), soft_wrap=True)

    def show(self, job: Job, event: Event | Retried) -> None:
        """Show an event of a family."""
        if isinstance(event, Result):
            self._done += 1
            self._bars.update(self._setups, completed=self._done)
            style = "red" if event.status == "failed" else ""
            self.log(f"[{self._done}/{self._total}] {in_a_line(event)}", style)
        elif isinstance(event, Begun):
            step = f"on {event.host}" if event.host else "starting"
            self._running[job] = self._bars.add_task(_name(job), total=None, step=step)
            self._logged[job] = time.monotonic()
        elif isinstance(event, Step) and job in self._running:
            self._show_step(job, event)
        elif isinstance(event, Retried):
            self.log(f"{_name(job)}: {event.reason} It is tried once more.")
        elif isinstance(event, Ended) and job in self._running:
            self._bars.remove_task(self._running.pop(job))

    def _show_step(self, job: Job, step: Step) -> None:
        task, now = self._running[job], time.monotonic()
        metrics = "".join(f", {name} {value}" for name, value in step.metrics.items())
        total = step.total or max(step.done, 1)  # rich keeps the last total where there is none
        self._bars.update(task, completed=step.done, total=total, step=step.name + metrics)
        if self._bars.disable and now - self._logged[job] >= _LINE_EVERY_SECONDS:
            self._logged[job] = now
            shown = next(one for one in self._bars.tasks if one.id == task)
            share = f" {step.done / step.total:.0%}" if step.total else ""
            self.log(f"{shown.description}: {step.name}{share} after {shown.elapsed or 0:.0f} s")


def _name(job: Job) -> str:
    first = job.setups[0]
    return f"{first.method}, {first.pair}, {first.seeds} seeds"
