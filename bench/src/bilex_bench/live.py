"""A run as the user sees it: bars on a terminal, and a line for each result there and in a log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from bilex.core.text import safe_console
from bilex_bench.engine import Begun, Event, Finished, Job, Lost, Retried, Step
from bilex_bench.results import DIRECTIONS, Result

if TYPE_CHECKING:
    from typing import Self

_LINE_EVERY_SECONDS = 60


def in_a_line(result: Result) -> str:
    """A result in one line: what was run, its P@1 both ways by CSLS, and how long it took."""
    name = result.setup.sentence()
    if result.status == "failed":
        return f"{name}: failed: {result.error}"
    scores = [(arrow, result.metric(way, "csls")) for arrow, way in zip("→←", DIRECTIONS, strict=True)]
    shown = ", ".join(f"{arrow} {100 * score:.1f}" for arrow, score in scores if score is not None)
    return f"{name}: {f'P@1 {shown}' if shown else 'done'} ({sum(result.seconds.values()):.1f} s)"


class View:
    """Shows news of a run, as long as its `with` block lasts.

    On a terminal there are bars for the whole run and for each family; in a log, a line about each family
    once a minute. Results and retries are lines in both.
    """

    def __init__(self, total: int, console: Console | None = None) -> None:
        self._console = console or safe_console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[step]}", markup=False),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._setups = self._bars.add_task("setups", total=total, step="")
        self._total = total
        self._done = 0
        self._running: dict[Job, TaskID] = {}
        self._said: dict[Job, float] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def say(self, sentence: str, style: str = "") -> None:
        """One line that stays."""
        self._console.print(Text(sentence, style=style), soft_wrap=True)

    def show(self, job: Job, event: Event | Retried) -> None:
        """Show what has happened to a family."""
        if isinstance(event, Result):
            self._done += 1
            self._bars.update(self._setups, completed=self._done)
            style = "red" if event.status == "failed" else ""
            self.say(f"[{self._done}/{self._total}] {in_a_line(event)}", style)
        elif isinstance(event, Begun):
            self._running[job] = self._bars.add_task(_family_name(job), total=None, step="starting")
            self._said[job] = time.monotonic()
            if event.where is not None:
                self._move(job, event.where)
        elif isinstance(event, Step) and job in self._running:
            self._move(job, event)
        elif isinstance(event, Retried):
            self.say(f"{_family_name(job)}: {event.reason} It is tried once more.")
        elif isinstance(event, Finished | Lost) and job in self._running:
            self._bars.remove_task(self._running.pop(job))

    def _move(self, job: Job, step: Step) -> None:
        task = self._running[job]
        metrics = "".join(f", {name} {value}" for name, value in step.metrics.items())
        total = step.total or max(step.done, 1)  # rich keeps the last total where there is none
        self._bars.update(task, completed=step.done, total=total, step=step.name + metrics)
        now = time.monotonic()
        if self._bars.disable and now - self._said[job] >= _LINE_EVERY_SECONDS:
            self._said[job] = now
            shown = next(one for one in self._bars.tasks if one.id == task)
            share = f" {step.done / step.total:.0%}" if step.total else ""
            self.say(f"{shown.description}: {step.name}{share} after {shown.elapsed or 0:.0f} s")


def _family_name(job: Job) -> str:
    first = job.setups[0]
    return f"{first.method}, {first.pair}, {first.seeds} seeds"
