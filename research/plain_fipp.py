"""FIPP as its formulas read, in float64: whole matrices, a full eigendecomposition, plain matching."""

from __future__ import annotations

import torch
from torch import Tensor

from research.plain_vecmap import Mapped, Problem, unit


def prepared(rows: Tensor, centred: bool = False) -> Tensor:
    """Unit rows less their mean and their projection on the first principal component.

    The projection is that of the rows with their mean, as in the authors' program, or of the centred ones.
    """
    rows = unit(rows.double())
    less_mean = rows - rows.mean(0)
    first = torch.linalg.eigh(less_mean.T @ less_mean)[1][:, -1:]
    projected: Tensor = ((less_mean if centred else rows) @ first) @ first.T
    return less_mean - projected


def fipp(
    problem: Problem,
    *,
    epsilon: float = 0.05,
    weight: float = 1.0,
    wanted_pairs: int = 14_000,
    frequent: int | None = None,
    squared_weights: bool = False,
    through_gram: bool = False,
    centred: bool = False,
    greedy: bool = False,
) -> Mapped:
    """FIPP as its authors have it; with few seeds first its self-learning.

    Args:
        problem: The vectors and the seeds.
        epsilon: Inner products that differ by less are drawn to the target's.
        weight: λ, how much they are.
        wanted_pairs: Of the self-learning, seeds counted.
        frequent: Among how many of the most frequent words of each language it looks; None for all.
        squared_weights: Whether the weights of the Procrustes problem multiply the residuals, and so enter
            squared, rather than the squared residuals.
        through_gram: Whether a word outside the pairs is placed so that its products with X̃ come nearest to
            its products with the pairs' vectors, rather than by the linear map that fits X̃ best.
        centred: Whether the projection that is taken off is that of the centred rows.
        greedy: Whether self-learning goes on to the best words left, rather than to drop a word whose best
            target is taken.
    """
    x, y = prepared(problem.x, centred), prepared(problem.y, centred)
    pairs = problem.pairs
    if problem.few_seeds:
        pairs = more_pairs(x, y, pairs, wanted_pairs, frequent, greedy)
    a, b = x[pairs[:, 0]], y[pairs[:, 1]]
    gram_x, gram_y = a @ a.T, b @ b.T
    close = (gram_x - gram_y).abs() < epsilon
    pull = weight * len(pairs) ** 2 / close.double().sum()
    new_gram = torch.where(close, (gram_x + pull * gram_y) / (1 + pull), gram_x)
    values, vectors = torch.linalg.eigh(new_gram)
    dimension = x.shape[1]
    new_a = vectors[:, -dimension:] * values[-dimension:].clamp(min=0).sqrt()
    # One direction was projected away: of it only rounding is left, which must not be fitted.
    extend = torch.linalg.pinv(a, rtol=1e-5) @ new_a
    if through_gram:
        extend = (torch.linalg.pinv(new_a, rtol=1e-5) @ a).T
    trust = 1 / torch.linalg.vector_norm(new_gram - gram_y, dim=1)
    if squared_weights:
        trust = trust.square()
    u, _, vt = torch.linalg.svd(new_a.T @ (trust[:, None] * b))
    return x @ extend @ u @ vt, y


def more_pairs(
    x: Tensor, y: Tensor, seeds: Tensor, wanted: int, frequent: int | None, greedy: bool
) -> Tensor:
    """The seeds, and then the best matches of the other words by their products with the seed words."""
    described_x = unit(x[:frequent] @ x[seeds[:, 0]].T)
    described_y = unit(y[:frequent] @ y[seeds[:, 1]].T)
    scores = described_x @ described_y.T
    sources, targets = seeds.T
    scores[sources[sources < len(scores)]] = -torch.inf
    scores[:, targets[targets < scores.shape[1]]] = -torch.inf
    if greedy:
        return torch.cat([seeds, one_to_one(scores, wanted - len(seeds))])
    best, column = scores.max(1)
    pairs, taken = [], set()
    for row in best.argsort(descending=True, stable=True).tolist():
        if best[row] > -torch.inf and int(column[row]) not in taken:
            taken.add(int(column[row]))
            pairs.append((row, int(column[row])))
    found = torch.tensor(pairs[: wanted - len(seeds)], dtype=torch.int64, device=x.device)
    return torch.cat([seeds, found.reshape(-1, 2)])


def one_to_one(scores: Tensor, count: int) -> Tensor:
    """The first `count` pairs of the greedy matching: always the best score left. Spoils `scores`.

    A pair that is the best of its row and of its column is taken before either goes to another; so all such
    pairs are taken at once, round after round, until no score left could come among the first `count`.
    """
    pairs = torch.zeros((0, 2), dtype=torch.int64, device=scores.device)
    found = torch.zeros(0, dtype=scores.dtype, device=scores.device)
    while True:
        best, column = scores.max(1)
        left = best.max()
        if left == -torch.inf or int((found >= left).sum()) >= count:
            order = found.argsort(descending=True, stable=True)
            return pairs[order[:count]]
        row = torch.arange(len(scores), device=scores.device)
        mutual = (scores.argmax(0)[column] == row) & (best > -torch.inf)
        pairs = torch.cat([pairs, torch.stack([row[mutual], column[mutual]], 1)])
        found = torch.cat([found, best[mutual]])
        scores[row[mutual]] = -torch.inf
        scores[:, column[mutual]] = -torch.inf
