"""The one loop of a run: families go to an executor, and what happens to them becomes results and news.

An executor only starts families and reports what happens: local processes (`bilex_bench.local`) or Ray
(`bilex_bench.cluster`). Which family comes next, and what becomes of one that was lost, is decided here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from bilex.core.progress import Task
from bilex_bench.results import Result, Setup, now

ATTEMPTS = 2
_INTERRUPTIONS = 4  # how often a machine may vanish under a family before the family is given up


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
    """The worker of a family has died."""

    reason: str  # what happened, in a sentence
    with_machine: bool = False  # whether the whole machine vanished, which is no fault of the family


@dataclass(frozen=True)
class Retried:
    """A family was lost and will be tried once more."""

    reason: str


@dataclass(eq=False)
class Job:
    """A family on its way."""

    setups: list[Setup]  # those without a result yet
    attempt: int = 1  # counted from 1
    interruptions: int = 0  # how often the machine vanished under it, through no fault of its own

    @property
    def alone(self) -> bool:
        """Whether nothing else may run beside it."""
        return self.attempt > 1

    @property
    def last_attempt(self) -> bool:
        """Whether it is given up if it fails once more."""
        return self.attempt >= ATTEMPTS

    def failures(self, reason: str) -> list[Result]:
        """The results of the setups that have none when the family is given up."""
        return [
            Result(setup=setup, status="failed", error=reason, attempts=self.attempt, started=now())
            for setup in self.setups
        ]


Event = Begun | Step | Result | Finished | Lost
News = tuple[Job, Event | Retried]


class Executor(AbstractContextManager["Executor"], Protocol):
    """Where families run; leaving its `with` block ends all that still runs."""

    def has_room(self) -> bool:
        """Whether another family can be started now."""

    def start(self, job: Job) -> None:
        """Start a family; one that must run alone may have the whole machine."""

    def events(self) -> Iterable[tuple[Job, Event]]:
        """What has happened, after waiting a moment for it; `Finished` or `Lost` is the last of a family."""


def run(executor: Executor, families: Sequence[Sequence[Setup]]) -> Generator[News, None, None]:
    """Run families to their end; closing the iterator ends all that still runs."""
    schedule = Schedule(families)
    with executor:
        while schedule:
            while executor.has_room() and (job := schedule.next()) is not None:
                executor.start(job)
            for job, event in executor.events():
                if isinstance(event, Result):
                    schedule.received(job, event)
                yield job, event
                if isinstance(event, Finished | Lost):
                    reason = event.reason if isinstance(event, Lost) else event.out_of_memory
                    given_up = schedule.ended(job, event)
                    if reason is not None and job.setups and not given_up:
                        yield job, Retried(reason)
                    yield from ((job, result) for result in given_up)


class Schedule:
    """The jobs of a run: waiting, running, and those to be tried once more, alone."""

    def __init__(self, families: Sequence[Sequence[Setup]]) -> None:
        self._waiting = deque(Job(list(family)) for family in families)
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

    def received(self, job: Job, result: Result) -> None:
        """A result of a job has come; it is not asked for again."""
        job.setups = [setup for setup in job.setups if setup.key != result.setup.key]

    def ended(self, job: Job, event: Finished | Lost) -> list[Result]:
        """Nothing more comes of a job: if not all results came, it waits again or is given up."""
        self._running.remove(job)
        reason = event.reason if isinstance(event, Lost) else event.out_of_memory
        if not job.setups:
            return []
        if reason is None:
            return job.failures("its worker ended without a result.")
        if isinstance(event, Lost) and event.with_machine:
            job.interruptions += 1
            if job.interruptions > _INTERRUPTIONS:
                return job.failures(
                    f"given up after its machine was lost {job.interruptions} times: {reason}"
                )
            (self._alone if job.alone else self._waiting).appendleft(job)
            return []
        if job.last_attempt:
            return job.failures(
                f"given up after {job.attempt} attempts, the last of them with nothing beside it: {reason}"
            )
        job.attempt += 1
        self._alone.append(job)
        return []


class Relay:
    """A `Progress` that sends steps, not too many; sentences are left to the report of a fit."""

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
