"""How much memory a piece of work needed at its peak."""

from __future__ import annotations

import contextlib
from pathlib import Path

from bilex.machine import peak_memory

_CLEAR = Path("/proc/self/clear_refs")
_GIGABYTE = 1 << 30
_FORGET_PEAK = "5"


class PeakMemory:
    """The peak since this object was made; where the system cannot forget, since the process began.

    Args:
        device: "cuda" to watch the GPU's memory too.
    """

    def __init__(self, device: str) -> None:
        self._on_gpu = device == "cuda"
        with contextlib.suppress(
            OSError
        ):  # elsewhere than on Linux the peak of the whole process is reported
            _CLEAR.write_text(_FORGET_PEAK, encoding="ascii")
        if self._on_gpu:
            import torch

            torch.cuda.reset_peak_memory_stats()

    def gigabytes(self) -> float | None:
        """The process's largest resident size so far; None if the system does not tell."""
        peak = peak_memory()
        return None if peak is None else round(peak / _GIGABYTE, 3)

    def gpu_gigabytes(self) -> float | None:
        """The most that tensors took of the GPU so far; None without a GPU."""
        if not self._on_gpu:
            return None
        import torch

        return round(torch.cuda.max_memory_allocated() / _GIGABYTE, 3)
