"""Dropout whose random numbers come from a generator that is given."""

from __future__ import annotations

import torch
from torch import nn


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
