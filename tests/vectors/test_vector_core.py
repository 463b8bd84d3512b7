"""Word vectors in memory, of usual and unusual lengths."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from bilex import BilexError
from bilex.aligners import get_method
from bilex.aligners.preparation import UnitRows
from bilex.vectors import WordVectors
from bilex.vectors.stored import unit_rows, unit_rows_float32
from planted import planted


@pytest.fixture
def vectors() -> WordVectors:
    matrix = np.random.default_rng(5).standard_normal((20, 4)).astype(np.float32)
    return WordVectors([f"w{i}" for i in range(20)], matrix)


def test_gensim_and_back(vectors: WordVectors, tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason="gensim is not installed: exchange with it is NOT tested")
    keyed = vectors.to_gensim()
    assert keyed.index_to_key == vectors.index_to_key
    assert keyed.key_to_index == vectors.key_to_index
    np.testing.assert_array_equal(keyed.vectors, vectors.vectors)
    back = WordVectors.from_gensim(keyed)
    assert back.index_to_key == vectors.index_to_key
    np.testing.assert_array_equal(back.vectors, vectors.vectors)


@pytest.mark.parametrize("binary", [False, True])
def test_files_are_exchanged_with_gensim(vectors: WordVectors, tmp_path: Path, binary: bool) -> None:
    pytest.importorskip("gensim", reason="gensim is not installed: exchange with it is NOT tested")
    from gensim.models import KeyedVectors

    path = tmp_path / ("v.bin" if binary else "v.vec")
    vectors.save(path)
    theirs = KeyedVectors.load_word2vec_format(str(path), binary=binary)
    assert theirs.index_to_key == vectors.index_to_key
    np.testing.assert_array_equal(theirs.vectors, vectors.vectors)
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    ours = WordVectors.load(tmp_path / "theirs")
    assert ours.report.format == ("binary" if binary else "text")
    np.testing.assert_array_equal(ours.vectors, vectors.vectors)


def test_preprocessing_is_named_and_in_order(vectors: WordVectors) -> None:
    done = vectors.preprocessed("unit", "center")
    assert done.preprocessing == ("unit", "center")
    unit = vectors.vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    np.testing.assert_allclose(done.vectors, unit - unit.mean(axis=0), atol=1e-6)
    with pytest.raises(BilexError, match="'whiten' is not known"):
        vectors.preprocessed("whiten")


def test_head_shares_memory(vectors: WordVectors) -> None:
    head = vectors.head(3)
    assert head.index_to_key == ["w0", "w1", "w2"]
    assert np.shares_memory(head.vectors, vectors.vectors)
    assert vectors.head(None) is vectors


def test_constructor_refuses_what_does_not_fit() -> None:
    with pytest.raises(BilexError, match="do not fit"):
        WordVectors(["a"], np.ones((2, 2), np.float32))
    with pytest.raises(BilexError, match="twice"):
        WordVectors(["a", "a"], np.ones((2, 2), np.float32))


def test_importing_the_room_is_light() -> None:
    code = (
        "import sys, bilex.vectors\n"
        "heavy = {'torch', 'numba', 'gensim', 'scipy'} & set(sys.modules)\n"
        "raise SystemExit(', '.join(heavy) or None)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


# Vectors of very large and very small numbers keep their directions.


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
