"""A worker process: takes families from a pipe, works on them, sends what happens."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from types import FrameType

import torch

from bilex_bench.events import Event, Finished, Relay
from bilex_bench.schedule import Job
from bilex_bench.workplace import Workplace, WorkPlan

_TERMINATED = 143


def serve(pipe: Connection, plan: WorkPlan) -> None:
    """The life of a worker process: families in, events out, until the other end is closed.

    A worker never outlives the process that started it, however that one ended.
    """
    _end_with_parent()
    _leave_politely()
    torch.set_num_threads(plan.threads)
    workplace = Workplace(plan)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            job: Job = pipe.recv()
            work_on(job, workplace, pipe.send)


def work_on(
    job: Job, workplace: Workplace, send: Callable[[Event], None], *, seconds_between_steps: float = 0.25
) -> None:
    """Work on one family."""
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
    _free_memory()
    send(Finished(out_of_memory))


def _free_memory() -> None:
    """Give back what this family took, since other processes may share the GPU."""
    gc.collect()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()


def _leave_politely() -> None:
    """On SIGTERM end through Python's own doors, so that half-written files are removed."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(_TERMINATED)

    signal.signal(signal.SIGTERM, leave)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(_TERMINATED)

    threading.Thread(target=watch, daemon=True).start()
