"""How long work tells how far it is, without knowing who listens.

The algorithms call a `Progress`; the command line gives them one that draws bars, a program gives
them nothing and they are silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Task(Protocol):
    """One bar."""

    def advance(self, steps: float = 1, **figures: float | int | str) -> None:
        """Move on by `steps`, and show `figures` (loss, pairs, ...) beside the bar."""


class Progress(Protocol):
    """Somebody who wants to know how far the work is."""

    def task(self, name: str, total: float | None = None) -> AbstractContextManager[Task]:
        """Open a bar of `total` steps, closed at the end of the `with` block."""

    def say(self, message: str) -> None:
        """Tell the user one sentence (a choice made, a warning)."""


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
