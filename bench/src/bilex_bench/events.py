"""What happens to families on their way from a worker to the results file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from bilex.core.progress import Task
from bilex_bench.results import Result
from bilex_bench.setups import Setup


@dataclass(frozen=True)
class Step:
    """How far a family is: the step that runs, how much of it is done, metrics beside it."""

    name: str
    done: float = 0
    total: float | None = None
    metrics: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Begun:
    """A family has begun; `where` says on which machine, if that is not this one."""

    where: Step | None = None


@dataclass(frozen=True)
class Finished:
    """Nothing more comes of a family: it is done, or `out_of_memory` says why it was dropped."""

    out_of_memory: str | None = None


@dataclass(frozen=True)
class Lost:
    """The worker of a family has died.

    Args:
        reason: What happened, in a sentence.
        with_machine: Whether the whole machine vanished, which is no fault of the family.
    """

    reason: str
    with_machine: bool = False


Event = Begun | Step | Result | Finished | Lost


@dataclass(frozen=True)
class Started:
    """A worker, counted from 0, works on a family from now on."""

    worker: int
    setups: Sequence[Setup]


@dataclass(frozen=True)
class Moved:
    """A worker has come to a step, or further in it."""

    worker: int
    step: Step


@dataclass(frozen=True)
class Retried:
    """A family was lost and will be tried once more."""

    setups: Sequence[Setup]
    reason: str


@dataclass(frozen=True)
class Ended:
    """A worker has ended its family, well or not."""

    worker: int


News = Started | Moved | Result | Retried | Ended


class Relay:
    """A `Progress` that sends steps, not too many; sentences are left to the report of a fit.

    Args:
        send: Takes the steps.
        seconds_between: Steps that follow the last one sooner are not sent.
    """

    def __init__(self, send: Callable[[Event], None], seconds_between: float = 0.25) -> None:
        self._send = send
        self._seconds_between = seconds_between
        self._sent = 0.0

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """A task whose beginning and progress are sent."""
        task = _RelayedTask(self, name, total)
        task.advance(0)
        yield task

    def say(self, message: str) -> None:
        """Nothing."""

    def send(self, step: Step) -> None:
        """Send a step, unless the last one went only just now."""
        now = time.monotonic()
        if now - self._sent >= self._seconds_between:
            self._sent = now
            self._send(step)


@dataclass
class _RelayedTask:
    """One task of a `Relay`."""

    relay: Relay
    name: str
    total: float | None
    done: float = 0.0

    def advance(self, steps: float = 1, **metrics: float | int | str) -> None:
        """Move on."""
        self.done += steps
        self.relay.send(Step(self.name, self.done, self.total, metrics))
