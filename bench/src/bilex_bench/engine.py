"""The one loop of a run: families go to an executor, its events become results and news.

An executor only starts families and reports what happens: local processes (`bilex_bench.local`) or Ray
(`bilex_bench.cluster`). Which family comes next, and what becomes of one that was lost, is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from bilex_bench.events import Event, Finished, Said, Step
from bilex_bench.results import Result
from bilex_bench.schedule import Job, Schedule
from bilex_bench.setups import Setup
from bilex_bench.workplace import WorkPlan


class Listener(Protocol):
    """Takes results and news of a run."""

    def started(self, worker: int, setups: Sequence[Setup]) -> None:
        """A worker has begun a family."""

    def event(self, worker: int, event: Step | Said) -> None:
        """A worker reports how far it is."""

    def result(self, result: Result) -> None:
        """A result is there; when this returns it is safe."""

    def retrying(self, setups: Sequence[Setup], reason: str) -> None:
        """A family was lost and will be tried once more."""

    def ended(self, worker: int) -> None:
        """A worker has ended its family, well or not."""


@dataclass(frozen=True)
class Begun:
    """A family has begun; `where` says on which machine, if that is not this one."""

    where: Step | None = None


@dataclass(frozen=True)
class Lost:
    """The worker of a family has died.

    Args:
        reason: What happened, in a sentence.
        with_machine: Whether the whole machine vanished, which is no fault of the family.
    """

    reason: str
    with_machine: bool = False


class Session(Protocol):
    """An executor at work."""

    def has_room(self) -> bool:
        """Whether another family can be started now."""

    def start(self, job: Job) -> None:
        """Start a family; one that must run alone may have the whole machine."""

    def events(self) -> Iterable[tuple[Job, Event | Begun | Lost]]:
        """What has happened, after waiting a moment for it; `Finished` or `Lost` is the last of a family."""


class Executor(Protocol):
    """Where families run."""

    def session(self, plan: WorkPlan, families: int) -> AbstractContextManager[Session]:
        """Set up for a run of so many families; leaving the block ends all that still runs."""


@dataclass(frozen=True)
class Engine:
    """Runs families on an executor.

    Args:
        executor: Local processes or a cluster.
    """

    executor: Executor

    def run(self, families: Sequence[Sequence[Setup]], plan: WorkPlan, listener: Listener) -> None:
        """Run families to their end.

        Args:
            families: Setups by family, in the order of work.
            plan: What the workers need to know.
            listener: Takes every result and all news; an error of its own ends the run.

        Raises:
            BilexError: The executor cannot be set up.
        """
        run = _Run(Schedule(families), listener)
        with self.executor.session(plan, len(families)) as session:
            while run.schedule:
                while session.has_room() and (job := run.schedule.next()) is not None:
                    session.start(job)
                for job, event in session.events():
                    run.take(job, event)


class _Run:
    """What happens to jobs, passed on to the schedule and the listener."""

    def __init__(self, schedule: Schedule, listener: Listener) -> None:
        self.schedule = schedule
        self._listener = listener
        self._slots: dict[Job, int] = {}

    def take(self, job: Job, event: Event | Begun | Lost) -> None:
        if isinstance(event, Begun):
            self._begin(job, event)
        elif isinstance(event, Result):
            self.schedule.received(job, event)
            self._listener.result(event)
        elif isinstance(event, Finished):
            why = event.out_of_memory
            self._end(job, self.schedule.finished(job) if why is None else self._again(job, why))
        elif isinstance(event, Lost):
            self._end(job, self._again(job, event.reason, event.with_machine))
        elif job in self._slots:
            self._listener.event(self._slots[job], event)

    def _begin(self, job: Job, event: Begun) -> None:
        slot = next(n for n in range(len(self._slots) + 1) if n not in self._slots.values())
        self._slots[job] = slot
        self._listener.started(slot, job.setups)
        if event.where is not None:
            self._listener.event(slot, event.where)

    def _again(self, job: Job, reason: str, with_machine: bool = False) -> list[Result]:
        """Failed results if the job is given up; else it waits to be tried once more."""
        waiting = list(job.setups)
        given_up = (self.schedule.interrupted if with_machine else self.schedule.lost)(job, reason)
        if waiting and not given_up:
            self._listener.retrying(waiting, reason)
        return given_up

    def _end(self, job: Job, given_up: Sequence[Result]) -> None:
        if job in self._slots:
            self._listener.ended(self._slots.pop(job))
        for result in given_up:
            self._listener.result(result)
