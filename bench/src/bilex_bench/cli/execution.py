"""Where families of setups run, as the command line says: the options of `benchmark run` and `align-grid`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bilex_bench.engine import Executor
    from bilex_bench.work import WorkPlan

_HERE = "local"


def ray_options(unit: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--ray, --ray-cpus and --ray-gpus of a command whose unit of work is called so."""

    def added(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option(
                "--ray-gpus",
                "gpus",
                type=float,
                help=f"GPUs per {unit}, such as 0.5, or 0; 1 by default, where there are GPUs.",
            ),
            click.option(
                "--ray-cpus", "cpus", type=click.IntRange(min=1), help=f"Cores per {unit}; 4 by default."
            ),
            click.option(
                "--ray",
                is_flag=False,
                flag_value=_HERE,
                metavar="[ADDRESS]",
                help="Run on Ray: the cluster at ADDRESS, 'auto' for the one this machine is part of, or a "
                "fresh one on this machine. Needs bilex-bench[cluster]; see "
                "docs/reference/benchmark-cluster.md.",
            ),
        ):
            command = option(command)
        return command

    return added


@dataclass(frozen=True)
class Execution:
    """Who does the work."""

    device: str  # "auto", "cpu" or "cuda"
    workers: int | None  # local processes; None for as many as make sense
    ray: str | None  # the address of a Ray cluster; None for local processes
    cpus: int | None  # per unit of work, on Ray, like the next two; None for what is usual
    gpus: float | None
    gigabytes: float | None = None

    @cached_property
    def on_gpu(self) -> bool:
        """Whether the work runs on a GPU."""
        from bilex.core.device import resolve_device

        return self.gpus != 0 if self.ray else resolve_device(self.device).type == "cuda"

    @property
    def at_a_time(self) -> int:
        """How many families run at a time; with Ray only that it may be several is known."""
        from bilex_bench.local import default_workers

        return 2 if self.ray is not None else self.workers or default_workers(on_gpu=self.on_gpu)

    @property
    def threads(self) -> int:
        """How many threads a local worker may use."""
        from bilex_bench.local import threads_for

        return threads_for(self.at_a_time)

    def cache(self, work: Path) -> str:
        """The folder for vector files in a form that opens at once: one per machine."""
        return str(Path(tempfile.gettempdir()) / "bilex-vectors" if self.ray else work / "vectors")

    def executor(self, plan: WorkPlan) -> Executor:
        """Local processes, or a cluster."""
        if self.ray is None:
            from bilex_bench.local import LocalExecutor

            return LocalExecutor(plan, self.at_a_time)
        from bilex_bench.cluster import Needs, RayExecutor

        needs = Needs(cpus=self.cpus, gpus=self.gpus, gigabytes=self.gigabytes)
        return RayExecutor(plan, self.ray, needs)
