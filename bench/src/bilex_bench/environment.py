"""What a result was made with: versions, machine, threads, memory."""

from __future__ import annotations

import contextlib
import platform
import socket
from functools import lru_cache
from pathlib import Path
from typing import Any

import bilex
from bilex.core.machine import library_versions, peak_memory, processor, total_memory

_GIGABYTE = 1 << 30
_CLEAR, _FORGET_PEAK = Path("/proc/self/clear_refs"), "5"


def environment(device: str, threads: int) -> dict[str, Any]:
    """Versions, hardware and host of this process, as plain values."""
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


class PeakMemory:
    """The peak since this object was made; where the system cannot forget, since the process began.

    Args:
        device: "cuda" to watch the GPU's memory too.
    """

    def __init__(self, device: str) -> None:
        self._on_gpu = device == "cuda"
        with contextlib.suppress(OSError):  # on other systems than Linux the whole process's peak is reported
            _CLEAR.write_text(_FORGET_PEAK, encoding="ascii")
        if self._on_gpu:
            import torch

            torch.cuda.reset_peak_memory_stats()

    def gigabytes(self) -> float | None:
        """The process's largest resident size so far; None if the system does not say."""
        peak = peak_memory()
        return None if peak is None else round(peak / _GIGABYTE, 3)

    def gpu_gigabytes(self) -> float | None:
        """The most that tensors took of the GPU so far; None without a GPU."""
        if not self._on_gpu:
            return None
        import torch

        return round(torch.cuda.max_memory_allocated() / _GIGABYTE, 3)
