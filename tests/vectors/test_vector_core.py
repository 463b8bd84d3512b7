from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bilex.core.errors import BilexError
from bilex.vectors import WordVectors


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
