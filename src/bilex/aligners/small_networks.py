"""Small networks, and training them on batches of rows (LNMap).

All chance comes from a generator that is given, so that two networks may be trained side by side and each
still gives the same numbers every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import nn

from bilex.progress import Progress
from bilex.replay import ReplayedPass


class Dropout(nn.Module):
    """Sets numbers to zero at random in training, from a generator of its own."""

    def __init__(self, share: float, random: torch.Generator) -> None:
        super().__init__()
        self.share, self.random = share, random

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows with a share of zeros, the rest made larger to make up for them."""
        if not self.training or self.share == 0:
            return rows
        numbers = torch.rand(rows.shape, generator=self.random, device=rows.device)
        return rows * (numbers >= self.share) / (1 - self.share)


def linear(before: int, after: int, random: torch.Generator) -> nn.Linear:
    """A layer whose numbers start uniformly within ±1/√before."""
    layer = nn.Linear(before, after, device=random.device)
    for part in (layer.weight, layer.bias):
        nn.init.uniform_(part, -(before**-0.5), before**-0.5, generator=random)
    return layer


def half_autoencoder(widths: list[int], dropout: float, random: torch.Generator) -> nn.Sequential:
    """Linear layers with PReLU and dropout between them."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [linear(before, after, random), nn.PReLU(device=random.device), Dropout(dropout, random)]
    return nn.Sequential(*layers[:-2])


class Training:
    """Steps of an optimizer on batches; a GPU replays each step as a whole.

    Args:
        loss: The loss of a batch, a tensor of row numbers.
        optimizer: What moves the parameters; on a GPU it must be able to be recorded.
        random: The chance that `loss` draws from.
        batch: Rows in a batch.
        progress: Who is told if a GPU cannot record.
    """

    def __init__(
        self,
        loss: Callable[[torch.Tensor], torch.Tensor],
        optimizer: torch.optim.Optimizer,
        random: torch.Generator,
        batch: int,
        progress: Progress,
    ) -> None:
        self._loss, self._optimizer, self._batch = loss, optimizer, batch
        self._step: Callable[[torch.Tensor], torch.Tensor] = self._one_step
        if random.device.type == "cuda":
            self._step = ReplayedPass(self._one_step, progress.say, [random])

    def _one_step(self, rows: torch.Tensor) -> torch.Tensor:
        self._optimizer.zero_grad()
        loss = self._loss(rows)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return loss.detach()

    def epoch(self, rows: torch.Tensor) -> float:
        """Step through the rows in their order; the sum of the batches' losses."""
        total = torch.zeros((), device=rows.device)
        for part in torch.split(rows, self._batch):
            total += self._step(part)
        return float(total)
