"""Comparisons in vectors against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from bilex.core.compiling import njit
from bilex.search.vector_loops import GROUP, lowest_bit, reaching, reaching_lower

ROWS, COLUMNS = 5, 3 * GROUP


@njit
def columns_that_reach(
    block: Any, row: int, scale: Any, scales: Any, raised: Any, bar: Any, coarse: Any, bars: Any
) -> Any:
    found = np.zeros(block.shape[1], np.bool_)
    for first in range(0, block.shape[1], GROUP):
        bits = reaching(block, row, first, scale, scales, raised, bar, coarse, bars)
        while bits != 0:
            found[first + lowest_bit(bits)] = True
            bits &= bits - np.uint64(1)
    return found


def blocks() -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.float32]]]:
    """Cells of each kind and the numbers that they stand for; whole numbers, so that many tie with a bar."""
    numbers = np.random.default_rng(1).integers(-60, 61, (ROWS, COLUMNS)).astype(np.float32)
    halves = torch.from_numpy(numbers).to(torch.bfloat16).view(torch.uint16).numpy()
    return {
        "float32": (numbers, numbers),
        "bfloat16": (halves, numbers),
        "int32": (numbers.astype(np.int32), numbers),
    }


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("bar", [-np.inf, 10.0, 29.5, np.inf])
@pytest.mark.parametrize("coarse", [0.0, 2.0])
def test_columns_that_reach_a_bar_are_those_that_numpy_finds(kind: str, bar: float, coarse: float) -> None:
    rng = np.random.default_rng(2)
    cells, numbers = blocks()[kind]
    scales = rng.integers(1, 3, COLUMNS).astype(np.float32)
    raised, bars = (rng.integers(low, 120, COLUMNS).astype(np.float32) for low in (-5, 20))
    bars[::7] = np.inf
    bars[3] = -np.inf
    for row in range(ROWS):
        scale = np.float32(0.5 + row)
        scores = numbers[row] * scale * (scales if kind == "int32" else 1) + raised
        expected = (scores >= bar) | (scores + np.float32(coarse) >= bars)
        found = columns_that_reach(
            cells, row, scale, scales, raised, np.float32(bar), np.float32(coarse), bars
        )
        np.testing.assert_array_equal(found, expected)


@njit
def columns_that_reach_the_lowest(
    block: Any,
    row: int,
    scale: Any,
    bar: Any,
    other_bar: Any,
    penalty: Any,
    scales: Any,
    bars: Any,
    other_bars: Any,
    penalties: Any,
) -> Any:
    found = np.zeros(block.shape[1], np.bool_)
    for first in range(0, block.shape[1], GROUP):
        bits = reaching_lower(
            block, row, first, scale, bar, other_bar, penalty, scales, bars, other_bars, penalties
        )
        for place in range(GROUP):
            found[first + place] = (bits >> np.uint64(place)) & np.uint64(1)
    return found


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize(("bar", "other_bar"), [(np.inf, np.inf), (25.0, 30.0), (40.0, 12.0), (-np.inf, 0.0)])
def test_columns_that_reach_the_lowest_bar_are_those_that_numpy_finds(
    kind: str, bar: float, other_bar: float
) -> None:
    rng = np.random.default_rng(3)
    cells, numbers = blocks()[kind]
    scales, penalties = (rng.integers(1, 3, COLUMNS).astype(np.float32) for _ in range(2))
    bars, other_bars = (rng.integers(low, 120, COLUMNS).astype(np.float32) for low in (20, 30))
    bars[::7] = np.inf
    for row in range(ROWS):
        scale, penalty = np.float32(0.5 + row), np.float32(row)
        own = np.minimum(np.float32(bar), np.float32(other_bar) + penalties)
        expected = numbers[row] * scale * scales >= np.minimum(own, np.minimum(bars, other_bars + penalty))
        found = columns_that_reach_the_lowest(
            cells,
            row,
            scale,
            np.float32(bar),
            np.float32(other_bar),
            penalty,
            scales,
            bars,
            other_bars,
            penalties,
        )
        np.testing.assert_array_equal(found, expected)
        assert 0 < expected.sum() < COLUMNS or bar == -np.inf
