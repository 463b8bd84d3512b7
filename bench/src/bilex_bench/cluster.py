"""Families on many machines, through Ray: one task per family, whose results stream back to this process.

Ray starts, places and watches the tasks. This module decides what a task needs, takes its events as they
come, and reports whether a worker or a machine was lost.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

from bilex.core.errors import BilexError, optional_library, reason_of
from bilex_bench.engine import Begun, Ended, Event, Job
from bilex_bench.local import work_on
from bilex_bench.work import Workplace, WorkPlan

HERE = "local"
_GIGABYTE = 1 << 30
_USUAL_CPUS = 4
_WAIT_SECONDS = 0.5
_SECONDS_BETWEEN_STEPS = 1.0
_SECONDS_TO_ANSWER = 10


class RayExecutor:
    """Runs families as tasks of a Ray cluster; the paths of the plan must mean the same on every machine.

    `address` is that of a running cluster, "auto" for the one this machine is part of, or "local" for a new
    one on this machine. `needs` are the arguments of `needed`.
    """

    def __init__(self, plan: WorkPlan, address: str = HERE, **needs: Any) -> None:
        self.plan, self._address, self._needs = plan, address, needs
        self._jobs: dict[Any, Job] = {}
        self._nodes: dict[Job, str] = {}

    def __enter__(self) -> Self:
        """Join the cluster."""
        with contextlib.ExitStack() as leaving:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            with optional_library("--ray", "bilex-bench[cluster]"):
                import ray
            self._ray: Any = ray
            if not self._ray.is_initialized():
                _connect(self._ray, self._address)
                leaving.callback(self._ray.shutdown)
            needs = needed(self._machines(), self.plan.device, **self._needs)
            self.plan = replace(self.plan, threads=needs["num_cpus"])
            self._task = self._ray.remote(work_on_family)
            self._leaving = leaving.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        with self._leaving:
            for stream in self._jobs:
                self._ray.cancel(stream, force=True)

    def _machines(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def has_room(self) -> bool:
        """Always: Ray queues what cannot start yet."""
        return True

    def start(self, job: Job) -> None:
        """Hand a family to Ray; one to be tried alone gets a whole machine."""
        machines = self._machines()
        gigabytes = self._needs.get("gigabytes") or job.gigabytes
        options = needed(machines, self.plan.device, **self._needs | {"gigabytes": gigabytes})
        if job.alone:
            options["num_cpus"] = _most(machines, "CPU")
        # The schedule starts lost families again, without the results that arrived.
        task = self._task.options(**options, num_returns="streaming", max_retries=0)
        self._jobs[task.remote(job, self.plan)] = job

    def events(self) -> Iterator[tuple[Job, Event]]:
        """The next event of each task that has one."""
        ready, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=_WAIT_SECONDS, fetch_local=False)
        for stream in ready:
            job = self._jobs[stream]
            event = self._next(stream, job)
            if isinstance(event, Begun):
                self._nodes[job] = event.node
            elif isinstance(event, Ended):
                del self._jobs[stream]
            yield job, event

    def _next(self, stream: Any, job: Job) -> Event:
        try:
            event: Event = self._ray.get(next(stream))
        except StopIteration:
            return Ended()
        except self._ray.exceptions.RayError as error:
            cause, known = getattr(error, "cause", None), self._ray.exceptions
            if isinstance(cause, ImportError) or isinstance(error, known.RuntimeEnvSetupError):
                raise BilexError(
                    f"a machine of the cluster cannot run bilex ({_first_sentence(cause or error)}); install "
                    "the same bilex on all of them, as docs/reference/benchmark-cluster.md says."
                ) from error
            if isinstance(cause, BilexError):
                raise cause from error
            return Ended(f"Ray reports: {_first_sentence(error)}.", self._lost_machine(job, error))
        return event

    def _lost_machine(self, job: Job, error: Exception) -> bool:
        """Whether the machine of a family was lost, rather than only its worker."""
        known = self._ray.exceptions
        if isinstance(error, known.WorkerCrashedError) and not isinstance(error, known.OutOfMemoryError):
            return self._nodes.get(job) not in {node["NodeID"] for node in self._machines()}
        return isinstance(error, known.NodeDiedError | known.LocalRayletDiedError | known.ObjectLostError)


def needed(
    machines: Sequence[dict[str, Any]],
    device: str,
    *,
    cpus: int | None = None,
    gpus: float | None = None,
    gigabytes: float | None = None,
) -> dict[str, Any]:
    """What Ray reserves for a family, limited to the largest machine, so that no family waits forever.

    By default a family gets four cores and, where there are GPUs, one of them, which families may share.
    """
    most_gpus = _most(machines, "GPU")
    if gpus is None:
        gpus = 1 if most_gpus and device != "cpu" else 0
    if gpus > most_gpus:
        raise BilexError(
            f"a family needs {gpus:g} GPUs, and the largest machine has {most_gpus:g}; give fewer --ray-gpus."
        )
    memory = int(min(gigabytes * _GIGABYTE, _most(machines, "memory"))) if gigabytes else None
    cores = int(max(1, min(cpus or _USUAL_CPUS, _most(machines, "CPU"))))
    return {"num_cpus": cores, "num_gpus": gpus, "memory": memory}


def _most(machines: Sequence[dict[str, Any]], resource: str) -> float:
    """How much of a resource the machine with most of it has."""
    return float(max((node["Resources"].get(resource, 0) for node in machines), default=0))


def work_on_family(job: Job, plan: WorkPlan) -> Iterator[Event]:
    """The Ray task: runs one family in a thread, and yields its events as they come."""
    import ray
    import torch

    yield Begun(os.uname().nodename, ray.get_runtime_context().get_node_id())
    events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
    if not _places or _places[0].plan != plan:
        _places[:] = [Workplace(plan)]

    def work() -> None:
        torch.set_num_threads(plan.threads)
        try:
            work_on(job, _places[0], events.put, seconds_between_steps=_SECONDS_BETWEEN_STEPS)
        except BaseException as error:
            events.put(error)

    threading.Thread(target=work, daemon=True).start()
    while True:
        event = events.get()
        if isinstance(event, BaseException):
            raise event
        yield event
        if isinstance(event, Ended):
            return


_places: list[Workplace] = []  # that of this process, for the next family of the same plan


def _connect(ray: Any, address: str) -> None:
    """Join a cluster, or start one on this machine."""
    options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address == HERE:
        options["include_dashboard"] = False
    on_termination = signal.getsignal(signal.SIGTERM)
    try:
        if address.startswith("ray://"):
            raise ValueError("results do not stream through Ray's client; give the address without ray://")
        host, colon, port = address.rpartition(":")
        if colon:  # fails at once if nobody listens; Ray itself would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_ANSWER).close()
        ray.init(address=address, **options)
        signal.signal(signal.SIGTERM, on_termination)  # Ray replaces the program's handler
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise BilexError(
            f"--ray {address}: no Ray cluster answers there ({_first_sentence(error)}); start one with "
            "'ray start --head', or see docs/reference/benchmark-cluster.md."
        ) from error


def _first_sentence(error: BaseException) -> str:
    return reason_of(error).partition(". ")[0]
