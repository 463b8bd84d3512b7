"""How long work reports its progress: bars in a terminal or a notebook, lines in a log, both on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bilex.core.text import escape_control_characters, safe_console

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_FIRST_LINE_SECONDS, _LINE_EVERY_SECONDS = 5, 30


class Task(Protocol):
    """One bar."""

    def advance(self, steps: float = 1, **metrics: float | int | str) -> None:
        """Move on by `steps`, and show `metrics` (loss, pairs, ...) beside the bar."""


class Progress(Protocol):
    """A receiver of progress and messages."""

    def task(self, name: str, total: float | None = None) -> AbstractContextManager[Task]:
        """Open a bar of `total` steps, closed at the end of the `with` block."""

    def log(self, message: str) -> None:
        """Report one sentence to the user (a choice made, a warning)."""


class Silent:
    """A `Progress`, and each of its tasks, that show nothing."""

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """Yield a bar that is not shown."""
        yield SILENT

    def advance(self, steps: float = 1, **metrics: float | int | str) -> None:
        """Do nothing."""

    def log(self, message: str) -> None:
        """Do nothing."""


SILENT = Silent()


def _interactive() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Display(Progress):
    """Progress on stderr: in a terminal or a notebook bars with the time left, elsewhere plain lines.

    Work of several `steps` reports "Step 2 of 4: ..." at the start of each; None where their number is not
    known. `verbose` tasks show metrics such as losses.
    """

    def __init__(self, steps: int | None = None, *, verbose: bool = False) -> None:
        self._steps, self._verbose, self._number = steps, verbose, 0
        self._bars = _rich_bars() if _interactive() else None

    def step(self, name: str) -> None:
        """Begin the next step."""
        self._number += 1
        of = f" of {self._steps}" if self._steps else ""
        self.log(f"Step {self._number}{of}: {name}")

    def log(self, message: str) -> None:
        """A line, above the bars if there are any."""
        if self._bars:
            self._bars.console.print(message, soft_wrap=True)
        else:
            sys.stderr.write(escape_control_characters(message) + "\n")
            sys.stderr.flush()

    def task(self, name: str, total: float | None = None) -> AbstractContextManager[Task]:
        """A bar, or lines that report the end, and before that every half minute how far the task is."""
        return self._bar(self._bars, name, total) if self._bars else self._line(name, total)

    @contextmanager
    def _bar(self, bars: Bars, name: str, total: float | None) -> Iterator[Task]:
        if not bars.tasks:
            bars.start()
        task = bars.add_task(escape_control_characters(name), total=total, metrics="")

        def advance(steps: float = 1, **metrics: float | int | str) -> None:
            shown: dict[str, Any] = {"metrics": _shown(metrics)} if metrics and self._verbose else {}
            bars.update(task, advance=steps, **shown)

        try:
            yield _Task(advance)
        finally:
            bars.remove_task(task)
            if not bars.tasks:
                bars.stop()

    @contextmanager
    def _line(self, name: str, total: float | None) -> Iterator[Task]:
        """The pace is that since the first step, which may have compiled something."""
        started = time.monotonic()
        due, done = started + _FIRST_LINE_SECONDS, 0.0
        first: tuple[float, float] | None = None
        latest: dict[str, Any] = {}

        def report(state: str, left: str = "") -> None:
            seconds, shown = time.monotonic() - started, f"; {_shown(latest)}" if latest else ""
            self.log(f"{' '.join(name.split())}: {state} after {seconds:.1f} s{left}{shown}")

        def advance(steps: float = 1, **metrics: float | int | str) -> None:
            nonlocal due, done, first
            done += steps
            latest.update(metrics if self._verbose else {})
            now = time.monotonic()
            first = since, before = first or (now, done)
            if now < due:
                return
            left = ""
            if total and before < done < total:
                left = f", about {duration((now - since) * (total - done) / (done - before))} left"
            due = now + (_LINE_EVERY_SECONDS if left or not total else _FIRST_LINE_SECONDS)
            report(f"{done / total:.0%}" if total else f"{done:g}", left)

        yield _Task(advance)
        report("done")


def _rich_bars() -> Bars:
    from rich import progress as rich

    return rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(elapsed_when_finished=True),
        rich.TextColumn("{task.fields[metrics]}", markup=False),
        console=safe_console(stderr=True),
        transient=True,
    )


def begin_step(progress: Progress, name: str) -> None:
    """Report that the next step of the work begins, where steps are shown."""
    if isinstance(progress, Display):
        progress.step(name)


def resolve_progress(override: Progress | bool | None) -> Progress:
    """The progress of a Python function: True shows it, None only in a terminal or a notebook."""
    if override is None:
        override = _interactive()
    if not isinstance(override, bool):
        return override
    return Display() if override else SILENT


class _Task(NamedTuple):
    advance: Callable[..., None]


def _shown(metrics: Mapping[str, Any]) -> str:
    """Metrics as 'loss 0.1234, pairs 5,000'."""
    formats = {float: ".4g", int: ","}
    return ", ".join(f"{name} {value:{formats.get(type(value), '')}}" for name, value in metrics.items())


def duration(seconds: float) -> str:
    """Seconds in words: "40 s", "12 min", "3 h 5 min"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
