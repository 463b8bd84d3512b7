"""A progress display that tests read afterwards, and that interrupts work as Ctrl-C does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bilex.core.progress import Task


class Recorder:
    """A `Progress` that records names of tasks, messages and metrics.

    Args:
        stop_at: A part of the names of tasks; when one of them advances, KeyboardInterrupt is raised.
        moves: How often these tasks may advance before that.
        stop_round: Only raise where the metric "round" has this value.
    """

    def __init__(self, stop_at: str | None = None, moves: int = 0, stop_round: int | None = None) -> None:
        self.messages: list[str] = []
        self.tasks: list[str] = []
        self.metrics: list[dict[str, float | int | str]] = []
        self._stop_at, self._moves, self._stop_round = stop_at, moves, stop_round

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """Record the task's name."""
        self.tasks.append(name)
        yield _Bar(self, name)

    def log(self, message: str) -> None:
        """Record the message."""
        self.messages.append(message)

    def moved(self, name: str, metrics: dict[str, float | int | str]) -> None:
        """Record the metrics, or interrupt the work."""
        if self._stop_at is not None and self._stop_at in name:
            self._moves -= 1
            if self._moves < 0 and self._stop_round in (None, metrics.get("round")):
                raise KeyboardInterrupt
        self.metrics.append(metrics)


class _Bar:
    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder, self.name = recorder, name

    def advance(self, steps: float = 1, **metrics: float | int | str) -> None:
        """Record the metrics, or interrupt the work."""
        self.recorder.moved(self.name, metrics)
