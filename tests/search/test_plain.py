"""The plain search with numpy alone: the same answers as the large one, and no torch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from bilex import BilexError
from bilex.search import cpu, plain, top_k

RANDOM = np.random.default_rng(5)


def rows(count: int, width: int = 40) -> np.ndarray:
    found = RANDOM.standard_normal((count, width)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("with_penalty", [False, True])
@pytest.mark.parametrize(("queries", "keys", "k"), [(1, 1, 1), (3, 9000, 5), (32, 500, 500), (2, 20_000, 10)])
def test_the_same_as_the_large_search(queries: int, keys: int, k: int, with_penalty: bool) -> None:
    x, y = rows(queries), rows(keys)
    penalty = RANDOM.random(keys).astype(np.float32) if with_penalty else None
    scores, found = plain.top_k(x, y, k, penalty)
    expected_scores, expected = cpu.CpuSearch(y, penalty).top_k(x, k)
    assert np.array_equal(found, expected)
    np.testing.assert_array_max_ulp(scores, expected_scores, maxulp=1)


def test_equal_keys_come_in_order_wherever_they_stand() -> None:
    y = rows(9000)
    copies = [11, 500, 4097, 8191, 8192, 8999]
    y[copies] = y[11]
    _, found = plain.top_k(y[11:12], y, len(copies), None)
    assert found[0].tolist() == copies
    _, found = plain.top_k(y[11:12], y, 3, None)
    assert found[0].tolist() == copies[:3]


def test_scores_that_differ_less_than_a_float32_are_equal() -> None:
    y = np.tile(rows(1), (50, 1)).astype(np.float64)
    y[40, 0] += 1e-9  # lost when rounded to float32, or a little larger: the scores round to the same number
    keys = y.astype(np.float32)
    scores, found = plain.top_k(keys[:1], keys, 3, None)
    assert np.array_equal(scores[0, 0], scores[0, 2])
    assert found[0].tolist() == [0, 1, 2]


def test_scores_near_zero_are_exact() -> None:
    x = np.zeros((1, 4), np.float32)
    x[0, 0] = 1
    y = np.zeros((3, 4), np.float32)
    y[:, 1] = 1
    y[2, 0] = 1e-30
    scores, found = plain.top_k(x, y, 2, None)
    assert found[0].tolist() == [2, 0]
    assert scores[0, 0] == np.float32(1e-30)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_named(bad: float) -> None:
    x, y = rows(2), rows(9000)
    y[8500, 3] = bad
    with pytest.raises(BilexError, match="row 8500 of the vectors"):
        top_k(x, y, 2)
    x[1, 0] = bad
    with pytest.raises(BilexError, match="row 1 of the vectors"):
        top_k(x, rows(10), 2)


def test_only_so_many_are_few() -> None:
    assert plain.are_few(1, 1 << 24)
    assert plain.are_few(32, 1000)
    assert not plain.are_few(33, 1000)
    assert not plain.are_few(2, 1 << 24)
    assert not plain.are_few(0, 10)


def test_a_few_queries_need_no_torch() -> None:
    code = (
        "import sys, numpy as np\nfrom bilex.search import top_k\n"
        "y = np.eye(5, dtype=np.float32)\n"
        "assert top_k(y[:2], y, 1)[1].ravel().tolist() == [0, 1]\n"
        "sys.exit(str({'torch', 'numba'} & set(sys.modules)) if {'torch', 'numba'} & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
