"""Families on this machine, in processes that are reused from one family to the next.

Only the parent writes results. Workers are spawned, so that they share no threads, GPU or memory; each keeps
its vocabularies open for the next family.
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
from typing import Any

from bilex.core.machine import processor, total_memory
from bilex_bench.engine import Begun, Ended, Event, Executor, Job, Relay
from bilex_bench.work import FamilyOutOfMemoryError, Workplace, WorkPlan

_THREADS_PER_WORKER = 4
_MEMORY_PER_WORKER = 6 << 30
_SECONDS_TO_LEAVE = 3
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_TERMINATED = 143


def default_workers(*, on_gpu: bool) -> int:
    """The default number of workers on this machine.

    One with a GPU, which a single fit can fill. On CPUs one for every four cores, since the products of a
    fit scale well to four threads and less well beyond, and at most one for every 6 GB of memory.
    """
    if on_gpu:
        return 1
    by_memory = total_memory() // _MEMORY_PER_WORKER
    return max(1, min(processor().threads // _THREADS_PER_WORKER, by_memory))


def threads_for(workers: int) -> int:
    """The threads per worker, so that together they use every core once."""
    return max(1, processor().threads // workers)


@dataclass(eq=False)
class _Worker:
    """A worker process and its current job."""

    process: BaseProcess
    pipe: Connection
    job: Job | None = None

    def next_event(self) -> Event | None:
        """What it has sent; None if there is nothing, or half a message because it was killed."""
        with contextlib.suppress(EOFError, OSError):
            if self.pipe.poll():
                event: Event = self.pipe.recv()
                return event
        return None


class LocalExecutor(Executor):
    """Runs families in processes of this machine, which are started when they are needed."""

    def __init__(self, plan: WorkPlan, workers: int) -> None:
        self.plan, self._size = plan, workers
        self._workers: list[_Worker] = []
        self._begun: list[Job] = []

    def __exit__(self, *error: object) -> None:
        self._stop()

    def has_room(self) -> bool:
        """Whether a worker is idle, or could be started."""
        return sum(worker.job is not None for worker in self._workers) < self._size

    def start(self, job: Job) -> None:
        """Give a family to an idle worker, or to a new one."""
        if job.alone:
            self._stop()  # idle workers hold memory that this job may need
        worker = next((w for w in self._workers if w.job is None), None) or self._new_worker()
        worker.job = job
        self._begun.append(job)
        with contextlib.suppress(OSError):  # `events` finds a worker that died meanwhile
            worker.pipe.send(job)

    def events(self) -> Iterator[tuple[Job, Event]]:
        """What workers have sent, and which of them have died."""
        while self._begun:
            yield self._begun.pop(0), Begun()
        waited: list[Any] = [part for w in self._workers for part in (w.pipe, w.process.sentinel)]
        wait(waited, timeout=1)
        for worker in list(self._workers):
            dead = not worker.process.is_alive()
            while (job := worker.job) is not None and (event := worker.next_event()) is not None:
                if isinstance(event, Ended):
                    worker.job = None
                yield job, event
            if dead:
                self._workers.remove(worker)
                worker.pipe.close()
                worker.process.join()
                if worker.job is not None:
                    yield worker.job, Ended(how_it_ended(worker.process.exitcode))

    def _stop(self) -> None:
        """End all workers; those that do not leave within seconds are killed."""
        for worker in self._workers:
            worker.pipe.close()  # an idle worker leaves by itself
            if worker.job is not None:
                worker.process.terminate()
        deadline = time.monotonic() + _SECONDS_TO_LEAVE
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            worker.process.kill()
            worker.process.join()
        self._workers = []

    def _new_worker(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self.plan), name="bilex worker")
        with _worker_environment(self.plan.threads):
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker


def how_it_ended(exit_code: int | None) -> str:
    """Why a worker process died, in one sentence for the results file."""
    if exit_code is None or exit_code >= 0:
        return f"its worker process ended with exit code {exit_code}."
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = ", as Linux does when memory runs out; use --limit for fewer words, or fewer workers"
    return f"its worker process was killed by {name}{hint if name == 'SIGKILL' else ''}."


@contextlib.contextmanager
def _worker_environment(threads: int) -> Iterator[None]:
    """Processes started in this block limit their threads, and ignore Ctrl-C, which the parent handles."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    in_main_thread = threading.current_thread() is threading.main_thread()  # only there signals can be set
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main_thread else None
    try:
        yield
    finally:
        if in_main_thread:
            signal.signal(signal.SIGINT, handler)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def serve(pipe: Connection, plan: WorkPlan) -> None:
    """The main function of a worker process: jobs in, events out, until the other end is closed.

    A worker never outlives the process that started it, however that ended. On SIGTERM it raises SystemExit,
    so that half-written files are removed.
    """
    import torch

    def leave(*signal: object) -> None:
        raise SystemExit(_TERMINATED)

    def end_with(parent: int) -> None:
        wait([parent])
        os._exit(_TERMINATED)

    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=end_with, args=(parent.sentinel,), daemon=True).start()
    signal.signal(signal.SIGTERM, leave)
    torch.set_num_threads(plan.threads)
    workplace = Workplace(plan)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            work_on(pipe.recv(), workplace, pipe.send)


def work_on(
    job: Job, workplace: Workplace, send: Callable[[Event], None], *, seconds_between_steps: float = 0.25
) -> None:
    """Run one family, then free its memory, since other processes may share the GPU."""
    import torch

    out_of_memory = None
    try:
        relay = Relay(send, seconds_between_steps)
        for result in workplace.run(job.setups, progress=relay, attempt=job.attempt):
            send(result)
    except FamilyOutOfMemoryError as error:
        out_of_memory = str(error)
    gc.collect()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()
    send(Ended(out_of_memory))
