"""A run as the user sees it: a live picture on a terminal, lines in a log."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bilex_bench.engine import Listener
from bilex_bench.events import Said, Step
from bilex_bench.results import Result
from bilex_bench.setups import Setup

if TYPE_CHECKING:
    from typing import Self

_SHOWN_RESULTS = 8
_LINE_EVERY_SECONDS = 60


class View(Listener, Protocol):
    """A listener that shows what it hears, as long as its `with` block lasts."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take down what is shown."""

    def say(self, sentence: str) -> None:
        """Tell the user a sentence that stays."""


def view_for(total: int) -> View:
    """The live picture if stderr is a terminal, lines otherwise.

    Args:
        total: How many setups will run.
    """
    return LiveView(total) if sys.stderr.isatty() else LineView(total)


def in_a_line(result: Result) -> str:
    """A result in one line: what was run, its P@1 both ways by CSLS, and how long it took."""
    name = result.setup.sentence()
    if result.status == "failed":
        return f"{name}: failed: {result.error}"
    figures = ", ".join(
        f"{arrow} {100 * figure:.1f}"
        for arrow, figure in (
            ("→", result.figure("forward", "csls")),
            ("←", result.figure("backward", "csls")),
        )
        if figure is not None
    )
    return f"{name}: P@1 {figures} ({sum(result.seconds.values()):.1f} s)"


@dataclass
class _Running:
    """What a worker is doing."""

    name: str
    setups: int
    step: Step = field(default_factory=lambda: Step("starting"))
    since: float = field(default_factory=time.monotonic)
    stated: float = field(default_factory=time.monotonic)


def _family_name(setups: Sequence[Setup]) -> str:
    first = setups[0]
    return f"{first.method}, {first.pair}, {first.seeds} seeds"


class _Following:
    """What both views do: remember what each worker is doing.

    Args:
        total: How many setups will run.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._running: dict[int, _Running] = {}

    def say(self, sentence: str) -> None:
        """One line."""
        sys.stderr.write(sentence + "\n")
        sys.stderr.flush()

    def started(self, worker: int, setups: Sequence[Setup]) -> None:
        """A family joins the running ones."""
        self._running[worker] = _Running(_family_name(setups), len(setups))

    def retrying(self, setups: Sequence[Setup], reason: str) -> None:
        """Why a family is to be tried once more."""
        self.say(f"{_family_name(setups)}: {reason} It is tried once more.")

    def ended(self, worker: int) -> None:
        """A family leaves the running ones."""
        self._running.pop(worker, None)


class LineView(_Following):
    """Plain lines on stderr: one for each result, and now and then how far a long step is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def event(self, worker: int, event: Step | Said) -> None:
        """A line if none was written about this family for a minute."""
        running = self._running.get(worker)
        if running is None or isinstance(event, Said):
            return
        now = time.monotonic()
        if now - running.stated >= _LINE_EVERY_SECONDS:
            running.stated = now
            share = f" {event.done / event.total:.0%}" if event.total else ""
            self.say(f"{running.name}: {event.name}{share} after {now - running.since:.0f} s")

    def result(self, result: Result) -> None:
        """The result in a line."""
        self._done += 1
        self.say(f"[{self._done}/{self._total}] {in_a_line(result)}")


class LiveView(_Following):
    """A picture on a terminal: a bar for the whole run, the running families, the last results.

    Args:
        total: How many setups will run.
        console: Where to draw; stderr unless given.
    """

    def __init__(self, total: int, console: Console | None = None) -> None:
        super().__init__(total)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            expand=True,
        )
        self._task = self._bar.add_task("setups", total=total, left="")
        self._begun = time.monotonic()
        self._last: deque[Result] = deque(maxlen=_SHOWN_RESULTS)
        self._console = console or Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._live = Live(
            console=self._console, get_renderable=self._picture, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def say(self, sentence: str) -> None:
        """A line above the picture."""
        self._console.print(Text(sentence), soft_wrap=True)

    def event(self, worker: int, event: Step | Said) -> None:
        """Show the step that runs."""
        if worker in self._running and isinstance(event, Step):
            self._running[worker].step = event

    def result(self, result: Result) -> None:
        """Show the result, move the bar."""
        self._last.append(result)
        self._done += 1
        if result.status == "failed":
            self._console.print(Text(in_a_line(result), style="red"), soft_wrap=True)
        self._bar.update(self._task, advance=1, left=self._left())

    def _left(self) -> str:
        """The time left if the rest goes as what is done went."""
        if self._done >= self._total:
            return ""
        seconds = (time.monotonic() - self._begun) / self._done * (self._total - self._done)
        minutes = round(seconds / 60)
        hours = f"{minutes // 60} h " if minutes >= 60 else ""
        return f"about {hours}{minutes % 60} min left" if minutes else "less than a minute left"

    def _picture(self) -> RenderableType:
        return Group(self._bar, self._running_table(), self._results_table())

    def _running_table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for worker, running in sorted(self._running.items()):
            step = running.step
            figures = ", ".join(f"{name} {value}" for name, value in step.figures.items())
            bar = ProgressBar(total=step.total, completed=step.done, width=20) if step.total else Text("")
            seconds = f"{time.monotonic() - running.since:.0f} s"
            table.add_row(f"{worker + 1}", running.name, step.name, bar, figures, seconds)
        return table

    def _results_table(self) -> Table:
        table = Table("last results", "→ P@1", "← P@1", "seconds", box=None, padding=(0, 2))
        for result in list(self._last):
            figures = [result.figure(direction, "csls") for direction in ("forward", "backward")]  # type: ignore[arg-type]
            shown = ["failed" if f is None else f"{100 * f:.1f}" for f in figures]
            table.add_row(result.setup.sentence(), *shown, f"{sum(result.seconds.values()):.1f}")
        return table
