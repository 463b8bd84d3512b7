"""Procrustes, the advanced mapping and VecMap, written down as their formulas read and for nothing else.

Nothing here is shared with `bilex.aligners`: full matrices, no blocks, no early exits, so that an error there
cannot be an error here. Vectors are rows and a map is applied as x·W.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

Mapped = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Problem:
    """Two vocabularies as they came from their files, and pairs of their rows.

    Args:
        x: Source vectors, most frequent word first.
        y: Target vectors likewise.
        pairs: Seed pairs as rows of x and y, one a line; repeats are kept.
        few_seeds: Whether these are the 1k seeds, with which some methods first look for more pairs.
        random_seed: The seed of what is random.
    """

    x: Tensor
    y: Tensor
    pairs: Tensor
    few_seeds: bool
    random_seed: int = 0


def unit(rows: Tensor) -> Tensor:
    """Rows of length 1."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / lengths


def unit_centre_unit(rows: Tensor) -> Tensor:
    """VecMap's preparation of a vocabulary."""
    once = unit(rows)
    return unit(once - once.mean(0))


def rotation(x: Tensor, y: Tensor) -> Tensor:
    """The orthogonal W for which the rows x·W come nearest to the rows y."""
    u, _, vt = torch.linalg.svd((x.double().T @ y.double()).cpu())
    turn: Tensor = u @ vt
    return turn.to(x)


def whitening(rows: Tensor) -> Tensor:
    """A = V Σ⁻¹ Vᵀ of the singular value decomposition of the rows."""
    _, sigma, vt = torch.linalg.svd(rows, full_matrices=False)
    whiten: Tensor = vt.T @ torch.diag(1 / sigma) @ vt
    return whiten


def advanced_maps(x: Tensor, y: Tensor) -> Mapped:
    """The maps of both languages: whitened, turned, re-weighted by S^½ on both sides, de-whitened."""
    x, y = x.double(), y.double()
    whiten_x, whiten_y = whitening(x), whitening(y)
    p, s, qt = torch.linalg.svd((x @ whiten_x).T @ (y @ whiten_y))
    q, weight = qt.T, torch.diag(s.sqrt())
    source = whiten_x @ p @ weight @ p.T @ torch.linalg.inv(whiten_x) @ p
    target = whiten_y @ q @ weight @ q.T @ torch.linalg.inv(whiten_y) @ q
    return source, target


def mapped_by_advanced(x: Tensor, y: Tensor, pairs: Tensor) -> Mapped:
    """Both vocabularies under the advanced mapping of some pairs."""
    source, target = advanced_maps(x[pairs[:, 0]], y[pairs[:, 1]])
    return x @ source.to(x.dtype), y @ target.to(y.dtype)


def advanced(problem: Problem) -> Mapped:
    """The advanced mapping of unit vectors that are not centred, as stage C1 starts."""
    return mapped_by_advanced(unit(problem.x), unit(problem.y), problem.pairs)


def procrustes(problem: Problem) -> Mapped:
    """The rotation of unit vectors."""
    x, y = unit(problem.x), unit(problem.y)
    return x @ rotation(x[problem.pairs[:, 0]], y[problem.pairs[:, 1]]), y


def vecmap_supervised(problem: Problem) -> Mapped:
    """One advanced mapping on the seeds."""
    return mapped_by_advanced(unit_centre_unit(problem.x), unit_centre_unit(problem.y), problem.pairs)


def vecmap_semi(problem: Problem, *, own_term: bool = False) -> Mapped:
    """Stochastic self-learning from the seeds, then one advanced mapping.

    Args:
        problem: The vectors and the seeds, which serve the first iteration only.
        own_term: Whether the score that is zeroed at random is the whole CSLS, 2cos − r(x) − r(y), rather
            than 2cos − r(y). Among scores alone the query's own term changes no order, but beside the zeros
            it does.
    """
    x, y = unit_centre_unit(problem.x), unit_centre_unit(problem.y)
    pairs = self_learned_pairs(x, y, problem.pairs, problem.random_seed, own_term=own_term)
    return mapped_by_advanced(x, y, pairs)


def self_learned_pairs(
    x: Tensor,
    y: Tensor,
    pairs: Tensor,
    random_seed: int,
    *,
    own_term: bool = False,
    words: int = 20_000,
    keep: float = 0.1,
    patience: int = 50,
    threshold: float = 1e-6,
) -> Tensor:
    """The dictionary with which VecMap's loop ends, after `patience` iterations at keep = 1 without gain."""
    draw = torch.Generator(x.device).manual_seed(random_seed)
    best, waited = -1.0, 0
    while True:
        turned = x[:words] @ rotation(x[pairs[:, 0]], y[pairs[:, 1]])
        similarity = turned @ y[:words].T
        objective = float(similarity.amax(1).mean() + similarity.amax(0).mean()) / 2
        pairs = stochastic_pairs(similarity, keep, draw, own_term)
        waited += 1
        if objective >= best + threshold:
            best, waited = objective, 0
        if waited >= patience and keep >= 1:
            return pairs
        if waited >= patience:
            keep, waited = min(1.0, 2 * keep), 0


def stochastic_pairs(similarity: Tensor, keep: float, draw: torch.Generator, own_term: bool) -> Tensor:
    """Every word with its best partner by CSLS, entries being zeroed at random: forward, then backward."""
    forward = best_partners(similarity, keep, draw, own_term)
    backward = best_partners(similarity.T.contiguous(), keep, draw, own_term)
    sources = torch.arange(len(forward), device=similarity.device)
    targets = torch.arange(len(backward), device=similarity.device)
    return torch.cat([torch.stack([sources, forward], 1), torch.stack([backward, targets], 1)])


def best_partners(similarity: Tensor, keep: float, draw: torch.Generator, own_term: bool) -> Tensor:
    """The column of each row's best score, entries being zeroed with probability 1 − keep."""
    scores = 2 * similarity - mean_of_ten_best(similarity.T)
    if own_term:
        scores -= mean_of_ten_best(similarity)[:, None]
    if keep < 1:
        scores *= torch.rand(scores.shape, generator=draw, device=scores.device) < keep
    return scores.argmax(1)


def mean_of_ten_best(similarity: Tensor) -> Tensor:
    """CSLS's r of each row."""
    return similarity.topk(min(10, similarity.shape[1]), dim=1).values.mean(1)
