"""Surviving `os.fork()`: torch's threads do not come along, and OpenMP would wait for them for ever."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

_TASKS = Path("/proc/self/task")


class _Forks:
    """What is done around a fork.

    A child of a process with threads computes with one thread, which needs no others; answers stay the same.
    A child of a process without threads is free to start as many as it likes.
    """

    def __init__(self) -> None:
        self._had_threads = True

    def look(self) -> None:
        """Before a fork: remember whether this process has threads."""
        self._had_threads = True
        with contextlib.suppress(OSError):
            self._had_threads = len(list(_TASKS.iterdir())) > 1

    def go_on_alone(self) -> None:
        """After a fork, in the child."""
        torch = sys.modules.get("torch")
        if torch is not None and self._had_threads:
            torch.set_num_threads(1)


def survive_forks() -> None:
    """Make torch usable in the children that this process forks from now on."""
    if hasattr(os, "register_at_fork"):
        forks = _Forks()
        os.register_at_fork(before=forks.look, after_in_child=forks.go_on_alone)
