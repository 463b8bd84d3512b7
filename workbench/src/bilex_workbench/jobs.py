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
from typing import IO, TYPE_CHECKING, Any, Literal

from pydantic import Field

from bilex_workbench.interface import Answer, ProblemError
from bilex_workbench.store import now

if TYPE_CHECKING:
    from bilex_workbench.state import Workbench

Kind = Literal["learn", "fit"]
_WAIT_FOR_END = 10.0


class JobAnswer(Answer):
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


class _Job:
    """The work, its process, and what is called with its result before the state says that it is done."""

    def __init__(self, kind: Kind, finish: Callable[[dict[str, Any]], None]) -> None:
        self.shown, self.finish, self.finishing = JobAnswer(kind=kind), finish, False
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bilex_workbench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def describe(self) -> JobAnswer:
        if self.shown.state == "running":
            self.shown.seconds = round(time.monotonic() - self.began, 1)
        return self.shown.model_copy()


class Jobs:
    """Starts, watches and ends the one job."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._job: _Job | None = None
        self._lock = threading.Lock()

    def describe(self) -> JobAnswer | None:
        """The present or last job; None if there was none."""
        return None if self._job is None else self._job.describe()

    def start(self, kind: Kind, order: dict[str, Any], finish: Callable[[dict[str, Any]], None]) -> JobAnswer:
        """Start the work in a process of its own."""
        self._bench.begin(kind)
        try:
            job = self._job = _Job(kind, finish)
        except BaseException:
            self._bench.end()
            raise
        threading.Thread(target=self._watch, args=(job, order), name="job", daemon=True).start()
        return job.describe()

    def cancel(self) -> JobAnswer:
        """End the work; nothing of it is kept."""
        with self._lock:
            job = self._job
            if job is None or job.shown.state != "running" or job.finishing:
                raise ProblemError(409, "No job runs that could be cancelled.")
            job.describe()
            job.shown.state = "cancelled"
        job.process.terminate()
        try:
            job.process.wait(_WAIT_FOR_END)
        except subprocess.TimeoutExpired:
            job.process.kill()
        self._bench.end()
        return job.describe()

    def stop(self) -> None:
        """End the work when the server ends."""
        with contextlib.suppress(ProblemError):
            self.cancel()

    def _watch(self, job: _Job, order: dict[str, Any]) -> None:
        result: dict[str, Any] = {}
        process, shown = job.process, job.shown
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()  # it stays open: the process ends when the server does
            result = _follow(shown, process.stdout)
        except (OSError, ValueError) as error:
            shown.detail = f"The work ended unexpectedly ({error})."
        code = process.wait()
        process.stdout.close()
        with contextlib.suppress(OSError):
            process.stdin.close()
        with self._lock:
            if shown.state != "running":
                return
            job.finishing = True
        if shown.detail is None and (code or not result):
            shown.detail = (
                f"The work ended unexpectedly (exit code {code}); try fewer words or another method."
            )
        if shown.detail is None:
            try:
                job.finish(result)
            except Exception as error:
                shown.detail = str(error)
        self._bench.end()
        job.describe()
        shown.state = "failed" if shown.detail else "done"


def _follow(shown: JobAnswer, lines: IO[bytes]) -> dict[str, Any]:
    """Take over what the process reports; its result is put together and returned."""
    result: dict[str, Any] = {}
    changes: list[Any] = []
    for line in lines:
        said = json.loads(line)
        if "error" in said:
            shown.detail = said["error"]
        elif "result" in said:
            result = {**said["result"], "changes": changes}
        elif "changes" in said:
            changes.extend(said["changes"])
        else:
            for name, value in said.items():
                setattr(shown, name, value)
    return result
