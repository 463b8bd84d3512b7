"""What a result was made with: versions, machine, threads."""

from __future__ import annotations

import platform
import socket
from functools import lru_cache
from typing import Any

import bilex
from bilex.machine import library_versions, processor, total_memory

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
    here = processor()
    return {
        "bilex": bilex.__version__,
        "python": platform.python_version(),
        "libraries": library_versions(),
        "system": platform.platform(),
        "host": socket.gethostname(),
        "processor": here.name,
        "cores": here.threads,
        "memory_gigabytes": round(total_memory() / _GIGABYTE, 1),
        "gpu": _gpu() if device == "cuda" else None,
    }


def _gpu() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None
