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
from typing import Protocol

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

    def failures(self, reason: str) -> list[Result]:
        """Failed results of the setups without one."""
        return [
            Result(setup=setup, status="failed", error=reason, attempts=self.attempt, started=now())
            for setup in self.setups
        ]


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
    schedule = Schedule(Job(list(family), known.get(family[0].family)) for family in families)
    with executor:
        while schedule:
            while executor.has_room() and (job := schedule.next()) is not None:
                executor.start(job)
            for job, event in executor.events():
                if isinstance(event, Result):
                    job.setups = [setup for setup in job.setups if setup.key != event.setup.key]
                yield job, event
                if isinstance(event, Ended):
                    yield from ((job, news) for news in schedule.ended(job, event))


class Schedule:
    """The jobs of a run: waiting, running, and those to be tried once more, alone."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._waiting = deque(jobs)
        self._alone: deque[Job] = deque()
        self._running: list[Job] = []

    def __bool__(self) -> bool:
        return bool(self._waiting or self._alone or self._running)

    def next(self) -> Job | None:
        """The job to start now, if one may start; those to be tried alone come last, when nothing runs."""
        if any(job.alone for job in self._running):
            return None
        if self._waiting:
            job = self._waiting.popleft()
        elif self._alone and not self._running:
            job = self._alone.popleft()
        else:
            return None
        self._running.append(job)
        return job

    def ended(self, job: Job, event: Ended) -> Sequence[Result | Retried]:
        """Put a job back that ended without all its results, or give it up; what there is to report."""
        self._running.remove(job)
        if not job.setups:
            return []
        if event.reason is None:
            return job.failures("its worker ended without a result.")
        if event.with_machine:
            job.interruptions += 1
            if job.interruptions > _INTERRUPTIONS:
                lost = f"given up after its machine was lost {job.interruptions} times"
                return job.failures(f"{lost}: {event.reason}")
            (self._alone if job.alone else self._waiting).appendleft(job)
        elif job.alone:
            lost = f"given up after {job.attempt} attempts, the last of them with nothing beside it"
            return job.failures(f"{lost}: {event.reason}")
        else:
            job.attempt += 1
            self._alone.append(job)
        return [Retried(event.reason)]


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
