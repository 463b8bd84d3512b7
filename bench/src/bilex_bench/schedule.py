"""Which family is worked on next, and what happens to one whose worker was lost.

The rules hold for local processes and for a cluster alike; nothing here knows how work is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from bilex_bench.results import Result, now
from bilex_bench.setups import Setup

ATTEMPTS = 2
_INTERRUPTIONS = 4  # how often a machine may vanish under a family before the family is given up


@dataclass(eq=False)
class Job:
    """A family on its way.

    Args:
        setups: Its setups without a result yet.
        attempt: Which attempt this is, counted from 1.
        interruptions: How often the machine vanished under it, through no fault of its own.
    """

    setups: list[Setup]
    attempt: int = 1
    interruptions: int = 0

    @property
    def alone(self) -> bool:
        """Whether nothing else may run beside it."""
        return self.attempt > 1

    @property
    def last_attempt(self) -> bool:
        """Whether it is given up if it fails once more."""
        return self.attempt >= ATTEMPTS


class Schedule:
    """The jobs of a run: waiting, running, and those to be tried once more, alone.

    Args:
        families: The setups to run, family by family, in the order of work.
    """

    def __init__(self, families: Sequence[Sequence[Setup]]) -> None:
        self._waiting = deque(Job(list(family)) for family in families)
        self._alone: deque[Job] = deque()
        self.running: list[Job] = []

    def __bool__(self) -> bool:
        return bool(self._waiting or self._alone or self.running)

    def next(self) -> Job | None:
        """The job to start now; None if none may start.

        Jobs to be tried alone come last, when nothing else runs.
        """
        if any(job.alone for job in self.running):
            return None
        if self._waiting:
            job = self._waiting.popleft()
        elif self._alone and not self.running:
            job = self._alone.popleft()
        else:
            return None
        self.running.append(job)
        return job

    def received(self, job: Job, result: Result) -> None:
        """A result of a job has come; it is not asked for again."""
        job.setups = [setup for setup in job.setups if setup.key != result.setup.key]

    def finished(self, job: Job) -> list[Result]:
        """A job says that nothing more comes."""
        self.running.remove(job)
        return [failure(setup, "its worker ended without a result.", job.attempt) for setup in job.setups]

    def lost(self, job: Job, reason: str) -> list[Result]:
        """A job's worker died or ran out of memory: it is tried once more, alone, or given up."""
        self.running.remove(job)
        if not job.setups:
            return []
        if job.last_attempt:
            stated = (
                f"given up after {job.attempt} attempts, the last of them with nothing beside it: {reason}"
            )
            return [failure(setup, stated, job.attempt) for setup in job.setups]
        job.attempt += 1
        self._alone.append(job)
        return []

    def interrupted(self, job: Job, reason: str) -> list[Result]:
        """A job's machine vanished, which is no fault of the job: it waits again, in front."""
        self.running.remove(job)
        job.interruptions += 1
        if job.interruptions > _INTERRUPTIONS:
            stated = f"given up after its machine was lost {job.interruptions} times: {reason}"
            return [failure(setup, stated, job.attempt) for setup in job.setups]
        if job.setups:
            (self._alone if job.alone else self._waiting).appendleft(job)
        return []


def failure(setup: Setup, reason: str, attempt: int) -> Result:
    """The result of a setup that was given up."""
    return Result(setup=setup, status="failed", error=reason, attempts=attempt, started=now())
