from __future__ import annotations

import numpy as np
import pytest

from bilex.aligners.advanced import advanced_maps, check_connected, joint_maps, rotate_together
from bilex.core.errors import BilexError


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_two_languages_get_the_advanced_mapping() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 12)) * np.linspace(0.3, 2, 12)
    y = x @ np.linalg.qr(rng.normal(size=(12, 12)))[0] + 0.3 * rng.normal(size=(300, 12))
    x, y = _unit(x), _unit(y)
    pairs = np.stack([np.arange(200)] * 2, axis=1)
    maps = joint_maps({"a": x, "b": y}, {("a", "b"): pairs})
    known = advanced_maps(x[:200], y[:200])
    ours = (x @ maps["a"]) @ (y @ maps["b"]).T
    closed_form = (x @ known.source.numpy()) @ (y @ known.target.numpy()).T
    np.testing.assert_allclose(ours, closed_form, atol=1e-6)


def test_rotations_of_rotated_copies_are_found_through_others() -> None:
    rng = np.random.default_rng(1)
    meanings = rng.normal(size=(50, 6))
    turns = {name: np.linalg.qr(rng.normal(size=(6, 6)))[0] for name in "abcd"}
    rows = {name: meanings @ turn for name, turn in turns.items()}
    chain = {two: rows[two[0]].T @ rows[two[1]] for two in (("a", "b"), ("b", "c"), ("c", "d"))}
    rotations = rotate_together(list("abcd"), chain)
    for name in "bcd":
        np.testing.assert_allclose(rows[name] @ rotations[name], rows["a"] @ rotations["a"], atol=1e-9)


def test_a_language_that_nothing_connects_is_named() -> None:
    with pytest.raises(BilexError, match="no pairs connect 'ru' with 'en'"):
        check_connected(["en", "fi", "ru"], [("fi", "en")])
