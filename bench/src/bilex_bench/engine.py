"""The one loop of a run: families go to an executor, and what happens to them becomes results and news.

An executor only starts families and reports what happens: local processes (`bilex_bench.local`) or Ray
(`bilex_bench.cluster`). Which family comes next, and what becomes of one that was lost, is decided here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from bilex_bench.events import Begun, Ended, Event, Finished, Lost, Moved, News, Retried, Started
from bilex_bench.results import Result
from bilex_bench.schedule import Job, Schedule
from bilex_bench.setups import Setup


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
    workers: dict[Job, int] = {}
    with executor:
        while schedule:
            while executor.has_room() and (job := schedule.next()) is not None:
                executor.start(job)
            for job, event in executor.events():
                yield from _news(schedule, workers, job, event)


def _news(schedule: Schedule, workers: dict[Job, int], job: Job, event: Event) -> Iterator[News]:
    """What an event of a job means for the run."""
    if isinstance(event, Begun):
        workers[job] = next(n for n in range(len(workers) + 1) if n not in workers.values())
        yield Started(workers[job], job.setups)
        if event.where is not None:
            yield Moved(workers[job], event.where)
    elif isinstance(event, Result):
        schedule.received(job, event)
        yield event
    elif isinstance(event, Finished | Lost):
        waiting = list(job.setups)
        reason = event.reason if isinstance(event, Lost) else event.out_of_memory
        if reason is None:
            given_up = schedule.finished(job)
        else:
            vanished = isinstance(event, Lost) and event.with_machine
            given_up = (schedule.interrupted if vanished else schedule.lost)(job, reason)
            if waiting and not given_up:
                yield Retried(waiting, reason)
        if job in workers:
            yield Ended(workers.pop(job))
        yield from given_up
    elif job in workers:
        yield Moved(workers[job], event)
