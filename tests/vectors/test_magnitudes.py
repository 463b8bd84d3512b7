"""Vectors of very large and very small numbers keep their directions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bilex.aligners import get_method
from bilex.aligners.preparation import UnitRows
from bilex.core.errors import BilexError
from bilex.vectors import WordVectors
from bilex.vectors.stored import unit_rows, unit_rows_float32
from planted import planted

SIZES = [1e-38, 1e-30, 1e-20, 1.0, 1e20, 1e30, 1e38]


def scaled(vectors: WordVectors) -> WordVectors:
    """The same directions, each of another of the lengths."""
    factors = np.resize(np.array(SIZES), len(vectors))[:, None]
    largest = np.abs(vectors.vectors).max(axis=1, keepdims=True)
    rows = vectors.vectors.astype(np.float64) / largest * factors
    return WordVectors(vectors.index_to_key, rows.astype(np.float32))


def test_unit_rows_of_any_size() -> None:
    world = planted(70, 9)
    plain, odd = world.source, scaled(world.source)
    expected = unit_rows(plain.vectors)
    np.testing.assert_allclose(unit_rows(odd.vectors), expected, atol=1e-6)
    np.testing.assert_allclose(unit_rows_float32(odd.vectors), expected, atol=1e-6)
    np.testing.assert_allclose(UnitRows(odd, torch.device("cpu"))[:].numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(odd.preprocessed("unit").vectors, expected, atol=1e-6)
    for divided in (unit_rows, unit_rows_float32):
        assert not divided(np.zeros((2, 3), np.float32)).any()


def test_rows_of_usual_size_are_divided_by_their_lengths_as_ever() -> None:
    rows = planted(50, 7).source.vectors
    assert np.array_equal(unit_rows_float32(rows), rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("name", ["procrustes", "c1", "vecmap-supervised", "rcsls"])
def test_a_method_learns_the_same_from_vectors_of_any_size(name: str) -> None:
    world, settings = planted(120, 8, noise=0.1), {}
    if name == "c1":
        settings = {"iterations": 1, "updates": 1}
    maps = []
    for source, target in ((world.source, world.target), (scaled(world.source), scaled(world.target))):
        fitted = get_method(name)(device="cpu", **settings).fit(source, target, world.pairs(0, 60))
        maps.append(fitted.source_map_(source.vectors))
    np.testing.assert_allclose(maps[0], maps[1], atol=2e-4)


def test_numbers_beyond_float16_are_refused_by_word(tmp_path: Path) -> None:
    vectors = WordVectors(["small", "large"], np.array([[1, 2], [3, 70000]], np.float32))
    with pytest.raises(BilexError, match="'large' holds a number beyond what float16 can hold"):
        vectors.save(tmp_path / "v", dtype="float16")
    assert not (tmp_path / "v").exists()
    vectors.save(tmp_path / "v", dtype="int8")
