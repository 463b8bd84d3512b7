"""What a result was made with: versions, machine, threads."""

from __future__ import annotations

import os
import platform
import socket
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import bilex

_LIBRARIES = ("numpy", "scipy", "torch", "numba", "safetensors", "transformers", "tokenizers", "ray")
_GIGABYTE = 1 << 30


def environment(device: str, threads: int) -> dict[str, Any]:
    """Versions, hardware and host of this process, as plain values.

    Args:
        device: "cpu" or "cuda": where the numbers are crunched.
        threads: How many threads this process may use.
    """
    return {**_machine(device), "threads": threads}


@lru_cache(maxsize=4)
def _machine(device: str) -> dict[str, Any]:
    return {
        "bilex": bilex.__version__,
        "python": platform.python_version(),
        "libraries": {name: version for name in _LIBRARIES if (version := _version(name))},
        "system": platform.platform(),
        "host": socket.gethostname(),
        "processor": _processor(),
        "cores": cores(),
        "memory_gigabytes": round(memory_gigabytes(), 1),
        "gpu": _gpu() if device == "cuda" else None,
    }


def cores() -> int:
    """How many cores this process may use, which can be fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def memory_gigabytes() -> float:
    """The machine's memory, or what the container may use of it where that is less; 0 if nobody knows."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0.0
    try:
        allowed = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        allowed = total
    return min(total, allowed) / _GIGABYTE


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _gpu() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None
