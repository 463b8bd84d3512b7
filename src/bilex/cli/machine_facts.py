"""What `bilex info --machine` says: all that a bug report needs."""

from __future__ import annotations

import platform
from typing import Any

import bilex
from bilex.core.machine import available_memory, cache_folder, library_versions, processor, total_memory

_GIGABYTE = 1 << 30


def machine_facts() -> dict[str, Any]:
    """The processor, memory, GPU and libraries as plain values."""
    import torch

    from bilex.search.arithmetic import outcomes

    here = processor()
    return {
        "bilex": bilex.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "processor": here.name,
        "vector_instructions": sorted(here.features),
        "torch_uses": torch.backends.cpu.get_cpu_capability(),
        "threads": here.threads,
        "torch_threads": torch.get_num_threads(),
        "memory_gigabytes": round(total_memory() / _GIGABYTE, 1),
        "memory_available_gigabytes": round(available_memory() / _GIGABYTE, 1),
        "arithmetic": {job: found.precision for job, found in outcomes().items()},
        "products_over_float32": {job: found.ratios for job, found in outcomes().items() if found.ratios},
        "gpu": _gpu(),
        "cache_folder": str(cache_folder()),
        "libraries": library_versions(),
    }


def _gpu() -> dict[str, Any] | None:
    """The GPU that torch would take; None if it sees none."""
    import torch

    if not torch.cuda.is_available():
        return None
    found = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "name": found.name,
        "count": torch.cuda.device_count(),
        "memory_gigabytes": round(found.total_memory / _GIGABYTE, 1),
        "compute_capability": f"{found.major}.{found.minor}",
        "cuda": torch.version.cuda,
    }
