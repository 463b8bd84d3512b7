"""How long work reports how far it is, without knowing who listens.

The algorithms call a `Progress`; the command line gives them one that draws bars, a program gives
them nothing and they are silent.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

_TWO_MINUTES = 120  # seconds
_TWO_HOURS = 120  # minutes


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
    from bilex.core.progress_display import BarProgress, LineProgress

    return BarProgress() if sys.stderr.isatty() or "ipykernel" in sys.modules else LineProgress()
