"""Whether two languages were really brought together, found without gold pairs.

Self-learning always ends in a map under which many words are each other's best partner: it chose the
partners so. English and Russian that were wrongly matched agree as well as English and Russian that
were rightly matched (49 % of 4,000 words each). What distinguishes them is whether a part of the pairs
predicts the rest: a rotation learned from few of them finds the others again only if there is a true
common structure (40 % against 13 % there; 82 % for English and French).
"""

from __future__ import annotations

import numpy as np
import torch

from bilex.search.stochastic import StochasticMatcher
from bilex.search.threads import single_threaded_torch

COLLAPSED = 0.25
"""Below this share of recovered pairs the languages were most likely not brought together."""

_WORDS = 4000
_SPLITS = 3
_LOWEST = 1e-12
_POLAR_ERROR = 1e-8


def rotation(x: torch.Tensor, y: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """The orthogonal map of a dictionary from the source onto the target.

    Where the dimensions differ, it leads onto the directions that the two have in common; in both cases
    xWyᵀ are the similarities of VecMap, which turns both sides by half of it.
    """
    covariance = _covariance(x, y, pairs).double()
    turn = polar_factor(covariance) if x.device.type == "cuda" else None
    if turn is None:
        turn = _by_svd(covariance.cpu())
    return turn.to(x.device, torch.float32)


def _by_svd(matrix: torch.Tensor) -> torch.Tensor:
    """UVᵀ of a matrix UΣVᵀ; one thread needs less time than two, which would wait for each other."""
    with single_threaded_torch() as use_one_thread:
        use_one_thread()
        u, _, v = torch.linalg.svd(matrix, full_matrices=False)
        turn: torch.Tensor = u @ v
    return turn


def _covariance(x: torch.Tensor, y: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """The sum of xᵢᵀyⱼ over pairs.

    A CPU first adds up the partners of a source row if there are more pairs than rows. A GPU would do so in
    another order each time.
    """
    if x.device.type != "cpu" or len(pairs) <= (rows := int(pairs[:, 0].max()) + 1):
        return x[pairs[:, 0]].T @ y[pairs[:, 1]]
    from bilex.search.stochastic_kernels import add_rows

    partners = torch.zeros(rows, y.shape[1])
    add_rows(pairs.numpy(), y.contiguous().numpy(), partners.numpy())
    return x[:rows].T @ partners


def polar_factor(matrix: torch.Tensor) -> torch.Tensor | None:
    """UVᵀ of a matrix UΣVᵀ by products alone: on a GPU many times faster than an SVD.

    Newton-Schulz steps X ← ρX(3 − ρ²XᵀX)/2 bring every singular value from [lowest, 1] to 1. The step is as
    wide as values in [lowest, 1] allow, ρ² = 3/(1 + lowest + lowest²), but never so wide that a value of 1
    is thrown back under 1/100, which would cost digits.

    Args:
        matrix: In float64.

    Returns:
        The factor, or None where the smallest singular value is so small (less than 1e-12 of the root of the
        sum of their squares) that the result is not orthogonal to eight digits.
    """
    turned = matrix.shape[0] > matrix.shape[1]
    x: torch.Tensor = (matrix.T if turned else matrix) / torch.linalg.matrix_norm(matrix)
    lowest = _LOWEST
    while lowest < 1 - 1e-15:
        bound = max(lowest, 0.01)
        step = (3 / (1 + bound + bound**2)) ** 0.5
        x = torch.addmm(x, x @ x.T, x, beta=1.5 * step, alpha=-0.5 * step**3)
        lowest = min(step * value * (3 - (step * value) ** 2) / 2 for value in (lowest, 1.0))
    error = (x @ x.T - torch.eye(len(x), dtype=x.dtype, device=x.device)).abs().amax()
    if not float(error) < _POLAR_ERROR:
        return None
    return x.T if turned else x


def recovered_share(
    x: torch.Tensor, y: torch.Tensor, pairs: torch.Tensor, *, k: int = 10, seed: int = 0
) -> float:
    """The share of mutual best partners that a rotation learned from a few other ones finds again.

    Among the 4,000 most frequent words of each language, the pairs that are each other's best by CSLS
    under the map of `pairs` are split at random: as many as there are dimensions (at most half) to
    learn a rotation from, the others to be found again. The mean over three splits is returned.

    Args:
        x: Source rows, most frequent first, on the device that is to be used.
        y: Target rows.
        pairs: The dictionary to be judged, on that device too.
        k: Neighbours in CSLS.
        seed: Of the splits.

    Returns:
        From 0 to 1; 0 if hardly any words are each other's best partner.
    """
    turn = rotation(x, y, pairs)
    x, y = x[:_WORDS], y[:_WORDS]
    match = StochasticMatcher(k, device=x.device)
    found = match(x @ turn, y, 1.0)
    words = torch.nonzero(found.backward[found.forward] == torch.arange(len(x), device=x.device))[:, 0]
    learned = min(max(x.shape[1], y.shape[1]), len(words) // 2)
    if learned < 2:
        return 0.0
    random = np.random.default_rng(seed)
    shares = []
    for _ in range(_SPLITS):
        order = words[torch.from_numpy(random.permutation(len(words))).to(x.device)]
        few, rest = order[:learned], order[learned:]
        again = match(x @ rotation(x, y, torch.stack([few, found.forward[few]], dim=1)), y, 1.0)
        shares.append(float((again.forward[rest] == found.forward[rest]).double().mean()))
    return float(np.mean(shares))
