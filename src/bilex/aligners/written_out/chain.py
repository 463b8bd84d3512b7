"""Passes through small networks and back on a CPU, with gradients written out (LNMap).

With batches of a hundred rows autograd spends more time between the products than in them: it makes new
memory for every result, walks through dropout and PReLU in many small operations, and draws dropout's numbers
one by one. Here all results have their place from the start, and what lies between two products is one loop.
"""

from __future__ import annotations

from typing import Any

import torch

from bilex.aligners.dropout import Dropout
from bilex.aligners.written_out.loops import draw_kept, prelu, prelu_gradient

_KEYS = 2**32


class Chain:
    """A network of linear layers, each with PReLU or tanh and dropout behind it or nothing.

    It reads and writes the parameters of the network itself, and like that drops only what is in training.
    A parameter that needs no gradient gets none.

    Args:
        network: The network; all on a CPU.
        rows: The most rows of a batch.
    """

    def __init__(self, network: torch.nn.Sequential, rows: int) -> None:
        self._layers: list[_Layer] = []
        for part in network:
            if isinstance(part, torch.nn.Linear):
                self._layers.append(_Layer(part, rows))
            else:
                self._layers[-1].add(part)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """What the network makes of a batch, in memory that the next batch overwrites."""
        for layer in self._layers:
            batch = layer.forward(batch)
        return batch

    def backward(self, gradient: torch.Tensor, *, to_batch: bool) -> torch.Tensor:
        """Put the gradient into the parameters; the gradient by the batch where it is asked for.

        Args:
            gradient: The gradient by what the last `forward` gave; it is overwritten.
            to_batch: Whether to go back to the batch itself.
        """
        for place in reversed(range(len(self._layers))):
            gradient = self._layers[place].backward(gradient, to_input=to_batch or place > 0)
        return gradient


class _Layer:
    """A linear layer with what stands behind it, and the memory for its results."""

    def __init__(self, linear: torch.nn.Linear, rows: int) -> None:
        self.linear = linear
        self.prelu: torch.nn.PReLU | None = None
        self.tanh = False
        self.dropout: Dropout | None = None
        kind = linear.weight.dtype
        # before PReLU (of tanh: behind it), behind dropout, what dropout multiplies by
        self._before, self._result, self._kept = (
            torch.empty(rows, linear.out_features, dtype=kind) for _ in range(3)
        )
        self._to_input = torch.empty(rows, linear.in_features, dtype=kind)
        self._input = self._to_input[:0]

    def add(self, part: torch.nn.Module) -> None:
        """Put another part of the network behind the layer."""
        if isinstance(part, torch.nn.PReLU):
            self.prelu = part
        elif isinstance(part, torch.nn.Tanh):
            self.tanh = True
        elif isinstance(part, Dropout):
            self.dropout = part
        else:
            raise TypeError(f"there are no gradients for {part}")

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self._input = batch
        rows = len(batch)
        before, result, kept = self._before[:rows], self._result[:rows], self._kept[:rows]
        torch.addmm(self.linear.bias, batch, self.linear.weight.T, out=before)
        if self.tanh:
            before.tanh_()
        if self.prelu is None and self.dropout is None:
            return before
        number = before.numpy().dtype.type
        if self.dropout is None or not self.dropout.training or self.dropout.share == 0:
            kept.fill_(1)
        else:
            key = int(torch.randint(_KEYS, (), generator=self.dropout.random))
            draw_kept(kept.numpy(), key, self.dropout.share, number(1 / (1 - self.dropout.share)))
        if self.prelu is None:
            return torch.mul(before, kept, out=result)
        prelu(before.numpy(), kept.numpy(), number(self.prelu.weight.item()), result.numpy())
        return result

    def backward(self, gradient: torch.Tensor, *, to_input: bool) -> torch.Tensor:
        rows = len(gradient)
        before, kept = self._before[:rows], self._kept[:rows]
        if self.prelu is not None:
            slope = before.numpy().dtype.type(self.prelu.weight.item())
            total = prelu_gradient(gradient.numpy(), before.numpy(), kept.numpy(), slope)
            if self.prelu.weight.requires_grad:
                _gradient_of(self.prelu.weight).fill_(total)
        elif self.dropout is not None:
            gradient.mul_(kept)
        if self.tanh:
            gradient.addcmul_(gradient * before, before, value=-1)
        if self.linear.weight.requires_grad:
            torch.mm(gradient.T, self._input, out=_gradient_of(self.linear.weight))
            torch.sum(gradient, 0, out=_gradient_of(self.linear.bias))
        if to_input:
            return torch.mm(gradient, self.linear.weight, out=self._to_input[:rows])
        return gradient


def _gradient_of(parameter: torch.Tensor) -> Any:
    """Where a parameter's gradient is kept."""
    if parameter.grad is None:
        parameter.grad = torch.empty_like(parameter)
    return parameter.grad
