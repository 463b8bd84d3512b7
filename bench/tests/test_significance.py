"""Paired tests: against independent computations, and whether p and intervals keep their promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

from bilex_bench.tables.significance import (
    Scored,
    bootstrap_interval,
    compare,
    holm,
    meanings,
    sign_flip_p,
)


def scored(scores: object, source: str = "en", target: str = "fi", prefix: str = "w") -> Scored:
    values = np.asarray(scores, dtype=np.float64)
    words = tuple(f"{prefix}{i}" for i in range(len(values)))
    return Scored(source, target, words, tuple((f"{word}-{target}",) for word in words), values)


def mirrored(scores: object, prefix: str = "w") -> Scored:
    """The opposite direction: its words are the translations of `scored`, and the other way round."""
    values = np.asarray(scores, dtype=np.float64)
    there = [f"{prefix}{i}" for i in range(len(values))]
    return Scored("fi", "en", tuple(f"{word}-fi" for word in there), tuple((word,) for word in there), values)


def both(first: list[Scored], second: list[Scored]) -> list[tuple[Scored, Scored]]:
    return list(zip(first, second, strict=True))


@pytest.mark.parametrize("more,fewer", [(0, 0), (1, 0), (5, 0), (7, 3), (10, 10), (60, 41), (300, 251)])
def test_one_direction_is_the_exact_binomial_test(more: int, fewer: int) -> None:
    values = np.array([1.0] * more + [-1.0] * fewer + [0.0] * 17)
    expected = scipy.stats.binomtest(more, more + fewer, 0.5).pvalue if more + fewer else 1.0
    assert sign_flip_p(values) == pytest.approx(expected, rel=1e-12)
    assert sign_flip_p(-values / 1917) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_few_differences_are_all_gone_through(seed: int) -> None:
    values = np.random.default_rng(seed).normal(0.3, 1, 9)
    sums = [abs(np.dot(signs, values)) for signs in itertools.product((-1, 1), repeat=9)]
    expected = np.mean(np.array(sums) >= abs(values.sum()) - 1e-12)
    assert sign_flip_p(values) == pytest.approx(expected, abs=1e-12)


def test_drawn_flips_agree_with_the_whole_distribution() -> None:
    values = np.random.default_rng(1).integers(-3, 5, 60).astype(float)
    distribution = np.array([1.0])  # of the sum, by folding in one difference after the other
    for size in np.abs(values).astype(int):
        wider = np.zeros(len(distribution) + 2 * size)
        wider[: len(distribution)] += distribution / 2
        wider[2 * size :] += distribution / 2
        distribution = wider
    sums = np.arange(len(distribution)) - len(distribution) // 2
    expected = distribution[np.abs(sums) >= abs(values.sum())].sum()
    draws = 40_000
    error = np.sqrt(expected * (1 - expected) / draws)
    assert 0.001 < expected < 0.3
    assert sign_flip_p(values, draws=draws) == pytest.approx(expected, abs=4 * error)


def test_drawn_p_is_never_zero() -> None:
    values = np.linspace(1, 2, 100)
    assert sign_flip_p(values, draws=999) == pytest.approx(1 / 1000)


def test_p_keeps_its_promise_when_nothing_differs() -> None:
    """Two equally good methods: p under α comes at most in a share α of cases, and not much more rarely."""
    rng = np.random.default_rng(7)
    found = np.array(
        [sign_flip_p((rng.random(300) < 0.45) * 1.0 - (rng.random(300) < 0.45) * 1.0) for _ in range(2000)]
    )
    for alpha in (0.01, 0.05, 0.2):
        noise = 3 * np.sqrt(alpha * (1 - alpha) / len(found))
        assert alpha / 2 - noise < (found <= alpha).mean() <= alpha + noise


def test_units_keep_the_promise_where_single_words_break_it() -> None:
    """Both directions ask for the same meanings, and succeed or fail together."""
    rng = np.random.default_rng(8)
    by_unit, by_word = [], []
    for _ in range(400):
        common = [(rng.random(120) < 0.5) * 1.0 for _ in range(2)]
        first = [scored(common[0]), mirrored(common[0])]
        second = [scored(common[1]), mirrored(common[1])]
        found = compare(both(first, second), draws=400, replicates=2)
        assert found is not None and found.units == 120 and found.words == 240
        by_unit.append(found.p)
        difference = common[0] - common[1]
        by_word.append(sign_flip_p(np.concatenate([difference, difference])))
    noise = 3 * np.sqrt(0.05 * 0.95 / 400)
    assert np.mean(np.array(by_unit) <= 0.05) <= 0.05 + noise
    assert np.mean(np.array(by_word) <= 0.05) > 0.05 + noise


def test_interval_covers_the_true_difference() -> None:
    rng = np.random.default_rng(9)
    inside = []
    for trial in range(300):
        hits = rng.random((2, 250)) < np.array([[0.5], [0.42]])
        found = compare([(scored(hits[0]), scored(hits[1]))], replicates=400, draws=2, seed=trial % 3)
        assert found is not None
        inside.append(found.low <= 0.08 <= found.high)
    assert 0.91 < np.mean(inside) < 0.98


def test_interval_agrees_with_scipy() -> None:
    rng = np.random.default_rng(3)
    values = rng.choice([-1.0, 0.0, 1.0], 400, p=[0.1, 0.7, 0.2])
    expected = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", random_state=0
    ).confidence_interval
    low, high = bootstrap_interval(values[:, None], np.ones((400, 1)), replicates=4000)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=0.006)


def test_mean_over_directions_weighs_directions_alike() -> None:
    first = [scored([1] * 10), scored([0] * 1000, "fr", "ru", "x")]
    second = [scored([0] * 10), scored([0] * 1000, "fr", "ru", "x")]
    found = compare(both(first, second))
    assert found is not None
    assert found.mean == pytest.approx(0.5)
    assert (found.directions, found.words, found.units) == (2, 1010, 1010)
    assert (found.better, found.worse) == (1, 0)
    assert found.p == pytest.approx(2 * 0.5**10)


def test_only_common_words_are_compared() -> None:
    first = Scored("en", "fi", ("a", "b", "c"), (("x",), ("y",), ("z",)), np.array([1.0, 1.0, 0.0]))
    second = Scored("en", "fi", ("c", "a"), (("z",), ("x",)), np.array([1.0, 0.0]))
    elsewhere = (scored([1], "de", "tr", "x"), scored([0], "de", "tr", "y"))
    found = compare([(first, second), elsewhere])
    assert found is not None
    assert (found.directions, found.words, found.mean) == (1, 2, 0.0)
    assert compare([elsewhere]) is None
    assert compare([]) is None


def test_swapping_the_methods_turns_the_sign_and_nothing_else() -> None:
    rng = np.random.default_rng(5)
    first = [scored(rng.random(200) < 0.6), mirrored(rng.random(200) < 0.5)]
    second = [scored(rng.random(200) < 0.5), mirrored(rng.random(200) < 0.5)]
    one, other = compare(both(first, second)), compare(both(second, first))
    assert one is not None and other is not None
    assert one.mean == pytest.approx(-other.mean)
    assert one.p == other.p
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-3)


def test_meanings_are_chains_of_translations_within_languages() -> None:
    forward = Scored("en", "fi", ("dog", "hound", "cat"), (("koira",), ("koira",), ("kissa",)), np.zeros(3))
    backward = Scored("fi", "en", ("kissa", "koira"), (("cat",), ("dog",)), np.zeros(2))
    elsewhere = Scored("en", "fr", ("cat", "pain"), (("chat",), ("douleur",)), np.zeros(2))
    french = Scored("fr", "fi", ("pain", "chat"), (("leipä",), ("kissa",)), np.zeros(2))
    units = meanings([forward, backward, elsewhere, french])
    dog, hound, cat = units[0]
    assert dog == hound != cat
    assert list(units[1]) == [cat, dog]
    assert units[2][0] == cat == units[3][1]
    assert len({dog, cat, units[2][1], units[3][0]}) == 4  # English "pain" is not French "pain"


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []
