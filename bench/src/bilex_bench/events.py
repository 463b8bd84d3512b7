"""What a worker tells while it works on a family, and a `Progress` that tells it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from bilex.progress import Task
from bilex_bench.results import Result


@dataclass(frozen=True)
class Step:
    """How far a family is: the step that runs, how much of it is done, figures beside it."""

    name: str
    done: float = 0
    total: float | None = None
    figures: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """A sentence for the user."""

    sentence: str


@dataclass(frozen=True)
class Finished:
    """Nothing more comes of a family: it is done, or `out_of_memory` says why it was dropped."""

    out_of_memory: str | None = None


Event = Step | Said | Result | Finished


class _RelayedTask:
    """One task of a `Relay`."""

    def __init__(self, relay: Relay, name: str, total: float | None) -> None:
        self.relay, self.name, self.total = relay, name, total
        self.done = 0.0

    def advance(self, steps: float = 1, **figures: float | int | str) -> None:
        """Move on, and tell it if nothing was reported for a moment."""
        self.done += steps
        self.relay.tell(Step(self.name, self.done, self.total, figures))


class Relay:
    """A `Progress` that sends events, not too many.

    Args:
        send: Takes the events.
        seconds_between: Steps that follow the last one sooner are not sent.
    """

    def __init__(self, send: Callable[[Event], None], seconds_between: float = 0.25) -> None:
        self._send = send
        self._seconds_between = seconds_between
        self._told = 0.0

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """A task whose beginning and progress are sent."""
        self.tell(Step(name, 0, total))
        yield _RelayedTask(self, name, total)

    def say(self, message: str) -> None:
        """Send a sentence."""
        self._send(Said(message))

    def tell(self, step: Step) -> None:
        """Send a step, unless the last one went only just now."""
        now = time.monotonic()
        if now - self._told >= self._seconds_between:
            self._told = now
            self._send(step)
