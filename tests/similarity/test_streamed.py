"""Searches against keys that stay: exact, whoever multiplies, however many queries and ties there are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from bilex import arithmetic
from bilex.errors import BilexError
from bilex.machine import Processor
from bilex.similarity import few, streamed
from bilex.similarity.streamed import StreamedKeys

BOTH = pytest.mark.parametrize("int8_products", [False, True])


def rows(count: int, width: int, seed: int) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    made[:, 0] *= 20  # one coordinate that outweighs all others, as real vectors have
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@BOTH
@pytest.mark.parametrize(
    ("keys", "width", "queries", "k"), [(5000, 300, 37, 10), (700, 24, 1, 3), (40, 7, 5, 40)]
)
def test_the_best_keys_are_those_of_float64(
    keys: int, width: int, queries: int, k: int, int8_products: bool
) -> None:
    stay, asked = rows(keys, width, 1), rows(queries, width, 2)
    penalty = np.random.default_rng(3).uniform(0, 0.5, keys).astype(np.float32)
    ready = StreamedKeys(stay, int8_products=int8_products)
    for term in (None, penalty):
        scores, found = ready.top_k(asked, k, term)
        true_scores, true_rows = few.top_k(asked, stay, k, term)
        np.testing.assert_array_equal(found, true_rows)
        np.testing.assert_array_equal(scores, true_scores)


@BOTH
def test_many_equal_keys_are_given_in_their_order(int8_products: bool) -> None:
    stay = np.repeat(rows(3, 16, 4), 1000, axis=0)
    _, found = StreamedKeys(stay, int8_products=int8_products).top_k(stay[1500:1501], 5)
    np.testing.assert_array_equal(found, [[1000, 1001, 1002, 1003, 1004]])


@BOTH
def test_keys_of_very_different_lengths(int8_products: bool) -> None:
    stay = rows(900, 20, 5) * np.geomspace(1e-3, 1e3, 900, dtype=np.float32)[:, None]
    asked = rows(4, 20, 6)
    scores, found = StreamedKeys(stay, int8_products=int8_products).top_k(asked, 6)
    true_scores, true_rows = few.top_k(asked, stay, 6, None)
    np.testing.assert_array_equal(found, true_rows)
    np.testing.assert_array_equal(scores, true_scores)


def test_whoever_reads_a_file_is_called_after_each_part() -> None:
    reads = []
    ready = StreamedKeys(rows(9000, 8, 7), lambda: reads.append(1))
    made = len(reads)
    assert made > 1
    ready.top_k(rows(40, 8, 8), 2)
    assert len(reads) > made


def test_a_row_that_is_not_finite_is_named() -> None:
    stay = rows(10, 8, 9)
    stay[6, 2] = np.nan
    with pytest.raises(BilexError, match="row 6"):
        StreamedKeys(stay)
    with pytest.raises(BilexError, match="query"):
        StreamedKeys(rows(10, 8, 9)).top_k(stay[6:7], 1)


@pytest.fixture
def cut_sums(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A processor that has instructions for 8-bit products, and a torch that does not use them."""

    def cut(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return out.copy_((a.int() @ b.int()).clamp(-32768, 32767))

    monkeypatch.setattr(torch, "_int_mm", cut)
    monkeypatch.setattr(streamed, "processor", lambda: Processor("new", frozenset({"avx512_vnni"}), 2))
    monkeypatch.setattr(streamed, "_WORTH_TORCH", 10)
    arithmetic.int8_limit.cache_clear()
    yield
    arithmetic.int8_limit.cache_clear()


@pytest.mark.usefixtures("cut_sums")
def test_products_that_are_not_added_up_right_are_not_used() -> None:
    stay, asked = rows(500, 64, 10), rows(5, 64, 11)
    scores, found = StreamedKeys(stay).top_k(asked, 4)
    true_scores, true_rows = few.top_k(asked, stay, 4, None)
    np.testing.assert_array_equal(found, true_rows)
    np.testing.assert_array_equal(scores, true_scores)
