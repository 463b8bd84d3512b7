from __future__ import annotations

import numpy as np
import pytest
import torch

from bilex import BilexError
from bilex.aligners import Map
from bilex.aligners.maps import Array, Center, Dense, Linear, Local, MapStep, Tanh, Unit

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(50, 6)).astype(np.float32)
MATRIX = RNG.normal(size=(6, 4))


def chain() -> Map:
    return Map([Unit(), Center(ROWS.mean(0)), Linear(MATRIX), Unit()])


def test_a_chain_does_its_steps_in_order() -> None:
    unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    expected = (unit - ROWS.mean(0)) @ MATRIX
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    mapped = chain()(ROWS)
    assert mapped.dtype == np.float32
    np.testing.assert_allclose(mapped, expected, atol=1e-6)


@pytest.mark.parametrize("block", [1, 7, 50, 1000])
def test_blocks_do_not_change_the_result(block: int) -> None:
    np.testing.assert_allclose(chain()(ROWS, block), chain()(ROWS), atol=1e-6)


def test_lists_and_float64_are_taken_and_nothing_gives_nothing() -> None:
    np.testing.assert_array_equal(chain()(ROWS.astype(np.float64)), chain()(ROWS))
    np.testing.assert_array_equal(chain()(ROWS.tolist()), chain()(ROWS))
    assert chain()(ROWS[:0]).shape == (0, 4)
    with pytest.raises(BilexError, match=r"rows of vectors, not an array of shape \(6,\)"):
        chain()(ROWS[0])


def test_a_zero_row_stays_zero() -> None:
    np.testing.assert_array_equal(Map([Unit()])(np.zeros((2, 3))), np.zeros((2, 3)))


def test_the_input_is_left_as_it_was() -> None:
    before = ROWS.copy()
    chain()(ROWS)
    np.testing.assert_array_equal(ROWS, before)


def test_state_round_trip() -> None:
    kinds, tensors = chain().state("source")
    assert kinds == ["unit", "center", "linear", "unit"]
    assert set(tensors) == {"source.1.mean", "source.2.matrix"}
    again = Map.from_state("source", kinds, tensors.__getitem__)
    np.testing.assert_array_equal(again(ROWS), chain()(ROWS))


def test_a_step_of_a_newer_version_is_named() -> None:
    with pytest.raises(BilexError, match=r"map step 'warp' is not known .* upgrade bilex"):
        Map.from_state("source", ["unit", "warp"], {}.__getitem__)


def test_the_matrix_of_a_map_with_one() -> None:
    np.testing.assert_array_equal(chain().matrix, MATRIX.astype(np.float32))
    with pytest.raises(BilexError, match="'linear', 'linear'"):
        _ = Map([Linear(MATRIX), Linear(MATRIX.T)]).matrix
    with pytest.raises(BilexError, match="not one matrix"):
        _ = Map([Unit()]).matrix


@pytest.mark.parametrize("block", [7, 1000])
def test_torch_maps_as_numpy_does(block: int) -> None:
    found = chain()(ROWS, block, device=torch.device("cpu"))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, chain()(ROWS), atol=1e-6)


def test_torch_takes_rows_of_any_length() -> None:
    rows = ROWS.copy()
    rows[0], rows[1], rows[2] = 0, rows[1] * np.float32(1e30), rows[2] * np.float32(1e-30)
    unit = Map([Unit()])
    np.testing.assert_allclose(unit(rows, device=torch.device("cpu")), unit(rows), atol=1e-6)


def test_torch_hands_steps_that_it_does_not_know_to_numpy() -> None:
    network = Map([Dense(MATRIX, np.ones(4)), Tanh(), Unit()])
    np.testing.assert_allclose(network(ROWS, device=torch.device("cpu")), network(ROWS), atol=1e-6)


def test_a_step_of_another_package_computes_with_its_tensors() -> None:
    class Shift(MapStep):
        kind, parts = "shift-of-another-package", ("by",)
        by: Array

        def __call__(self, rows: Array) -> Array:
            return rows + self.by

    try:
        kinds, tensors = Map([Shift([1, 2])]).state("map")
        again = Map.from_state("map", kinds, tensors.__getitem__)
        np.testing.assert_array_equal(again(np.zeros((1, 2))), [[1, 2]])
    finally:
        del MapStep.known[Shift.kind]


def test_the_local_step_of_older_models_moves_only_rows_near_an_anchor() -> None:
    rows = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]], np.float32)
    local = Local([[1.0, 0.0, 0.0]], [[0.0, 0.0, 0.5]], [0.1], [1.0])
    kinds, tensors = Map([local]).state("map")
    moved = Map.from_state("map", kinds, tensors.__getitem__)(rows)
    expected = 2 * np.array([1.0, 0.0, 0.25]) / np.linalg.norm([1.0, 0.0, 0.25])
    np.testing.assert_allclose(moved, [expected, rows[1]], atol=1e-6)
