"""Positive pairs and hard negatives against searches done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bilex import BilexError
from bilex.aligners.c1_settings import MANY_SEEDS
from bilex.aligners.induction import induce_pairs
from bilex.encoders import TuningSettings
from bilex.encoders.tuning import hard_negatives, positive_pairs, training_pairs
from bilex.vectors.stored import unit_rows


def planted(words: int = 60, dim: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Two vocabularies in one space; word i of the one translates word i of the other."""
    rng = np.random.default_rng(5)
    rows = unit_rows(rng.normal(size=(words, dim)))
    return rows, unit_rows(rows + 0.05 * rng.normal(size=rows.shape))


def test_negatives_are_the_nearest_words_but_the_partner() -> None:
    source, target = planted()
    queries, partners = source[[3, 8, 8, 55]], np.array([3, 8, 20, 55])
    found = hard_negatives(queries, target[:50], partners, 6, "cpu")
    for query, partner, row in zip(queries, partners, found, strict=True):
        order = [key for key in np.argsort(-(target[:50] @ query), kind="stable") if key != partner]
        assert row.tolist() == order[:6]


def test_fewer_words_than_negatives_give_all_but_one() -> None:
    source, target = planted(5)
    found = hard_negatives(source[[0, 1]], target, np.array([0, 1]), 28, "cpu")
    assert [sorted(row) for row in found.tolist()] == [[1, 2, 3, 4], [0, 2, 3, 4]]


def test_no_negatives_but_those_of_the_batch() -> None:
    source, target = planted()
    seeds = np.array([[3, 3], [8, 8]])
    settings = TuningSettings(negatives=0, induced=0, whole_batch=True)
    found = training_pairs(source, target, seeds, settings, "cpu")
    assert found.source_negatives.shape == found.target_negatives.shape == (2, 0)
    assert found.positives.tolist() == seeds.tolist()
    with pytest.raises(BilexError, match="negatives is 0; stage C2 needs at least 1"):
        TuningSettings(negatives=0)


def test_the_lists_of_both_directions_are_taken_in_turn() -> None:
    source, target = planted()
    found = induce_pairs(source, target[:30], frequent=20_000, keep=6_000, device="cpu")
    in_turn = [pair for both in zip(*(part.tolist() for part in found), strict=False) for pair in both]
    in_turn += found.forward[30:].tolist()
    expected = list(dict.fromkeys(tuple(pair) for pair in in_turn if 0 not in pair))
    assert len(found.forward) == 60 and len(found.backward) == 30
    pairs = positive_pairs(source, target[:30], np.array([[0, 0]]), 1_000, "cpu")
    assert [tuple(pair) for pair in pairs[1:].tolist()] == expected


def test_few_seeds_are_joined_by_induced_pairs_of_new_words() -> None:
    source, target = planted()
    seeds = np.array([[0, 0], [1, 1], [1, 1], [2, 9]])
    found = positive_pairs(source, target, seeds, 40, "cpu")
    assert found[:4].tolist() == seeds.tolist()
    induced = found[4:]
    assert len(induced) == 40
    assert len(np.unique(induced, axis=0)) == 40
    assert not set(induced[:, 0]) & {0, 1, 2}
    assert not set(induced[:, 1]) & {0, 1, 9}
    assert (induced[:, 0] == induced[:, 1]).mean() > 0.9


def test_many_seeds_stand_alone() -> None:
    source, target = planted()
    seeds = np.repeat([[0, 0], [1, 1]], MANY_SEEDS // 2, axis=0)
    assert positive_pairs(source, target, seeds, 40, "cpu") is seeds


def test_training_pairs_know_the_side_of_every_negative() -> None:
    source, target = planted()
    seeds = np.array([[i, i] for i in range(0, 60, 3)])
    settings = TuningSettings(negatives=4, frequent=30, induced=0)
    found = training_pairs(source, target, seeds, settings, "cpu")
    assert found.source_negatives.max() < 30
    assert found.target_negatives.max() < 30
    x, y = found.positives[5]
    by_hand = [k for k in np.argsort(-(source[:30] @ target[y]), kind="stable") if k != x][:4]
    assert found.source_negatives[5].tolist() == by_hand
    limited = training_pairs(
        source, target, seeds, TuningSettings(negatives=4, induced=0, max_pairs=7), "cpu"
    )
    assert len(limited) == 7


def test_rejected_pairs_never_join_the_seeds() -> None:
    source, target = planted()
    seeds = np.array([[3, 3], [8, 8]])
    before = positive_pairs(source, target, seeds, 20, "cpu")
    wrong = before[2:5]
    after = positive_pairs(source, target, seeds, 20, "cpu", wrong)
    assert len(before) > 5
    kept = set(map(tuple, after.tolist()))
    assert not kept & set(map(tuple, wrong.tolist()))
    assert set(map(tuple, before[5:].tolist())) <= kept
