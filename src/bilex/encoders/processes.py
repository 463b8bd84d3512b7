"""Several processes, one a GPU, when the program was started by torchrun."""

from __future__ import annotations

import atexit
import os


def join_processes() -> None:
    """Join the other processes of a torchrun start, once; each takes the GPU of its number.

    Without torchrun nothing happens.
    """
    import torch
    import torch.distributed

    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or torch.distributed.is_initialized():
        return
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
    atexit.register(torch.distributed.destroy_process_group)


def is_first_process() -> bool:
    """Whether this process is the one that writes and talks; true without torchrun."""
    return os.environ.get("RANK", "0") == "0"
