"""How long work reports how far it is: bars in a terminal or a notebook, lines in a log, both on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from bilex.core.text import escape_control_characters, safe_console

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_TWO_MINUTES = 120  # seconds
_TWO_HOURS = 120  # minutes
_FIRST_LINE_SECONDS, _LINE_EVERY_SECONDS = 5, 30


class Task(Protocol):
    """One bar."""

    def advance(self, steps: float = 1, **figures: float | int | str) -> None:
        """Move on by `steps`, and show `figures` (loss, pairs, ...) beside the bar."""


class Progress(Protocol):
    """Somebody who wants to know how far the work is."""

    def task(self, name: str, total: float | None = None) -> AbstractContextManager[Task]:
        """Open a bar of `total` steps, closed at the end of the `with` block."""

    def say(self, message: str) -> None:
        """Report one sentence to the user (a choice made, a warning)."""


def duration(seconds: float) -> str:
    """Seconds in words: "40 s", "12 min", "3 h 5 min"."""
    if seconds < _TWO_MINUTES:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < _TWO_HOURS else f"{minutes // 60} h {minutes % 60} min"


class _SilentTask:
    def advance(self, steps: float = 1, **figures: float | int | str) -> None:
        """Do nothing."""


class Silent:
    """A `Progress` that shows nothing."""

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """Yield a bar that nobody sees."""
        yield _SilentTask()

    def say(self, message: str) -> None:
        """Keep quiet."""


SILENT = Silent()


class Steps:
    """One display for work of several steps: says "Step 2 of 4: ..." at the start of each.

    Args:
        shown: Where it is displayed.
        total: How many steps there are; None where that is not known.
        verbose: Whether bars also show numbers such as losses.
    """

    def __init__(self, shown: Progress, total: int | None = None, *, verbose: bool = False) -> None:
        self._shown, self._total, self._verbose = shown, total, verbose
        self._number = 0

    def step(self, name: str) -> None:
        """Begin the next step."""
        self._number += 1
        of = f" of {self._total}" if self._total else ""
        self._shown.say(f"Step {self._number}{of}: {name}")

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """A bar of the display."""
        with self._shown.task(name, total) as task:
            yield task if self._verbose else _WithoutFigures(task)

    def say(self, message: str) -> None:
        """One sentence."""
        self._shown.say(message)


class _WithoutFigures:
    def __init__(self, task: Task) -> None:
        self._task = task

    def advance(self, steps: float = 1, **figures: float | int | str) -> None:
        """Move on without showing figures."""
        self._task.advance(steps)


def begin_step(progress: Progress, name: str) -> None:
    """Report that the next step of the work begins, where steps are shown."""
    if isinstance(progress, Steps):
        progress.step(name)


def _shown(figures: dict[str, Any]) -> str:
    """Metrics as 'loss 0.1234, pairs 5,000'."""
    return ", ".join(f"{name} {_number(value)}" for name, value in figures.items())


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


class _Bar:
    """One bar of `BarProgress`."""

    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def advance(self, steps: float = 1, **figures: float | int | str) -> None:
        """Move on and show figures."""
        shown = {"figures": _shown(figures)} if figures else {}
        self._bars.update(self._task, advance=steps, **shown)  # type: ignore[arg-type]


class BarProgress:
    """Bars with figures and the time left, drawn on stderr."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[figures]}"),
            console=safe_console(stderr=True),
            transient=True,
        )
        self._open = 0

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """A bar, drawn as long as the block lasts."""
        if not self._open:
            self._bars.start()
        self._open += 1
        from rich.markup import escape

        task = self._bars.add_task(escape(escape_control_characters(name)), total=total, figures="")
        try:
            yield _Bar(self._bars, task)
        finally:
            self._bars.remove_task(task)
            self._open -= 1
            if not self._open:
                self._bars.stop()

    def say(self, message: str) -> None:
        """A line above the bars."""
        self._bars.console.print(message, soft_wrap=True, markup=False)


class _Line:
    """One task of `LineProgress`: a line now and then."""

    def __init__(self, name: str, total: float | None) -> None:
        self._name, self._total = name, total
        self._done = 0.0
        self._started = time.monotonic()
        self._next = self._started + _FIRST_LINE_SECONDS
        self._first: tuple[float, float] | None = None
        self._figures: dict[str, Any] = {}

    def advance(self, steps: float = 1, **figures: float | int | str) -> None:
        """Move on; after some seconds, and then every half minute, say how far it is and what is left."""
        self._done += steps
        self._figures.update(figures)
        now = time.monotonic()
        if self._first is None:
            self._first = now, self._done
        if now >= self._next:
            paced = self._total is None or now > self._first[0]
            self._next = now + (_LINE_EVERY_SECONDS if paced else _FIRST_LINE_SECONDS)
            share = f"{self._done / self._total:.0%}" if self._total else f"{self._done:g}"
            self.report(share, self._left(now))

    def _left(self, now: float) -> str:
        """The time left at the pace since the first step, which may have compiled something."""
        since, done = self._first or (now, self._done)
        if not self._total or not done < self._done < self._total:
            return ""
        seconds = (now - since) * (self._total - self._done) / (self._done - done)
        return f", about {duration(seconds)} left"

    def report(self, state: str, left: str = "") -> None:
        """Write one line."""
        seconds = time.monotonic() - self._started
        figures = f"; {_shown(self._figures)}" if self._figures else ""
        name = escape_control_characters(" ".join(self._name.split()))
        sys.stderr.write(f"{name}: {state} after {seconds:.1f} s{left}{figures}\n")
        sys.stderr.flush()


class LineProgress:
    """Plain lines on stderr, for logs."""

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """A task that reports its end, and before that every half minute how far it is and what is left."""
        line = _Line(name, total)
        yield line
        line.report("done")

    def say(self, message: str) -> None:
        """One line."""
        sys.stderr.write(escape_control_characters(message) + "\n")
        sys.stderr.flush()


def chosen_progress(override: Progress | bool | None) -> Progress:
    """What receives progress, by what a program asked for.

    Args:
        override: A `Progress`; True for bars, or lines where there is no terminal; False for silence; None
            for bars in a terminal or a notebook and silence elsewhere.
    """
    if override is None:
        override = sys.stderr.isatty() or "ipykernel" in sys.modules
    if override is False:
        return SILENT
    if override is not True:
        return override
    return Steps(BarProgress() if sys.stderr.isatty() or "ipykernel" in sys.modules else LineProgress())
