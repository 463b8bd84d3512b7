"""Pairs that are induced from mapped vectors: for augmentation, and as confident seeds of another pass."""

from __future__ import annotations

import numpy as np
import pytest

from bilex.aligners.contrast import rejected_partners
from bilex.aligners.induction import (
    Induced,
    augmentation,
    confident_pairs,
    induce_pairs,
    without_pairs,
    without_words_of,
)

NONE = np.zeros((0, 2), np.int64)


def half_csls(x: np.ndarray, y: np.ndarray, full: bool) -> np.ndarray:
    cosines = x @ y.T
    scores = 2 * cosines - np.sort(cosines, 0)[-10:].mean(0)
    return scores - np.sort(cosines, 1)[:, -10:].mean(1)[:, None] if full else scores


@pytest.mark.parametrize("full", [False, True], ids=["half CSLS", "full CSLS"])
def test_induced_pairs_follow_the_definition(full: bool) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 10)).astype(np.float32)
    y = np.concatenate([x[:150], rng.normal(size=(150, 10))]) + 0.5 * rng.normal(size=(300, 10))
    x, y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, y.astype(np.float32)))
    found = induce_pairs(x, y, frequent=120, keep=50, full_csls=full, device="cpu")
    for pairs, query_side, scores in (
        (found.forward, 0, half_csls(x, y, full)),
        (found.backward, 1, half_csls(y, x, full)),
    ):
        best = scores[:120].argmax(1)
        order = np.argsort(-scores[:120].max(1), kind="stable")[:50]
        np.testing.assert_array_equal(pairs[:, query_side], order)
        np.testing.assert_array_equal(pairs[:, 1 - query_side], best[order])


def test_more_frequent_words_asked_for_than_there_are() -> None:
    x = np.eye(5, dtype=np.float32)
    found = induce_pairs(x, x, frequent=100, keep=100, k=2, device="cpu")
    assert sorted(map(tuple, found.forward.tolist())) == [(i, i) for i in range(5)]


def test_augmentation_is_a_union_without_seed_words() -> None:
    forward, backward = np.array([[1, 10], [2, 20], [3, 30]]), np.array([[4, 40], [2, 20], [5, 30]])
    none = np.zeros((0, 2), np.int64)
    everything = augmentation(Induced(forward, backward), none)
    assert everything.tolist() == [[1, 10], [2, 20], [3, 30], [4, 40], [5, 30]]
    seeds = np.array([[1, 99], [77, 30]])
    assert augmentation(Induced(forward, backward), seeds).tolist() == [[2, 20], [4, 40]]
    assert without_words_of(everything, none).tolist() == everything.tolist()


def test_confident_pairs_are_each_others_best_frequent_ones_preferred_in_order_of_confidence() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(count, 8)) for count in (40, 50))
    y[:20] = x[:20] + rng.normal(size=(20, 8)) * np.linspace(0.02, 0.4, 20)[:, None]
    x, y = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (x, y))
    cosine = x @ y.T
    score = 2 * cosine - np.sort(cosine, 1)[:, -10:].mean(1)[:, None] - np.sort(cosine, 0)[-10:].mean(0)
    score -= 0.05 * (np.log(100 + np.arange(40))[:, None] + np.log(100 + np.arange(50)))
    mutual = [(a, b) for a, b in enumerate(score.argmax(1)) if score[:, b].argmax() == a]
    expected = sorted(mutual, key=lambda pair: -score[pair])
    found = confident_pairs(x.astype(np.float32), y.astype(np.float32), NONE, device="cpu")[1]
    assert [tuple(pair) for pair in found.tolist()] == expected
    assert len(expected) > 20
    few = confident_pairs(x.astype(np.float32), y.astype(np.float32), NONE, words=10, device="cpu")[1]
    assert 0 < len(few) <= 10 and (few < 10).all()


def test_of_two_words_about_equally_near_the_more_frequent_is_taken() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=(3000, 8)).astype(np.float32)
    y[3] = y[2000] + 0.01
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    found = confident_pairs(y[2000:2001], y, NONE, device="cpu")[1]
    assert found.tolist() == [[0, 3]]


def test_spellings_are_confirmed_by_answers_of_both_directions() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 8)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    spelled = np.array([[5, 5], [7, 200], [250, 250]])
    assert confident_pairs(x, x, spelled, device="cpu")[0].tolist() == [[5, 5], [250, 250]]
    assert confident_pairs(x, x, spelled, words=100, device="cpu")[0].tolist() == [[5, 5]]


def test_rejected_pairs_are_left_out_of_pairs_and_found_by_their_words() -> None:
    pairs, rejected = np.array([[0, 1], [2, 3], [2, 4]]), np.array([[2, 3], [0, 9]])
    assert without_pairs(pairs, rejected).tolist() == [[0, 1], [2, 4]]
    who, what = rejected_partners(pairs[:, 0], rejected, 0)
    assert list(zip(who.tolist(), what.tolist(), strict=True)) == [(0, 9), (1, 3), (2, 3)]
