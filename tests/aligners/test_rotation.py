"""The rotation of a dictionary: products alone against an SVD."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bilex.aligners.vecmap import polar_factor, rotation


def _matrix(rows: int, columns: int, lowest: float) -> torch.Tensor:
    """Singular values spread evenly in their logarithms from 1 down to `lowest`."""
    random = np.random.default_rng(rows + columns)
    size = min(rows, columns)
    u, _ = np.linalg.qr(random.normal(size=(rows, size)))
    v, _ = np.linalg.qr(random.normal(size=(columns, size)))
    return torch.from_numpy(7 * (u * np.geomspace(1, lowest, size)) @ v.T)


@pytest.mark.parametrize("shape", [(60, 60), (40, 60), (60, 40), (1, 1)])
@pytest.mark.parametrize("lowest", [0.5, 1e-3, 1e-7])
def test_products_find_the_factor_of_an_svd(shape, lowest) -> None:
    matrix = _matrix(*shape, lowest)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    found = polar_factor(matrix)
    assert found is not None
    assert (found - u @ v).abs().max() < 1e-8


def test_what_products_cannot_find_is_left_to_the_svd() -> None:
    """Fewer pairs than dimensions: the rest of the rotation is anything, but it must be a rotation."""
    random = np.random.default_rng(4)
    x, y = (torch.from_numpy(random.normal(size=(20, 50)).astype(np.float32)) for _ in "xy")
    assert polar_factor(x.double().T @ y.double()) is None
    assert polar_factor(torch.zeros(5, 5, dtype=torch.float64)) is None
    turn = rotation(x, y, torch.arange(20).repeat(2, 1).T)
    assert (turn @ turn.T - torch.eye(50)).abs().max() < 1e-5


def test_rotation_undoes_a_rotation_and_counts_pairs_as_often_as_they_come() -> None:
    random = np.random.default_rng(1)
    x = torch.from_numpy(random.normal(size=(80, 12)).astype(np.float32))
    turn, _ = np.linalg.qr(random.normal(size=(12, 12)))
    y = (x.double() @ torch.from_numpy(turn)).float()
    pairs = torch.arange(80).repeat(2, 1).T
    assert (rotation(x, y, pairs) - torch.from_numpy(turn)).abs().max() < 1e-5
    y = y + torch.from_numpy(random.normal(size=y.shape).astype(np.float32))
    twice = torch.cat([pairs, pairs[:20]])
    weights = np.ones(80)
    weights[:20] = 2
    u, _, v = np.linalg.svd((x.double().numpy() * weights[:, None]).T @ y.double().numpy())
    assert (rotation(x, y, twice) - torch.from_numpy(u @ v)).abs().max() < 1e-5
