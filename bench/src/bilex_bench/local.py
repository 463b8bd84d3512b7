"""Families on this machine, in processes that stay from one family to the next.

The parent alone writes results. Workers are started anew ("spawn"), so that threads, GPUs and memory of
one have nothing to do with those of another; each keeps its vocabularies open for the next family.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from bilex.machine import processor, total_memory
from bilex_bench.events import Event, Finished
from bilex_bench.listener import Listener
from bilex_bench.results import Result
from bilex_bench.schedule import Job, Schedule
from bilex_bench.setups import Setup
from bilex_bench.worker import Order, serve
from bilex_bench.workplace import WorkPlan

_THREADS_A_WORKER = 4
_MEMORY_A_WORKER = 6 << 30
_SECONDS_TO_LEAVE = 3
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def default_workers(device: str) -> int:
    """How many workers make sense on this machine.

    One with a GPU, which a single fit can fill. On CPUs one for every four cores, since the products of a
    fit scale well to four threads and less well beyond, and at most one for every 6 GB of memory.

    Args:
        device: "cpu" or "cuda".
    """
    if device == "cuda":
        return 1
    by_memory = total_memory() // _MEMORY_A_WORKER
    return max(1, min(processor().threads // _THREADS_A_WORKER, by_memory))


def threads_for(workers: int) -> int:
    """How many threads each of some workers may use, so that together they use every core once."""
    return max(1, processor().threads // workers)


@dataclass(eq=False)
class _Worker:
    """A worker process and what it is doing."""

    number: int
    process: BaseProcess
    pipe: Connection
    job: Job | None = field(default=None)


class LocalEngine:
    """Runs families in processes of this machine.

    Args:
        workers: How many.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, families: Sequence[Sequence[Setup]], plan: WorkPlan, listener: Listener) -> None:
        """Run families to their end.

        Args:
            families: Setups by family, in the order of work.
            plan: What the workers are told.
            listener: Takes every result and is told what happens; an error of its own ends the run.
        """
        _Run(families, plan, listener, min(self.workers, len(families))).to_the_end()


class _Run:
    def __init__(
        self, families: Sequence[Sequence[Setup]], plan: WorkPlan, listener: Listener, workers: int
    ) -> None:
        self.plan = plan
        self.listener = listener
        self.schedule = Schedule(families)
        self.size = workers
        self.workers: list[_Worker] = []

    def to_the_end(self) -> None:
        try:
            while self.schedule:
                self._hand_out()
                self._listen()
        finally:
            self._stop()

    def _hand_out(self) -> None:
        """Give every idle worker its next family, and start workers as they are needed."""
        for number in range(self.size):
            worker = next((w for w in self.workers if w.number == number), None)
            if worker is not None and worker.job is not None:
                continue
            job = self.schedule.next()
            if job is None:
                return
            if job.alone:
                self._stop()  # what idle workers hold is memory that this job may need
                worker = None
            if worker is None:
                worker = self._start(number)
            worker.job = job
            self.listener.started(number, job.setups)
            with contextlib.suppress(OSError):  # a worker that died meanwhile is found dead by _listen
                worker.pipe.send(Order(tuple(job.setups), job.attempt, job.last_attempt))

    def _start(self, number: int) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self.plan), name=f"bilex worker {number + 1}")
        with _deaf_to_ctrl_c(), _thread_variables(self.plan.threads):
            process.start()
        theirs.close()
        worker = _Worker(number, process, ours)
        self.workers.append(worker)
        return worker

    def _listen(self) -> None:
        """Wait for something to happen, and deal with all of it."""
        by_pipe: dict[object, _Worker] = {w.pipe: w for w in self.workers}
        ready = wait([*by_pipe, *(w.process.sentinel for w in self.workers)], timeout=1)  # type: ignore[list-item]
        for pipe in ready:
            if pipe in by_pipe:
                self._read(by_pipe[pipe])
        for worker in list(self.workers):
            if not worker.process.is_alive():
                self._read(worker)
                self._bury(worker)
        self.listener.idle()

    def _read(self, worker: _Worker) -> None:
        """Take all that a worker has sent."""
        while (event := _next_event(worker.pipe)) is not None and (job := worker.job) is not None:
            if isinstance(event, Result):
                self.schedule.received(job, event)
                self.listener.result(event)
            elif isinstance(event, Finished):
                worker.job = None
                self.listener.ended(worker.number)
                self._settle(job, event.out_of_memory)
            else:
                self.listener.event(worker.number, event)

    def _settle(self, job: Job, out_of_memory: str | None) -> None:
        if out_of_memory is None:
            given_up = self.schedule.finished(job)
        else:
            self.listener.retrying(job.setups, out_of_memory)
            given_up = self.schedule.lost(job, out_of_memory)
        for result in given_up:
            self.listener.result(result)

    def _bury(self, worker: _Worker) -> None:
        """A worker process has died; its family is tried once more, alone, or given up."""
        self.workers.remove(worker)
        worker.pipe.close()
        worker.process.join()
        if worker.job is None:
            return
        self.listener.ended(worker.number)
        reason = how_it_ended(worker.process.exitcode)
        if not worker.job.last_attempt:
            self.listener.retrying(worker.job.setups, reason)
        for result in self.schedule.lost(worker.job, reason):
            self.listener.result(result)

    def _stop(self) -> None:
        """End all workers; those that do not leave by themselves are killed."""
        for worker in self.workers:
            worker.pipe.close()
            if worker.process.is_alive():
                worker.process.terminate()
        deadline = time.monotonic() + _SECONDS_TO_LEAVE
        for worker in self.workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self.workers = []


def _next_event(pipe: Connection) -> Event | None:
    """What a worker has sent; None if there is nothing, or only half a message of one that was killed."""
    try:
        event: Event | None = pipe.recv() if pipe.poll() else None
    except (EOFError, OSError):
        return None
    return event


def how_it_ended(exit_code: int | None) -> str:
    """Why a worker process died, in one sentence for the results file."""
    if exit_code is not None and exit_code < 0:
        try:
            name = signal.Signals(-exit_code).name
        except ValueError:
            name = f"signal {-exit_code}"
        hint = ", as Linux does when memory runs out; use --limit for fewer words, or fewer workers" * (
            name == "SIGKILL"
        )
        return f"its worker process was killed by {name}{hint}."
    return f"its worker process ended with exit code {exit_code}."


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes started in here ignore Ctrl-C, which is for the parent to deal with."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _thread_variables(threads: int) -> Iterator[None]:
    """Libraries of processes started in here use so many threads."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
