"""Procrustes between spaces of different dimensions, mixing, and the choice of λ."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from bilex.encoders.stage import Combination, generalised_procrustes
from bilex.vectors.stored import unit_rows

PAIRS = np.array([[i, i] for i in range(40)])


def random_unit(rows: int, dim: int, seed: int) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).normal(size=(rows, dim)))


@pytest.mark.parametrize(("first", "second"), [(6, 9), (9, 6), (7, 7)])
def test_a_planted_rotation_between_dimensions_is_found(first: int, second: int) -> None:
    small, large = sorted((first, second))
    views = random_unit(50, small, 0)
    across = np.linalg.qr(np.random.default_rng(1).normal(size=(large, small)))[0].T.astype(np.float32)
    other = views @ across
    pair = (views, other) if first <= second else (other, views)
    one, two = generalised_procrustes(*pair)
    np.testing.assert_allclose(pair[0] @ one, pair[1] @ two, atol=1e-5)
    assert one.shape[1] == two.shape[1] == large


def test_the_map_is_u_i0_vt_of_the_full_svd() -> None:
    views, others = random_unit(30, 5, 2), random_unit(30, 8, 3)
    u, _, vt = scipy.linalg.svd(views.astype(np.float64).T @ others)
    expected = u @ np.eye(5, 8) @ vt
    np.testing.assert_allclose(generalised_procrustes(views, others)[0], expected, atol=1e-6)


def test_rows_are_the_formula_written_out() -> None:
    static = random_unit(60, 5, 0), random_unit(50, 5, 1)
    encoded = random_unit(60, 8, 2), random_unit(50, 8, 3)
    combination = Combination.fit(static, encoded, PAIRS, 0.3)
    views = np.concatenate([static[0][:40], static[1][:40]])
    others = np.concatenate([encoded[0][:40], encoded[1][:40]])
    u, _, vt = scipy.linalg.svd(views.astype(np.float64).T @ others)
    mapped = static[0] @ (u @ np.eye(5, 8) @ vt)
    expected = 0.7 * mapped / np.linalg.norm(mapped, axis=1, keepdims=True) + 0.3 * encoded[0]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(combination(static[0], encoded[0]), expected, atol=1e-5)


def test_the_ends_of_mixing_and_words_that_one_view_does_not_know() -> None:
    static, encoded = random_unit(4, 5, 0), random_unit(4, 8, 1)
    combination = Combination.fit((static, static), (encoded, encoded), PAIRS[:4], 0.4)
    alone = combination.with_mixing(1.0)(static, encoded)
    np.testing.assert_allclose(alone, encoded, atol=1e-6)
    np.testing.assert_allclose(combination(np.zeros_like(static), encoded), encoded, atol=1e-6)
    unread = combination(static, np.zeros_like(encoded))
    np.testing.assert_allclose(unread, combination.with_mixing(0.0)(static, encoded), atol=1e-6)
    np.testing.assert_allclose(unread @ unread.T, static @ static.T, atol=1e-5)


def test_a_combination_saves_itself() -> None:
    combination = Combination(np.eye(2, 3, dtype=np.float32), np.eye(3, dtype=np.float32), 0.3)
    again = Combination.from_state(combination.state())
    assert again.mixing == 0.3
    np.testing.assert_array_equal(again.static_map, combination.static_map)
    np.testing.assert_array_equal(again.encoder_map, combination.encoder_map)
