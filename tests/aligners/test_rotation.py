"""The rotation of a dictionary."""

from __future__ import annotations

import numpy as np
import torch

from bilex.aligners.vecmap import rotation


def test_fewer_pairs_than_dimensions_give_a_rotation() -> None:
    """The part that they leave open is anything, but it must be a rotation."""
    random = np.random.default_rng(4)
    x, y = (torch.from_numpy(random.normal(size=(20, 50)).astype(np.float32)) for _ in "xy")
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
