"""Who an engine tells what happens, and the contract of engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bilex_bench.events import Said, Step
from bilex_bench.results import Result
from bilex_bench.setups import Setup
from bilex_bench.workplace import WorkPlan


class Listener(Protocol):
    """Takes results and news of a run."""

    def started(self, worker: int, setups: Sequence[Setup]) -> None:
        """A worker has begun a family."""

    def event(self, worker: int, event: Step | Said) -> None:
        """A worker tells how far it is."""

    def result(self, result: Result) -> None:
        """A result is there; when this returns it is safe."""

    def retrying(self, setups: Sequence[Setup], reason: str) -> None:
        """A family was lost and will be tried once more."""

    def ended(self, worker: int) -> None:
        """A worker has ended its family, well or not."""

    def idle(self) -> None:
        """Nothing more has happened for a moment."""


class Engine(Protocol):
    """Something that works on families: local processes, or a cluster."""

    def run(self, families: Sequence[Sequence[Setup]], plan: WorkPlan, listener: Listener) -> None:
        """Run families to their end, and give every result to the listener."""
