"""One job at a time, in a separate process (`bilex_workbench.worker`), with progress and cancel."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from bilex_workbench.api import ProblemError, Response
from bilex_workbench.database import now

if TYPE_CHECKING:
    from bilex_workbench.workbench import Workbench

Kind = Literal["learn", "fit"]
_TERMINATION_SECONDS = 10.0


class JobAnswer(Response):
    """A long piece of work."""

    id: str = Field(default_factory=lambda: secrets.token_hex(4))
    kind: Kind
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    phase: str = "starting"
    done: float = 0
    total: float | None = None
    message: str = ""
    detail: str | None = None
    started: str = Field(default_factory=now)
    seconds: float = 0


class Jobs:
    """Starts, watches and cancels the job."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._job: JobAnswer | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._cancellable = False
        self._lock = threading.Lock()

    def describe(self) -> JobAnswer | None:
        """The current or last job; None if there was none."""
        job = self._job
        if job is not None and job.state == "running":
            job.seconds = round(time.monotonic() - self._began, 1)
        return None if job is None else job.model_copy()

    def start(self, kind: Kind, order: dict[str, Any], finish: Callable[[dict[str, Any]], None]) -> JobAnswer:
        """Start a job; `finish` gets its result before its state becomes "done"."""
        self._bench.begin(kind)
        try:
            command = [sys.executable, "-m", "bilex_workbench.worker"]
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        except BaseException:
            self._bench.end()
            raise
        job = self._job = JobAnswer(kind=kind)
        self._process, self._began, self._cancellable = process, time.monotonic(), True
        arguments = (job, process, {"kind": kind, **order}, finish)
        threading.Thread(target=self._watch, args=arguments, name="job", daemon=True).start()
        return job.model_copy()

    def cancel(self) -> None:
        """End the job; nothing of it is kept."""
        with self._lock:
            if self._job is None or self._process is None or not self._cancellable:
                raise ProblemError(409, "No job is running that could be cancelled.")
            self._cancellable = False
            self.describe()
            self._job.state = "cancelled"
        self._process.terminate()
        try:
            self._process.wait(_TERMINATION_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._bench.end()

    def _watch(
        self,
        job: JobAnswer,
        process: subprocess.Popen[bytes],
        order: dict[str, Any],
        finish: Callable[[dict[str, Any]], None],
    ) -> None:
        """Send the order, follow the progress, and finish the job."""
        assert process.stdin is not None and process.stdout is not None
        result = None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()  # it stays open: the process ends when the server does
            for line in process.stdout:
                report = json.loads(line)
                result = report.pop("result", None)
                for name, value in report.items():
                    setattr(job, name, value)
        except (OSError, ValueError) as error:
            job.detail = f"The job ended unexpectedly ({error})."
        code = process.wait()
        process.stdout.close()
        with contextlib.suppress(OSError):
            process.stdin.close()
        with self._lock:
            if job.state != "running":
                return
            self._cancellable = False
        if job.detail is None and result is None:
            job.detail = f"The job ended unexpectedly (exit code {code}); try fewer words or another method."
        if job.detail is None and result is not None:
            try:
                finish(result)
            except Exception as error:
                job.detail = str(error)
        self._bench.end()
        self.describe()
        job.state = "failed" if job.detail else "done"
