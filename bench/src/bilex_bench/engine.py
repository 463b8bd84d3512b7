"""The loop of a run: families go to an executor, and its events become results.

An executor only starts families and reports events: local processes (`bilex_bench.local`) or Ray
(`bilex_bench.cluster`). The order of families, and what happens to one whose worker was lost, is decided
here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from bilex.fit.report import now
from bilex_bench.results import Result, Setup
from bilex_bench.work import ATTEMPTS

_INTERRUPTIONS = 4  # how often the machine of a family may be lost before the family is given up


@dataclass(frozen=True)
class Begun:
    """A family has begun, on another machine if that is named."""

    host: str = ""
    node: str = ""  # Ray's name of the machine


@dataclass(frozen=True)
class Step:
    """The current step of a family."""

    name: str
    done: float = 0
    total: float | None = None
    metrics: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """The last event of a family, with the reason if results are missing."""

    reason: str | None = None  # one sentence: memory ran out, or its worker has died
    with_machine: bool = False  # whether the whole machine was lost, which is not the family's fault


@dataclass(frozen=True)
class Retried:
    """A family was lost and will be tried once more."""

    reason: str


@dataclass(eq=False)
class Job:
    """A family and its attempts."""

    setups: list[Setup]  # those without a result yet
    gigabytes: float | None = None  # the memory that it is expected to need
    attempt: int = 1
    interruptions: int = 0  # how often its machine was lost

    @property
    def alone(self) -> bool:
        """Whether this is the last attempt, with nothing beside it."""
        return self.attempt >= ATTEMPTS


Event = Begun | Step | Result | Ended
News = tuple[Job, Event | Retried]


class Executor(AbstractContextManager["Executor"], Protocol):
    """Where families run; leaving its `with` block stops everything that still runs."""

    def has_room(self) -> bool:
        """Whether another family can be started now."""

    def start(self, job: Job) -> None:
        """Start a family."""

    def events(self) -> Iterable[tuple[Job, Event]]:
        """New events, after waiting a moment for them."""


def run(
    executor: Executor, families: Iterable[Sequence[Setup]], memory: Mapping[str, float] | None = None
) -> Generator[News, None, None]:
    """Run families to their end; closing the generator stops everything that still runs.

    `memory` has the gigabytes that families are expected to need, by `Setup.family`.
    """
    known = memory or {}
    waiting = deque(Job(list(family), known.get(family[0].family)) for family in families)
    alone: deque[Job] = deque()  # to be tried once more: last, and with nothing beside them
    running: list[Job] = []
    with executor:
        while waiting or alone or running:
            while executor.has_room() and not any(job.alone for job in running):
                queue = waiting if waiting or running else alone
                if not queue:
                    break
                running.append(queue.popleft())
                executor.start(running[-1])
            for job, event in executor.events():
                if isinstance(event, Result):
                    job.setups = [setup for setup in job.setups if setup.key != event.setup.key]
                yield job, event
                if isinstance(event, Ended):
                    running.remove(job)
                    yield from ((job, news) for news in _ended(job, event, waiting, alone))


def _ended(job: Job, event: Ended, waiting: deque[Job], alone: deque[Job]) -> Sequence[Result | Retried]:
    """Put a job back that ended without all its results, or give it up; what there is to report."""
    if not job.setups:
        return []
    if event.reason is None:
        error = "its worker ended without a result."
    elif event.with_machine:
        job.interruptions += 1
        if job.interruptions <= _INTERRUPTIONS:
            (alone if job.alone else waiting).appendleft(job)
            return [Retried(event.reason)]
        error = f"given up after its machine was lost {job.interruptions} times: {event.reason}"
    elif job.alone:
        attempts = f"{job.attempt} attempts, the last of them with nothing beside it"
        error = f"given up after {attempts}: {event.reason}"
    else:
        job.attempt += 1
        alone.append(job)
        return [Retried(event.reason)]
    common: dict[str, Any] = {"status": "failed", "error": error, "attempts": job.attempt, "started": now()}
    return [Result(setup=setup, **common) for setup in job.setups]


class Relay:
    """A `Progress`, and each of its tasks, that sends steps as events, only a few per second."""

    def __init__(self, send: Callable[[Event], None], seconds_between: float = 0.25) -> None:
        self._send = send
        self._seconds_between = seconds_between
        self._sent = 0.0
        self._step = Step("")

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Relay]:
        """Send the beginning and the progress of a task."""
        outer, self._step = self._step, Step(name, 0, total)
        self.advance(0)
        yield self
        self._step = outer

    def advance(self, steps: float = 1, **metrics: float | int | str) -> None:
        """Send the progress, unless something was sent just now."""
        self._step = replace(self._step, done=self._step.done + steps, metrics=metrics)
        now = time.monotonic()
        if now - self._sent >= self._seconds_between:
            self._sent = now
            self._send(self._step)

    def log(self, message: str) -> None:
        """Nothing: the report of a fit has these sentences, too."""
