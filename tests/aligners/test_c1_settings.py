from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from bilex import C1, BilexError
from bilex.aligners.c1_settings import SEMI_SUPERVISED, SUPERVISED, C1Constants, shortened

MANY_WORDS = 200_000


def constants_for(preset: str, seeds: int, words: int, **settings: Any) -> C1Constants:
    return C1(preset=preset, **settings).constants(seeds, words)


def rounds_and_updates(c1: C1, seeds: int) -> list[tuple[int, int]]:
    """Of each pass."""
    parts = [part.constants for part in c1.plan(seeds, MANY_WORDS)]
    return [(part.iterations, part.updates) for part in parts]


def test_presets_are_the_papers_constants() -> None:
    five = constants_for("5k", 123, MANY_WORDS)
    assert (five.iterations, five.updates, five.negatives, five.frequent) == (2, 201, 150, 60_000)
    assert (five.augment, five.learning_rate, five.decay) == (10_000, 1.5, 0.99)
    assert not five.contrast_on_augmented
    one = constants_for("1k", 123, MANY_WORDS)
    assert (one.iterations, one.updates, one.negatives, one.frequent) == (3, 51, 60, 20_000)
    assert (one.augment, one.learning_rate, one.decay) == (6_000, 2.0, 1.0)
    assert one.contrast_on_augmented
    assert five.warm_up == one.warm_up == 0


@pytest.mark.parametrize(
    ("seeds", "base", "warm_up"),
    [
        (0, SEMI_SUPERVISED, 0),
        (50, SEMI_SUPERVISED, 4),
        (299, SEMI_SUPERVISED, 2),
        (300, SEMI_SUPERVISED, 2),
        (500, SEMI_SUPERVISED, 1),
        (600, SEMI_SUPERVISED, 0),
        (1000, SEMI_SUPERVISED, 0),
        (2235, SEMI_SUPERVISED, 0),
        (2236, SUPERVISED, 0),
        (3000, SUPERVISED, 0),
        (20_000, SUPERVISED, 0),
    ],
)
def test_the_rule_for_any_number_of_seeds(seeds: int, base: object, warm_up: int) -> None:
    assert constants_for("paper", seeds, MANY_WORDS) == replace(base, warm_up=warm_up)


@pytest.mark.parametrize(
    ("settings", "seeds", "enough"),
    [
        ({}, 0, 0),
        ({}, 49, 0),
        ({}, 50, 5000),
        ({}, 20_000, 5000),
        ({"size": 1000}, 200, 5000),
        ({"size": 49}, 1000, 0),
        ({"enough_pairs": 700}, 5000, 700),
        ({"updates": 9}, 1000, 0),  # the user's number of updates is taken as it is
        ({"preset": "best"}, 1000, 0),
        ({"preset": "paper"}, 1000, 0),
    ],
)
def test_auto_spares_updates_on_few_pairs(settings: dict[str, object], seeds: int, enough: int) -> None:
    assert C1(**settings).plan(seeds, MANY_WORDS)[0].constants.enough_pairs == enough


def test_few_seeds_and_none_have_three_passes_unless_the_constants_are_the_papers() -> None:
    for preset in ("best", "careful"):
        counts = [len(C1(preset=preset).plan(seeds, MANY_WORDS)) for seeds in (0, 50, 299, 300, 5000)]
        assert counts == [3, 3, 3, 1, 1]
    for preset in ("paper", "1k", "5k"):
        assert len(C1(preset=preset).plan(0, MANY_WORDS)) == 1
    last = C1(preset="careful").plan(0, 3000)[-1]
    assert last.anchors == 1000  # one in three words of a small vocabulary


def test_the_last_of_three_passes_has_the_constants_of_many_seeds() -> None:
    first, second, last = C1(preset="careful").plan(0, MANY_WORDS)
    assert (first.anchors, second.anchors, last.anchors) == (0, 3000, 5000)
    assert first.constants == second.constants == constants_for("careful", 0, MANY_WORDS)
    assert last.constants == constants_for("careful", 5000, MANY_WORDS)
    assert (first.words, second.words, last.words) == (20_000, 20_000, None)
    plan = C1(preset="careful", updates=4, iterations=1).plan(0, 500)
    assert [part.constants.updates for part in plan] == [4, 4, 4]


@pytest.mark.parametrize("seeds", [0, 50, 1000, 5000])
def test_passes_and_the_constants_of_the_last_are_settings_of_their_own(seeds: int) -> None:
    for preset in ("paper", "best"):
        own, many = (constants_for(preset, size, MANY_WORDS) for size in (seeds, 5000))
        for count in (1, 2, 3):
            plan = C1(preset=preset, passes=count, last_pass="same").plan(seeds, MANY_WORDS)
            assert [part.constants for part in plan] == [own] * count
            plan = C1(preset=preset, passes=count).plan(seeds, MANY_WORDS)
            assert [part.constants for part in plan] == [own] * (count - 1) + [many if count > 1 else own]
    assert len(C1(passes=3, self_learning=False).plan(seeds, MANY_WORDS)) == 1


def test_early_passes_on_few_seeds_search_among_frequent_words() -> None:
    for seeds, words in ((0, 20_000), (49, 20_000), (50, 20_000), (299, 20_000), (300, None)):
        assert [part.words for part in C1().plan(seeds, MANY_WORDS)] == [words, words, None]


@pytest.mark.parametrize(
    ("seeds", "early", "anchors"),
    [
        (0, {"updates": 20}, 5000),
        (1000, {"updates": 20}, 5000),
        (5000, {"updates": 53, "iterations": 1}, 2500),
    ],
)
def test_early_passes_may_be_short(seeds: int, early: dict[str, int], anchors: int) -> None:
    first, second, last = C1(preset="best", passes=3, early_extent=0.75).plan(seeds, MANY_WORDS)
    own = constants_for("best", seeds, MANY_WORDS)
    assert first.constants == replace(own, **early)
    assert second.constants == replace(own, updates=early["updates"])
    assert last.constants == constants_for("best", 5000, MANY_WORDS) and last.anchors == anchors


def test_a_copy_for_a_trial_goes_a_part_of_the_way_with_the_constants_of_the_whole_problem() -> None:
    whole = C1(preset="best", passes=2, learning_rate=0.7)
    short = whole.for_trial(5000, 40_000)
    assert whole.extent is None and whole.size is None
    plan, shorter = whole.plan(5000, 40_000), short.plan(800, 20_000)
    assert rounds_and_updates(whole, 5000) == [(2, 100), (2, 100)]
    assert rounds_and_updates(short, 800) == [(1, 25), (1, 25)]
    assert {part.words for part in plan} == {None}
    assert replace(shorter[1].constants, updates=100, iterations=2) == plan[1].constants


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        (0, [(3, 26), (3, 26), (2, 100)]),
        (1000, [(3, 13), (3, 13), (2, 42)]),
        (5000, [(1, 28), (2, 28), (2, 42)]),
    ],
)
def test_auto_is_best_in_three_passes_with_spellings_as_evidence(
    seeds: int, expected: list[tuple[int, int]]
) -> None:
    auto = C1()
    assert rounds_and_updates(auto, seeds) == expected
    best = auto.resolved(seeds)
    assert (best.preset, best.passes, best.spelling) == ("best", 3, True)
    assert best.plan(seeds, MANY_WORDS) == auto.plan(seeds, MANY_WORDS)
    assert C1(spelling=False).resolved(seeds).spelling is False
    assert len(C1(passes=1).plan(seeds, MANY_WORDS)) == 1
    assert auto.preset == "auto" and not C1(preset="best").resolved(seeds).spelling


def test_a_trial_of_auto_has_two_passes_and_with_few_seeds_one() -> None:
    for seeds, count in ((49, 1), (250, 2), (1000, 2), (5000, 2)):
        assert len(C1().for_trial(seeds, MANY_WORDS).plan(seeds // 2, 20_000)) == count


@pytest.mark.parametrize("seeds", [1000, 5000])
def test_a_trial_of_auto_ends_with_one_whole_round_along_which_maps_are_kept(seeds: int) -> None:
    first, last = C1().for_trial(seeds, MANY_WORDS).plan(seeds * 4 // 5, 20_000)
    whole = C1(preset="best", size=5000, iterations=1).constants(5000, 20_000)
    assert replace(last.constants, enough_pairs=0, damping=0.0) == whole
    assert last.snapshots[0] == 0 and last.snapshots[-1] == 1 and not first.snapshots
    assert first.constants.updates <= C1(preset="best").constants(seeds, 20_000).updates / 2


@pytest.mark.parametrize(
    "settings",
    [
        {"extent": 0.3},
        {"preset": "best"},
        {"preset": "careful"},
        {"updates": 5},
        {"passes": 1},
        {"contrastive": False},
        {"self_learning": False},
        {"size": 49},
    ],
)
def test_a_trial_chooses_no_extent_where_it_is_given(settings: dict[str, Any]) -> None:
    assert C1().leaves_extent_open(1000) and not C1().leaves_extent_open(49)
    given = C1(**settings)
    assert not given.leaves_extent_open(1000)
    assert not given.for_trial(1000, MANY_WORDS).snapshots


def test_the_extent_of_auto_is_the_one_that_is_given() -> None:
    for extent in (0.02, 0.3, 1.0):
        constants = C1(extent=extent).plan(5000, MANY_WORDS)[-1].constants
        best = C1(preset="best", extent=extent).constants(5000, MANY_WORDS)
        assert constants == replace(best, enough_pairs=5000, damping=pytest.approx(3 * (1 - extent)))


@pytest.mark.parametrize(
    ("settings", "seeds", "damping"),
    [
        ({}, 0, 0),
        ({}, 1000, 1.05),
        ({"extent": 0.1}, 5000, 2.7),
        ({"extent": 1.0}, 5000, 0),
        ({"damping": 0.0}, 5000, 0),
        ({"preset": "best"}, 5000, 0),
        ({"preset": "best", "damping": 2.0}, 5000, 2),
    ],
)
def test_auto_damps_whitening_the_more_the_less_contrast_helps(
    settings: dict[str, Any], seeds: int, damping: float
) -> None:
    for part in C1(**settings).plan(seeds, MANY_WORDS):
        assert part.constants.damping == pytest.approx(damping)


@pytest.mark.parametrize("seeds", [50, 5000])
def test_preset_best_is_the_rule_with_two_options_more_in_longer_steps(seeds: int) -> None:
    best, paper = (constants_for(preset, seeds, MANY_WORDS) for preset in ("best", "paper"))
    steps = {name: getattr(best, name) for name in ("updates", "learning_rate", "decay")}
    assert best == replace(paper, through_norms=True, full_csls=True, **steps)
    assert not paper.through_norms
    assert constants_for("best", seeds, MANY_WORDS, through_norms=False) == replace(best, through_norms=False)


@pytest.mark.parametrize(
    ("preset", "seeds", "updates", "rate", "decay"),
    [
        ("best", 5000, 100, 3.0, 0.99**2),
        ("careful", 5000, 29, 3.0, 0.99**2),
        ("best", 1000, 26, 4.0, 1.0),
        ("careful", 1000, 13, 4.0, 1.0),
    ],
)
def test_best_takes_fewer_and_longer_steps_and_careful_stops_half_way(
    preset: str, seeds: int, updates: int, rate: float, decay: float
) -> None:
    found = constants_for(preset, seeds, MANY_WORDS)
    assert (found.updates, found.learning_rate, found.decay) == (updates, rate, decay)
    best = constants_for("best", seeds, MANY_WORDS)
    assert found == replace(best, updates=updates)


@pytest.mark.parametrize(("updates", "decay"), [(1, 1.0), (13, 1.0), (50, 0.96), (100, 0.98), (40, 1.05)])
def test_an_extent_is_a_share_of_the_summed_step_lengths(updates: int, decay: float) -> None:
    lengths = [decay**update for update in range(updates)]
    for share in (0.01, 0.45, 0.5, 1.0):
        some = shortened(replace(SUPERVISED, updates=updates, decay=decay), share).updates
        assert sum(lengths[:some]) == pytest.approx(max(sum(lengths[:some]), share * sum(lengths)))
        assert sum(lengths[: some - 1]) < share * sum(lengths)


def test_a_small_vocabulary_caps_pairs_and_negatives() -> None:
    small = constants_for("paper", 5000, 900)
    assert (small.augment, small.negatives) == (600, 45)
    tiny = constants_for("paper", 5, 3)
    assert (tiny.augment, tiny.negatives) == (2, 1)


def test_overrides_win_and_none_leaves_the_rule() -> None:
    found = constants_for("paper", 5000, 900, negatives=100, decay=0.5, updates=None, warm_up=3)
    assert (found.negatives, found.decay, found.updates, found.warm_up) == (
        100,
        0.5,
        201,
        3,
    )


def test_switches_of_the_ablations() -> None:
    assert C1(preset="paper", contrastive=False).constants(50, 900).updates == 0
    alone = C1(preset="paper", self_learning=False).constants(50, 900)
    assert (alone.iterations, alone.warm_up) == (1, 0)
    assert alone.updates == 51


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("iterations", 0),
        ("updates", -1),
        ("negatives", 0),
        ("frequent", -5),
        ("augment", -1),
        ("learning_rate", 0.0),
        ("learning_rate", math.nan),
        ("learning_rate", math.inf),
        ("decay", -0.5),
        ("warm_up", -1),
        ("enough_pairs", -1),
    ],
)
def test_values_that_make_no_sense_are_named(name: str, value: float) -> None:
    with pytest.raises(BilexError, match=f"setting '{name}' of c1 is {value}"):
        C1(preset="paper", **{name: value}).check()


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(
        BilexError, match="preset '6k' of c1 is not known; use auto, paper, best, careful, quick, 5k, 1k"
    ):
        C1(preset="6k")
    with pytest.raises(BilexError, match="preset '6k' of c1 is not known"):
        C1().set_params(preset="6k").check()
