"""Families on many machines, through Ray: one task a family, results streaming back to this process.

Ray starts, places and watches the tasks. What is left to do here is to say what a task needs, to take its
events as they come, and to decide what happens to a family whose worker or machine was lost; a result that
has arrived is never asked for again.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bilex.errors import BilexError
from bilex_bench.events import Event, Finished, Said, Step
from bilex_bench.listener import Listener
from bilex_bench.results import Result
from bilex_bench.schedule import Job, Schedule
from bilex_bench.setups import Setup
from bilex_bench.worker import Order, follow
from bilex_bench.workplace import Workplace, WorkPlan

HERE = "local"
_GIGABYTE = 1 << 30
_USUAL_CPUS = 4
_WAIT_SECONDS = 0.5
_SECONDS_BETWEEN_STEPS = 1.0
_SECONDS_TO_ANSWER = 10


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a family is given of a machine; None for what is usual.

    Args:
        cpus: Cores, which is also how many threads it uses; usually four.
        gpus: GPUs; a fraction lets several families share one. Usually one where there are GPUs.
        gigabytes: Memory that Ray sets aside for it; usually what is estimated.
    """

    cpus: int | None = None
    gpus: float | None = None
    gigabytes: float | None = None


@dataclass(frozen=True)
class Located:
    """The first event of a task: the machine that it runs on."""

    node: str
    host: str


@dataclass(eq=False)
class _Running:
    """A task that was handed to Ray."""

    job: Job
    events: Any
    slot: int | None = None
    node: str | None = None


@dataclass(eq=False)
class RayEngine:
    """Runs families as tasks of a Ray cluster.

    Args:
        address: Of a running cluster, "auto" for the one this machine is part of, or "local" for a fresh one
            on this machine.
        needs: What a family is given.
        estimated: The gigabytes that families are thought to need, by `Setup.family`.
    """

    address: str = HERE
    needs: Needs = field(default_factory=Needs)
    estimated: Mapping[str, float] = field(default_factory=dict)

    def run(self, families: Sequence[Sequence[Setup]], plan: WorkPlan, listener: Listener) -> None:
        """Run families to their end.

        Args:
            families: Setups by family, in the order of work.
            plan: What the tasks are told; its paths must mean the same on every machine.
            listener: Takes every result and is told what happens; an error of its own ends the run.

        Raises:
            BilexError: Ray is not installed, the cluster is not there, or its machines have no bilex.
        """
        ray = _ray()
        started_here = not ray.is_initialized()
        if started_here:
            _connect(ray, self.address)
        try:
            _Run(ray, families, plan, listener, self.needs, self.estimated).to_the_end()
        finally:
            if started_here:
                ray.shutdown()


class _Run:
    def __init__(
        self,
        ray: Any,
        families: Sequence[Sequence[Setup]],
        plan: WorkPlan,
        listener: Listener,
        needs: Needs,
        estimated: Mapping[str, float],
    ) -> None:
        self.ray = ray
        self.listener = listener
        self.schedule = Schedule(families)
        self.wished, self.estimated = needs, estimated
        self.threads = fitting(needs, _alive(ray), plan.device).cpus or 1
        self.plan = replace(plan, threads=self.threads)
        self.task = ray.remote(work_on_family)
        self.tasks: list[_Running] = []

    def to_the_end(self) -> None:
        try:
            while self.schedule:
                self._hand_out()
                self._listen()
        finally:
            for task in self.tasks:
                self.ray.cancel(task.events, force=True)

    def _hand_out(self) -> None:
        """Hand every family that may run to Ray, which starts them as machines become free."""
        while (job := self.schedule.next()) is not None:
            order = Order(tuple(job.setups), job.attempt, job.last_attempt)
            events = self.task.options(**self._options(job)).remote(order, self.plan)
            self.tasks.append(_Running(job, events))

    def _options(self, job: Job) -> dict[str, Any]:
        """What Ray is told about a family; one to be tried alone asks for a whole machine."""
        nodes = _alive(self.ray)
        gigabytes = self.wished.gigabytes or self.estimated.get(job.name)
        needs = fitting(replace(self.wished, gigabytes=gigabytes), nodes, self.plan.device)
        return {
            "num_cpus": _most(nodes, "CPU") if job.alone else needs.cpus,
            "num_gpus": needs.gpus,
            "memory": int(needs.gigabytes * _GIGABYTE) if needs.gigabytes else None,
            "num_returns": "streaming",
            "max_retries": 0,  # lost families are handed out again by the schedule, without what arrived
        }

    def _listen(self) -> None:
        by_events = {task.events: task for task in self.tasks}
        ready, _ = self.ray.wait(list(by_events), num_returns=1, timeout=_WAIT_SECONDS, fetch_local=False)
        for events in ready:
            self._take(by_events[events])
        self.listener.idle()

    def _take(self, task: _Running) -> None:
        """One event of a task, or its end."""
        try:
            event = self.ray.get(next(task.events))
        except StopIteration:
            self._settle(task, self.schedule.finished(task.job))
            return
        except self.ray.exceptions.RayError as error:
            self._settle(task, self._lost(task, error))
            return
        if isinstance(event, Located):
            task.node = event.node
            task.slot = self._free_slot()
            self.listener.started(task.slot, task.job.setups)
            self.listener.event(task.slot, Step(f"on {event.host}", figures={"node": event.node}))
        elif isinstance(event, Result):
            self.schedule.received(task.job, event)
            self.listener.result(event)
        elif isinstance(event, Finished) and event.out_of_memory is not None:
            self.listener.retrying(task.job.setups, event.out_of_memory)
            self._settle(task, self.schedule.lost(task.job, event.out_of_memory))
        elif isinstance(event, Step | Said) and task.slot is not None:
            self.listener.event(task.slot, event)

    def _settle(self, task: _Running, given_up: Sequence[Result]) -> None:
        self.tasks.remove(task)
        if task.slot is not None:
            self.listener.ended(task.slot)
        for result in given_up:
            self.listener.result(result)

    def _lost(self, task: _Running, error: Exception) -> list[Result]:
        """Decide about a family whose task broke off.

        Raises:
            BilexError: It broke off in a way that every other task will too.
        """
        exceptions = self.ray.exceptions
        cause = getattr(error, "cause", None)
        if isinstance(cause, ImportError) or isinstance(error, exceptions.RuntimeEnvSetupError):
            raise BilexError(
                f"a machine of the cluster cannot run bilex ({_first_sentence(cause or error)}); install the "
                "same bilex on all of them, as docs/benchmark-cluster.md tells."
            ) from error
        if isinstance(cause, BilexError):
            raise cause
        reason = f"Ray says: {_first_sentence(error)}."
        if not task.job.last_attempt or not isinstance(error, exceptions.WorkerCrashedError):
            self.listener.retrying(task.job.setups, reason)
        if self._is_own_fault(task, error):
            return self.schedule.lost(task.job, reason)
        return self.schedule.interrupted(task.job, reason)

    def _is_own_fault(self, task: _Running, error: Exception) -> bool:
        """Whether the family itself brought its worker down, rather than going down with its machine."""
        exceptions = self.ray.exceptions
        if isinstance(error, exceptions.OutOfMemoryError):
            return True
        if not isinstance(error, exceptions.WorkerCrashedError):
            return not isinstance(
                error, exceptions.NodeDiedError | exceptions.LocalRayletDiedError | exceptions.ObjectLostError
            )
        return task.node in {node["NodeID"] for node in _alive(self.ray)}

    def _free_slot(self) -> int:
        taken = {task.slot for task in self.tasks}
        return next(slot for slot in range(len(self.tasks) + 1) if slot not in taken)


def fitting(needs: Needs, nodes: Sequence[dict[str, Any]], device: str) -> Needs:
    """What a family is given, cut down to what the largest machine has, so that no family waits forever.

    Args:
        needs: What is wished.
        nodes: The machines, as `ray.nodes()` describes them.
        device: "auto", "cpu" or "cuda".

    Raises:
        BilexError: GPUs are wished and no machine has one.
    """
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


def work_on_family(order: Order, plan: WorkPlan) -> Iterator[Event | Located]:
    """The Ray task: works on one family in a thread, and gives its events as they come."""
    import ray

    context = ray.get_runtime_context()
    yield Located(context.get_node_id(), os.uname().nodename)
    events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
    place = workplace_for(plan)

    def work() -> None:
        import torch

        torch.set_num_threads(plan.threads)
        try:
            follow(order, place, events.put, seconds_between_steps=_SECONDS_BETWEEN_STEPS)
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
    """Ray itself, told not to call home.

    Raises:
        BilexError: It is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise BilexError(
            "--ray needs Ray, which is not installed here; run: pip install 'bilex-bench[cluster]'"
        ) from error
    return ray


def _connect(ray: Any, address: str) -> None:
    """Join a cluster, or start one on this machine.

    Raises:
        BilexError: There is none at that address.
    """
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
            "'ray start --head', or see docs/benchmark-cluster.md."
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
