"""The process that fits or retrains: an order on stdin, progress and result on stdout, as JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.progress import Task

_SECONDS_BETWEEN = 0.1
_NICENESS = 5


def report(**what: Any) -> None:
    """One line to the server."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class _ReportedTask:
    def __init__(self, name: str, total: float | None) -> None:
        self._name, self._total, self._done, self._told = name, total, 0.0, 0.0
        report(phase=name, done=0, total=total)

    def advance(self, steps: float = 1, **figures: float | int | str) -> None:
        """Move on, and report it if the last report is a while ago."""
        self._done += steps
        if time.monotonic() - self._told > _SECONDS_BETWEEN:
            self._told = time.monotonic()
            shown = ", ".join(f"{name} {value}" for name, value in figures.items())
            report(phase=self._name, done=self._done, total=self._total, message=shown)


class ReportedProgress:
    """A `Progress` that the server hears of."""

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """A phase of the work."""
        yield _ReportedTask(name, total)

    def say(self, message: str) -> None:
        """A line of its own."""
        report(message=message)


def _end_with_the_server() -> None:
    """Wait for the end of stdin, which the server holds open while it lives."""
    sys.stdin.read()
    os._exit(1)


def main() -> int:
    """Do what stdin orders.

    Returns:
        The exit code: 0 done, 2 refused with a sentence.
    """
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    try:
        if order["kind"] == "learn":
            from bilex_workbench.learning import retrain

            result = retrain(order, ReportedProgress(), report)
        else:
            from bilex_workbench.first_fit import fit

            result = fit(order, ReportedProgress())
    except BilexError as error:
        report(error=str(error))
        return 2
    except MemoryError:
        report(error="There is not enough memory for this; use fewer words.")
        return 2
    report(result=result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
