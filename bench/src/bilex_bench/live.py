"""How the user sees a run: bars on a terminal, and a line per result on the terminal and in a log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich import progress
from rich.console import Console
from rich.text import Text

from bilex.core.text import safe_console
from bilex_bench.engine import Begun, Ended, Event, Job, Retried, Step
from bilex_bench.results import DIRECTIONS, Result

if TYPE_CHECKING:
    from typing import Self

_LINE_EVERY_SECONDS = 60


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
            self._update(job, event)
        elif isinstance(event, Retried):
            self.log(f"{_name(job)}: {event.reason} It is tried once more.")
        elif isinstance(event, Ended) and job in self._running:
            self._bars.remove_task(self._running.pop(job))

    def _update(self, job: Job, step: Step) -> None:
        task = self._running[job]
        metrics = "".join(f", {name} {value}" for name, value in step.metrics.items())
        total = step.total or max(step.done, 1)  # rich keeps the last total where there is none
        self._bars.update(task, completed=step.done, total=total, step=step.name + metrics)
        now = time.monotonic()
        if self._bars.disable and now - self._logged[job] >= _LINE_EVERY_SECONDS:
            self._logged[job] = now
            shown = next(one for one in self._bars.tasks if one.id == task)
            share = f" {step.done / step.total:.0%}" if step.total else ""
            self.log(f"{shown.description}: {step.name}{share} after {shown.elapsed or 0:.0f} s")


def _name(job: Job) -> str:
    first = job.setups[0]
    return f"{first.method}, {first.pair}, {first.seeds} seeds"
