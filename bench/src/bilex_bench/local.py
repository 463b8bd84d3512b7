"""Families on this machine, in processes that stay from one family to the next.

The parent alone writes results. Workers are started anew ("spawn"), so that threads, GPUs and memory of
one have nothing to do with those of another; each keeps its vocabularies open for the next family.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import TYPE_CHECKING, Any

from bilex.core.machine import processor, total_memory
from bilex_bench.engine import Begun, Event, Finished, Job, Lost, Relay
from bilex_bench.workplace import Workplace, WorkPlan

if TYPE_CHECKING:
    from typing import Self


_THREADS_A_WORKER = 4
_MEMORY_A_WORKER = 6 << 30
_SECONDS_TO_LEAVE = 3
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_TERMINATED = 143


def default_workers(*, on_gpu: bool) -> int:
    """How many workers make sense on this machine.

    One with a GPU, which a single fit can fill. On CPUs one for every four cores, since the products of a
    fit scale well to four threads and less well beyond, and at most one for every 6 GB of memory.
    """
    if on_gpu:
        return 1
    by_memory = total_memory() // _MEMORY_A_WORKER
    return max(1, min(processor().threads // _THREADS_A_WORKER, by_memory))


def threads_for(workers: int) -> int:
    """How many threads each of some workers may use, so that together they use every core once."""
    return max(1, processor().threads // workers)


@dataclass(eq=False)
class _Worker:
    """A worker process and what it is doing."""

    process: BaseProcess
    pipe: Connection
    job: Job | None = None


class LocalExecutor:
    """Runs families in processes of this machine, started as they are needed, so many at a time."""

    def __init__(self, plan: WorkPlan, workers: int) -> None:
        self._plan, self._size = plan, workers
        self._workers: list[_Worker] = []
        self._begun: list[Job] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def has_room(self) -> bool:
        """Whether a worker has nothing to do, or could be started."""
        return sum(worker.job is not None for worker in self._workers) < self._size

    def start(self, job: Job) -> None:
        """Give a family to an idle worker, or to a new one."""
        if job.alone:
            self.stop()  # what idle workers hold is memory that this job may need
        worker = next((w for w in self._workers if w.job is None), None) or self._new_worker()
        worker.job = job
        self._begun.append(job)
        with contextlib.suppress(OSError):  # a worker that died meanwhile is found dead by `events`
            worker.pipe.send(job)

    def events(self) -> Iterator[tuple[Job, Event]]:
        """What workers have sent, and which of them have died."""
        while self._begun:
            yield self._begun.pop(0), Begun()
        waited: list[Any] = [part for w in self._workers for part in (w.pipe, w.process.sentinel)]
        wait(waited, timeout=1)
        for worker in list(self._workers):
            dead = not worker.process.is_alive()
            while (job := worker.job) is not None and (event := _next_event(worker.pipe)) is not None:
                if isinstance(event, Finished):
                    worker.job = None
                yield job, event
            if dead:
                self._workers.remove(worker)
                worker.pipe.close()
                worker.process.join()
                if worker.job is not None:
                    yield worker.job, Lost(how_it_ended(worker.process.exitcode))

    def stop(self) -> None:
        """End all workers; those that do not leave by themselves are killed."""
        for worker in self._workers:
            worker.pipe.close()
            if worker.process.is_alive():
                worker.process.terminate()
        deadline = time.monotonic() + _SECONDS_TO_LEAVE
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers = []

    def _new_worker(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self._plan), name="bilex worker")
        with _deaf_to_ctrl_c(), _thread_variables(self._plan.threads):
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker


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


def serve(pipe: Connection, plan: WorkPlan) -> None:
    """The life of a worker process: families in, events out, until the other end is closed.

    A worker never outlives the process that started it, however that one ended. On SIGTERM it raises
    SystemExit, so that half-written files are removed.
    """
    import torch

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(_TERMINATED)

    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    signal.signal(signal.SIGTERM, leave)
    torch.set_num_threads(plan.threads)
    workplace = Workplace(plan)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            job: Job = pipe.recv()
            work_on(job, workplace, pipe.send)


def _end_with(parent: int) -> None:
    wait([parent])
    os._exit(_TERMINATED)


def work_on(
    job: Job, workplace: Workplace, send: Callable[[Event], None], *, seconds_between_steps: float = 0.25
) -> None:
    """Work on one family, and give back the memory it took, since other processes may share the GPU."""
    import torch

    from bilex_bench.work import FamilyOutOfMemoryError

    results = workplace.plan.run_family(
        job.setups,
        workplace,
        progress=Relay(send, seconds_between_steps),
        attempt=job.attempt,
        last_attempt=job.last_attempt,
    )
    out_of_memory = None
    try:
        for result in results:
            send(result)
    except FamilyOutOfMemoryError as error:
        out_of_memory = str(error)
    gc.collect()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()
    send(Finished(out_of_memory))
