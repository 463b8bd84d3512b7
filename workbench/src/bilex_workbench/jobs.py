"""One long piece of work at a time, in a process of its own, with progress and a way to end it."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from bilex_workbench.problems import ProblemError
from bilex_workbench.store import now

if TYPE_CHECKING:
    from bilex_workbench.state import Workbench

Finish = Callable[[dict[str, Any]], None]
_WAIT_FOR_END = 10.0


@dataclass
class Job:
    """What is known about the work.

    Attributes:
        kind: "learn" or "fit".
        finish: Called with the result when the work is done, before the state says so.
    """

    kind: str
    finish: Finish
    id: str = field(default_factory=lambda: secrets.token_hex(4))
    state: str = "running"
    finishing: bool = False
    phase: str = "starting"
    done: float = 0
    total: float | None = None
    message: str = ""
    detail: str | None = None
    started: str = field(default_factory=now)
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    version: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The job for JSON."""
        shown = ("id", "kind", "state", "phase", "done", "total", "message", "detail", "started")
        seconds = round((self.ended or time.monotonic()) - self.began, 1)
        return {**{name: getattr(self, name) for name in shown}, "seconds": seconds}


class Jobs:
    """Starts, watches and ends the one job."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._job: Job | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._changed = threading.Condition()

    def describe(self) -> dict[str, Any] | None:
        """The present or last job; None if there was none."""
        return None if self._job is None else self._job.as_dict()

    @property
    def running(self) -> bool:
        """Whether a job runs now."""
        return self._job is not None and self._job.state == "running"

    def start(self, kind: str, order: dict[str, Any], finish: Finish) -> dict[str, Any]:
        """Start the work in a process of its own."""
        self._bench.begin(kind)
        try:
            job = Job(kind, finish)
            process = subprocess.Popen(
                [sys.executable, "-m", "bilex_workbench.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except BaseException:
            self._bench.end()
            raise
        with self._changed:
            self._job, self._process = job, process
        watch = threading.Thread(target=self._watch, args=(job, process, order), name="job", daemon=True)
        watch.start()
        return job.as_dict()

    def cancel(self) -> dict[str, Any]:
        """End the work; nothing of it is kept."""
        with self._changed:
            job, process = self._job, self._process
            if job is None or not self.running or job.finishing:
                raise ProblemError(409, "No job runs that could be cancelled.")
            self._end(job, "cancelled")
        _kill(process)
        self._bench.end()
        return job.as_dict()

    def stop(self) -> None:
        """End the work when the server ends."""
        with contextlib.suppress(ProblemError):
            self.cancel()

    def wait_for_change(self, version: int, seconds: float) -> tuple[int, dict[str, Any] | None]:
        """The job when it differs from a version that was seen, or after some seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._job is None or self._job.version != version, seconds)
            return (-1 if self._job is None else self._job.version), self.describe()

    def _watch(self, job: Job, process: subprocess.Popen[bytes], order: dict[str, Any]) -> None:
        result: dict[str, Any] = {}
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()  # it stays open: the process ends when the server does
            result = self._follow(job, process.stdout)
        except (OSError, ValueError) as error:
            job.detail = f"The work ended unexpectedly ({error})."
        code = process.wait()
        process.stdout.close()
        with contextlib.suppress(OSError):
            process.stdin.close()
        with self._changed:
            if job.state != "running":
                return
            job.finishing = True
        if job.detail is None and (code or not result):
            job.detail = f"The work ended unexpectedly (exit code {code}); try fewer words or another method."
        if job.detail is None:
            try:
                job.finish(result)
            except Exception as error:
                job.detail = str(error)
        self._bench.end()
        with self._changed:
            self._end(job, "failed" if job.detail else "done")

    def _follow(self, job: Job, lines: IO[bytes]) -> dict[str, Any]:
        """Take over what the process reports; its result is put together and returned."""
        result: dict[str, Any] = {}
        changes: list[Any] = []
        for line in lines:
            said = json.loads(line)
            if "error" in said:
                job.detail = said["error"]
            elif "result" in said:
                result = {**said["result"], "changes": changes}
            elif "changes" in said:
                changes.extend(said["changes"])
            else:
                with self._changed:
                    for name, value in said.items():
                        setattr(job, name, value)
                    job.version += 1
                    self._changed.notify_all()
        return result

    def _end(self, job: Job, state: str) -> None:
        job.state, job.ended = state, time.monotonic()
        job.version += 1
        self._changed.notify_all()


def _kill(process: subprocess.Popen[bytes] | None) -> None:
    if process is None:
        return
    process.terminate()
    try:
        process.wait(_WAIT_FOR_END)
    except subprocess.TimeoutExpired:
        process.kill()
