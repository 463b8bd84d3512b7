"""Where families of setups run: the options that `benchmark run` and `align-grid` share."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bilex.cli import options as opt

if TYPE_CHECKING:
    from bilex_bench.engine import Executor
    from bilex_bench.work import WorkPlan


@dataclass(frozen=True)
class Execution:
    """Options of a command line; None for the default."""

    workers: opt.PositiveOrNone = None
    ray: Annotated[str | None, {"is_flag": False, "flag_value": "local"}] = None
    ray_cpus: opt.PositiveOrNone = None
    ray_gpus: float | None = None
    ray_memory: float | None = None

    def on_gpu(self, device: str) -> bool:
        """Whether the work runs on a GPU."""
        from bilex.core.device import resolve_device

        return self.ray_gpus != 0 if self.ray else resolve_device(device).type == "cuda"

    def at_a_time(self, device: str) -> int:
        """How many families run at a time; two stands for several on Ray."""
        from bilex_bench.local import default_workers

        return 2 if self.ray else self.workers or default_workers(on_gpu=self.on_gpu(device))

    def threads(self, device: str) -> int:
        """The threads per local worker."""
        from bilex_bench.local import threads_for

        return threads_for(self.at_a_time(device))

    def cache(self, work: Path) -> str:
        """The folder for vector files in a format that opens at once: one per machine."""
        return str(Path(tempfile.gettempdir()) / "bilex-vectors" if self.ray else work / "vectors")

    def executor(self, plan: WorkPlan) -> Executor:
        """Local processes, or a cluster."""
        if self.ray is None:
            from bilex_bench.local import LocalExecutor

            return LocalExecutor(plan, self.at_a_time(plan.device))
        from bilex_bench.cluster import RayExecutor

        needs = {"cpus": self.ray_cpus, "gpus": self.ray_gpus, "gigabytes": self.ray_memory}
        return RayExecutor(plan, self.ray, **needs)
