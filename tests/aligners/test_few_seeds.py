"""Fewer seeds than dimensions: rounding must not decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from c1_worlds import World

from bilex.aligners import get_method
from bilex.aligners.advanced import advanced_maps
from bilex.aligners.procrustes import common_rotations
from bilex.lexicon import Lexicon


@pytest.mark.parametrize("shape", [(12, 12), (12, 9), (9, 12)])
def test_a_rotation_from_few_pairs_does_not_hang_on_rounding(shape: tuple[int, int]) -> None:
    numbers = np.random.default_rng(0)
    x, y = numbers.normal(size=(5, shape[0])), numbers.normal(size=(5, shape[1]))
    u, values, v = common_rotations(x.T @ y)
    rounded = (x.T @ y) * (1 + 1e-15 * numbers.normal(size=shape))
    again_u, _, again_v = common_rotations(rounded)
    np.testing.assert_allclose(u @ v.T, again_u @ again_v.T, atol=1e-7)
    np.testing.assert_allclose(u.T @ u, np.eye(min(shape)), atol=1e-9)
    np.testing.assert_allclose(v.T @ v, np.eye(min(shape)), atol=1e-9)
    np.testing.assert_allclose((u * values) @ v.T, x.T @ y, atol=1e-9)


def test_enough_pairs_give_the_plain_decomposition_to_the_bit() -> None:
    numbers = np.random.default_rng(1)
    covariance = numbers.normal(size=(30, 12)).T @ numbers.normal(size=(30, 12))
    u, values, v = common_rotations(covariance)
    expected = scipy.linalg.svd(covariance, full_matrices=False)
    for found, plain in zip((u, values, v.T), expected, strict=True):
        np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("procrustes", {}),
        ("advanced", {}),
        ("rcsls", {"iterations": 3}),
        ("c1", {"iterations": 1, "updates": 3}),
    ],
)
def test_the_order_of_few_seeds_does_not_change_answers(name: str, settings: dict[str, Any]) -> None:
    """Another order of adding up stands in for another number of threads."""
    world = World(words=300, dim=40)
    pairs = world.seeds(15).pairs
    found = []
    for seeds in (pairs, pairs[::-1]):
        fitted = get_method(name)(device="cpu", **settings).fit(world.source, world.target, Lexicon(seeds))
        x, y = fitted.source_map_(world.source.vectors), fitted.target_map_(world.target.vectors)
        found.append((x @ y.T).argmax(axis=1))
    assert (found[0] == found[1]).mean() > 0.99


def test_directions_without_weight_hold_nothing() -> None:
    world = World(words=50, dim=30)
    x, y = world.source.vectors[:8], world.target.vectors[:8]
    maps = advanced_maps(x, y)
    for one in (maps.source, maps.target):
        assert int((one.abs().amax(dim=0) > 0).sum()) == 8
