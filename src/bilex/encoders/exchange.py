"""Several processes that tune one encoder together, each on its share of a batch."""

from __future__ import annotations

import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class _NoGradient(nn.Module):
    """All parameters of a module in a sum that is 0: its backward pass adds zeros to their gradients."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self) -> torch.Tensor:
        return 0.0 * torch.stack([p.sum() for p in self.parameters() if p.requires_grad]).sum()


class Exchange:
    """What the processes send each other; alone, a process has nothing to send.

    Every process first gathers the gradients of its own share, with no word to the others. Only when all have
    managed that are the gradients averaged: a process that runs out of memory in the middle would leave
    the others waiting. The averaging is that of torch's DistributedDataParallel, set off by a backward
    pass that adds nothing.
    """

    def __init__(self) -> None:
        together = torch.distributed.is_initialized()
        self.rank = torch.distributed.get_rank() if together else 0
        self.world = torch.distributed.get_world_size() if together else 1
        self._parallel: DistributedDataParallel | None = None

    def join(self, module: nn.Module) -> None:
        """Give all processes the first one's parameters of `module`, whose gradients will be averaged."""
        if self.world > 1:
            self._parallel = DistributedDataParallel(_NoGradient(module), broadcast_buffers=False)

    def all_managed(self, managed: bool, device: torch.device) -> bool:
        """Whether every process managed its share."""
        if self.world == 1:
            return managed
        failed = torch.tensor(0.0 if managed else 1.0, device=device)
        torch.distributed.all_reduce(failed)
        return not bool(failed)

    def average_gradients(self) -> None:
        """Replace every gradient by its mean over the processes."""
        if self._parallel is not None:
            torch.autograd.backward(self._parallel())

    def sum(self, number: torch.Tensor) -> torch.Tensor:
        """The sum of a number over the processes, in place."""
        if self.world > 1:
            torch.distributed.all_reduce(number)
        return number
