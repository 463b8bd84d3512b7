"""Families on many machines, through Ray: one task a family, results streaming back to this process.

Ray starts, places and watches the tasks. What is left to do here is to say what a task needs, to take its
events as they come, and to decide what happens to a family whose worker or machine was lost; a result that
has arrived is never asked for again.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bilex.core.errors import BilexError
from bilex_bench.engine import Begun, Event, Finished, Job, Lost, Step
from bilex_bench.local import work_on
from bilex_bench.workplace import Workplace, WorkPlan

if TYPE_CHECKING:
    from typing import Self

HERE = "local"
_GIGABYTE = 1 << 30
_USUAL_CPUS = 4
_WAIT_SECONDS = 0.5
_SECONDS_BETWEEN_STEPS = 1.0
_SECONDS_TO_ANSWER = 10


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a family is given of a machine; None for what is usual."""

    cpus: int | None = None  # cores, which is also how many threads it uses; usually four
    # GPUs; a fraction lets several families share one. Usually one where there are GPUs
    gpus: float | None = None
    gigabytes: float | None = None  # memory that Ray sets aside for it; usually what is estimated


class RayExecutor:
    """Runs families as tasks of a Ray cluster; the paths of the plan must mean the same on every machine.

    `address` is that of a running cluster, "auto" for the one this machine is part of, or "local" for a fresh
    one on this machine; `estimated` has the gigabytes that families are thought to need, by `Setup.family`.
    """

    def __init__(
        self,
        plan: WorkPlan,
        address: str = HERE,
        needs: Needs | None = None,
        estimated: Mapping[str, float] | None = None,
    ) -> None:
        self._plan, self._address = plan, address
        self._needs, self._estimated = needs or Needs(), estimated or {}
        self._jobs: dict[Any, Job] = {}
        self._nodes: dict[Job, str] = {}

    def __enter__(self) -> Self:
        """Join the cluster."""
        with contextlib.ExitStack() as leaving:
            self._ray = _ray()
            if not self._ray.is_initialized():
                _connect(self._ray, self._address)
                leaving.callback(self._ray.shutdown)
            threads = fitting(self._needs, _alive(self._ray), self._plan.device).cpus or 1
            self._plan = replace(self._plan, threads=threads)
            self._task = self._ray.remote(work_on_family)
            self._leaving = leaving.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        with self._leaving:
            for stream in self._jobs:
                self._ray.cancel(stream, force=True)

    def has_room(self) -> bool:
        """Always: Ray keeps what cannot start yet."""
        return True

    def start(self, job: Job) -> None:
        """Hand a family to Ray; one to be tried alone asks for a whole machine."""
        nodes = _alive(self._ray)
        gigabytes = self._needs.gigabytes or self._estimated.get(job.setups[0].family)
        needs = fitting(replace(self._needs, gigabytes=gigabytes), nodes, self._plan.device)
        options = {
            "num_cpus": _most(nodes, "CPU") if job.alone else needs.cpus,
            "num_gpus": needs.gpus,
            "memory": int(needs.gigabytes * _GIGABYTE) if needs.gigabytes else None,
            "num_returns": "streaming",
            "max_retries": 0,  # lost families are handed out again by the schedule, without what arrived
        }
        self._jobs[self._task.options(**options).remote(job, self._plan)] = job

    def events(self) -> Iterator[tuple[Job, Event]]:
        """The next event of each task that has one."""
        ready, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=_WAIT_SECONDS, fetch_local=False)
        for stream in ready:
            job = self._jobs[stream]
            event = self._next(stream, job)
            if isinstance(event, Finished | Lost):
                del self._jobs[stream]
            yield job, event

    def _next(self, stream: Any, job: Job) -> Event:
        try:
            event: Event = self._ray.get(next(stream))
        except StopIteration:
            return Finished()
        except self._ray.exceptions.RayError as error:
            return self._lost(job, error)
        if isinstance(event, Begun) and event.where is not None:
            self._nodes[job] = str(event.where.metrics["node"])
        return event

    def _lost(self, job: Job, error: Exception) -> Lost:
        """Why a task broke off."""
        cause = getattr(error, "cause", None)
        if isinstance(cause, ImportError) or isinstance(error, self._ray.exceptions.RuntimeEnvSetupError):
            raise BilexError(
                f"a machine of the cluster cannot run bilex ({_first_sentence(cause or error)}); install the "
                "same bilex on all of them, as docs/reference/benchmark-cluster.md says."
            ) from error
        if isinstance(cause, BilexError):
            raise cause
        return Lost(f"Ray says: {_first_sentence(error)}.", with_machine=self._machine_vanished(job, error))

    def _machine_vanished(self, job: Job, error: Exception) -> bool:
        """Whether a family went down with its machine, rather than bringing its worker down itself."""
        known = self._ray.exceptions
        if isinstance(error, known.WorkerCrashedError) and not isinstance(error, known.OutOfMemoryError):
            return self._nodes.get(job) not in {node["NodeID"] for node in _alive(self._ray)}
        return isinstance(error, known.NodeDiedError | known.LocalRayletDiedError | known.ObjectLostError)


def fitting(needs: Needs, nodes: Sequence[dict[str, Any]], device: str) -> Needs:
    """What a family is given, cut down to what the largest machine has, so that no family waits forever."""
    gpus = needs.gpus
    if gpus is None:
        gpus = 1 if _most(nodes, "GPU") and device != "cpu" else 0
    if gpus > _most(nodes, "GPU"):
        raise BilexError(
            f"a family is to have {gpus:g} GPUs, and the largest machine has {_most(nodes, 'GPU'):g}."
        )
    gigabytes = needs.gigabytes
    if gigabytes is not None:
        gigabytes = min(gigabytes, _most(nodes, "memory") / _GIGABYTE)
    cpus = int(max(1, min(needs.cpus or _USUAL_CPUS, _most(nodes, "CPU"))))
    return Needs(cpus=cpus, gpus=gpus, gigabytes=gigabytes)


def _most(nodes: Sequence[dict[str, Any]], resource: str) -> float:
    """How much of a resource the machine with most of it has."""
    return float(max((node["Resources"].get(resource, 0) for node in nodes), default=0))


def work_on_family(job: Job, plan: WorkPlan) -> Iterator[Event]:
    """The Ray task: works on one family in a thread, and gives its events as they come."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    yield Begun(Step(f"on {os.uname().nodename}", metrics={"node": node}))
    events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
    place = workplace_for(plan)

    def work() -> None:
        import torch

        torch.set_num_threads(plan.threads)
        try:
            work_on(job, place, events.put, seconds_between_steps=_SECONDS_BETWEEN_STEPS)
        except BaseException as error:
            events.put(error)

    threading.Thread(target=work, daemon=True).start()
    while True:
        event = events.get()
        if isinstance(event, BaseException):
            raise event
        yield event
        if isinstance(event, Finished):
            return


_places: list[Workplace] = []


def workplace_for(plan: WorkPlan) -> Workplace:
    """The workplace of this process, with its open vocabularies; a new one where the plan is another."""
    if not _places or _places[0].plan != plan:
        _places[:] = [Workplace(plan)]
    return _places[0]


def _ray() -> Any:
    """Ray itself, kept from calling home."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise BilexError(
            "--ray needs Ray, which is not installed here; run: pip install 'bilex-bench[cluster]'"
        ) from error
    return ray


def _connect(ray: Any, address: str) -> None:
    """Join a cluster, or start one on this machine."""
    options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address == HERE:
        options["include_dashboard"] = False
    on_termination = signal.getsignal(signal.SIGTERM)
    try:
        _knock(address)
        ray.init(address=address, **options)
        signal.signal(signal.SIGTERM, on_termination)  # Ray puts its own in the place of the program's
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise BilexError(
            f"--ray {address}: no Ray cluster answers there ({_first_sentence(error)}); start one with "
            "'ray start --head', or see docs/reference/benchmark-cluster.md."
        ) from error


def _knock(address: str) -> None:
    """Fail at once where nobody is at an address; Ray itself would try for minutes."""
    if address.startswith("ray://"):
        raise ValueError("results do not stream through Ray's client; give the address without ray://")
    host, colon, port = address.rpartition(":")
    if colon:
        socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_ANSWER).close()


def _alive(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _first_sentence(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].partition(". ")[0].rstrip(".:") if lines else type(error).__name__
