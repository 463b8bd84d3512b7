"""RCSLS as its formula reads: the objective of the gathered neighbours; autograd does the rest."""

from __future__ import annotations

import torch
from torch import Tensor

from research.plain_vecmap import Mapped, Problem, rotation, unit


def loss(map_: Tensor, x: Tensor, y: Tensor, pairs: Tensor, k: int = 10) -> Tensor:
    """f(R) with R = map_ᵀ; neighbours are found among all words, and are constants for the gradient."""
    a, b = x[pairs[:, 0]], y[pairs[:, 1]]
    mapped = a @ map_
    with torch.no_grad():
        near_mapped = (mapped @ y.T).topk(k, dim=1).indices
        near_target = (b @ (x @ map_).T).topk(k, dim=1).indices
    wanted = 2 * (mapped * b).sum()
    first_penalty = torch.einsum("nd,nkd->", mapped, y[near_mapped]) / k
    second_penalty = torch.einsum("nkd,nd->", x[near_target] @ map_, b) / k
    return -(wanted - first_penalty - second_penalty) / len(pairs)


def loss_and_gradient(map_: Tensor, x: Tensor, y: Tensor, pairs: Tensor) -> tuple[float, Tensor]:
    """The loss f and its gradient at a map."""
    variable = map_.clone().requires_grad_()
    value = loss(variable, x, y, pairs)
    (gradient,) = torch.autograd.grad(value, variable)
    return float(value.detach()), gradient


def rcsls(problem: Problem, *, iterations: int = 10, rate: float = 25.0) -> Mapped:
    """Descent from Procrustes over all pairs at once; a step that raises f is taken back and halved."""
    x, y = unit(problem.x), unit(problem.y)
    kept = rotation(x[problem.pairs[:, 0]], y[problem.pairs[:, 1]])
    lowest, gradient = loss_and_gradient(kept, x, y, problem.pairs)
    for _ in range(iterations):
        tried = kept - rate * gradient
        value, gradient_there = loss_and_gradient(tried, x, y, problem.pairs)
        if value > lowest:
            rate /= 2
        else:
            kept, lowest, gradient = tried, value, gradient_there
    return x @ kept, y


def rcsls_void(
    problem: Problem, *, lowest: bool = False, late: bool = False, iterations: int = 10, rate: float = 25.0
) -> Mapped:
    """The same with a void restore: a step that raised f stays, and only the steps to come are halved.

    Args:
        problem: The vectors and the seeds.
        lowest: Whether f has risen when it is above the lowest so far (the number f is restored, though the
            map is not), rather than above the one before.
        late: Whether the step from a place where f has risen still has its full length.
        iterations: How many steps are taken.
        rate: The first step size.
    """
    x, y = unit(problem.x), unit(problem.y)
    map_ = rotation(x[problem.pairs[:, 0]], y[problem.pairs[:, 1]])
    last = float("inf")
    for _ in range(iterations):
        value, gradient = loss_and_gradient(map_, x, y, problem.pairs)
        halved = rate / 2 if value > last else rate
        map_ = map_ - (rate if late else halved) * gradient
        rate = halved
        last = min(last, value) if lowest else value
    return x @ map_, y
