"""The held-out trial: what it learns and chooses, that it is honest, and what happens without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilex import C1, BilexError
from bilex.aligners.c1_settings import USUAL_EXTENT
from bilex.aligners.lnmap import LNMap
from bilex.aligners.procrustes import Procrustes
from bilex.aligners.vecmap import VecMapSemi
from bilex.fit import fit, trial
from bilex.fit.calibration import AnswerRecords, answer_records
from bilex.fit.trial import Decisions, hold_out, word_scores
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors.stored import unit_rows
from planted import Planted, planted

SHORT = {"iterations": 1, "updates": 10, "negatives": 5, "passes": 2}


@pytest.fixture(scope="module")
def world() -> Planted:
    return planted(500, 12, 0.5)


def pairs_of(lexicon: Lexicon, side: int) -> set[str]:
    return {pair[side] for pair in lexicon.pairs}


@pytest.mark.parametrize(
    ("preset", "seeds", "updates"),
    [("best", 5000, 25), ("careful", 5000, 12), ("best", 1000, 12), ("careful", 1000, 6), ("careful", 0, 6)],
)
def test_a_trial_makes_fewer_updates(preset: str, seeds: int, updates: int) -> None:
    whole = C1(preset=preset)
    short = whole.for_trial(seeds, 200_000).constants(seeds * 4 // 5, 20_000)
    assert short == replace(whole.constants(seeds, 200_000), updates=updates)


@pytest.mark.parametrize(("preset", "updates"), [("paper", 25), ("quick", 9)])
def test_a_trial_at_the_papers_rate_takes_longer_steps(preset: str, updates: int) -> None:
    short = C1(preset=preset).for_trial(5000, 200_000).constants(5000, 200_000)
    assert (short.updates, short.learning_rate, short.decay) == (updates, 3.0, 0.99**2)


def test_a_trial_without_updates_stays_as_it_is() -> None:
    without = C1(updates=0, preset="best")
    assert without.for_trial(1000, 200_000).constants(1000, 200_000) == without.constants(1000, 200_000)
    assert Procrustes().for_trial(1000, 200_000) == Procrustes()


def test_methods_shorten_themselves_for_a_trial_and_never_lengthen() -> None:
    impatient = VecMapSemi(patience=5, growth=4.0, frequent=5000)
    assert VecMapSemi().for_trial(1000, 200_000) == impatient
    smaller = VecMapSemi(patience=3, growth=8.0, frequent=100)
    assert smaller.for_trial(1000, 200_000) == smaller
    assert LNMap().for_trial(1000, 200_000) == LNMap(mapper_epochs=20)
    fewer = LNMap(mapper_epochs=1)
    assert fewer.for_trial(1000, 200_000) == fewer


def test_the_trial_learns_neither_word_nor_answer_of_the_held_out(
    world: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[Lexicon] = []
    asked: list[Lexicon] = []
    original = C1.fit

    def spy(self: C1, source: Any, target: Any, lexicon: Lexicon, **rest: Any) -> C1:
        learned.append(lexicon)
        return original(self, source, target, lexicon, **rest)

    def watched(space: Space, held_out: Lexicon, seeds: Lexicon) -> AnswerRecords:
        asked.append(held_out)
        return answer_records(space, held_out, seeds)

    monkeypatch.setattr(C1, "fit", spy)
    monkeypatch.setattr(trial, "answer_records", watched)
    several = [(a, world.target.index_to_key[i + 7]) for i, (a, _) in enumerate(world.pairs(0, 60).pairs)]
    seeds = Lexicon([*world.pairs(0, 300).pairs, *several])
    fit(C1(**SHORT, device="cpu"), world.source, world.target, seeds)
    tried, whole = learned
    assert set(whole.pairs) == set(seeds.pairs)
    for side in (0, 1):
        questions = pairs_of(asked[0], side)
        assert questions and not pairs_of(tried, side) & questions


@pytest.mark.parametrize(("count", "calibrates"), [(99, False), (150, False), (200, True)])
def test_few_seeds_give_no_confidences_and_say_so(world: Planted, count: int, calibrates: bool) -> None:
    fitted = fit(C1(**SHORT, device="cpu"), world.source, world.target, world.pairs(0, count))
    assert fitted.report.trial.ran is bool(fitted.calibration.parts) is calibrates
    if not calibrates:
        assert (
            f"need 200 seed words that are in the vectors, and there are {count}" in fitted.calibration.note
        )


def test_where_no_words_can_be_held_out_auto_takes_the_usual_extent(world: Planted) -> None:
    words, others = world.pairs(0, 60).pairs, world.target.index_to_key[7:]
    two_each = Lexicon([*words, *((a, other) for (a, _), other in zip(words, others, strict=False))])
    decided = trial.decide(C1(device="cpu"), world.source, world.target, two_each)
    assert decided.extent == USUAL_EXTENT and not decided.report.ran
    assert trial.decide(C1(device="cpu"), world.source, world.target, world.pairs(0, 40)).extent is None


def test_a_trial_that_fails_leaves_the_fit_without_confidences(
    world: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(space: Space, held_out: Lexicon, seeds: Lexicon) -> AnswerRecords:
        raise BilexError("no answers.")

    monkeypatch.setattr(trial, "answer_records", broken)
    fitted = fit(C1(**SHORT, device="cpu"), world.source, world.target, world.pairs(0, 250))
    assert not fitted.report.trial.ran and fitted.maps
    assert fitted.calibration.note == "not calibrated: the trial could not be finished (no answers.)"


def test_a_trial_that_failed_is_tried_again_by_the_next_run(
    world: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = C1(**SHORT, device="cpu"), world.source, world.target, world.pairs(0, 250)
    with monkeypatch.context() as patched:
        patched.setattr(trial, "answer_records", lambda *_: (_ for _ in ()).throw(RuntimeError("no memory")))
        assert not fit(*given, checkpoint=tmp_path / "state").report.trial.ran
    assert fit(*given, checkpoint=tmp_path / "state").report.trial.ran


def test_a_fit_learns_from_all_seeds_and_leaves_its_aligner_as_it_is(world: Planted) -> None:
    aligner, seeds = C1(**SHORT, device="cpu"), world.pairs(0, 300)
    fitted = fit(aligner, world.source, world.target, seeds)
    by_hand = C1(**SHORT, device="cpu").fit(world.source, world.target, seeds)
    assert np.array_equal(fitted.maps[0].matrix, by_hand.source_map_.matrix)
    assert fitted.calibration.parts and not hasattr(aligner, "source_map_")


def test_nothing_is_tried_where_nothing_is_open(world: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[object] = []
    original = C1.fit
    monkeypatch.setattr(
        C1, "fit", lambda self, *args, **rest: fits.append(self) or original(self, *args, **rest)
    )
    aligner = C1(**SHORT, preset="paper", device="cpu")
    fitted = fit(aligner, world.source, world.target, world.pairs(0, 250), calibrate=False)
    assert len(fits) == 1 and not fitted.report.trial.ran


def alike(curve: dict[float, float], words: int = 100) -> dict[float, np.ndarray]:
    """A curve of λ on which all words agree up to noise of mean 0."""
    noise = np.random.default_rng(0).normal(scale=0.3, size=(len(curve), words))
    noise -= noise.mean(axis=1, keepdims=True)
    return {mixing: value + noise[place] for place, (mixing, value) in enumerate(curve.items())}


def test_the_choice_of_lambda() -> None:
    """Near the usual λ, as far from it as the held-out words show beyond chance."""
    flat = dict.fromkeys((round(0.1 * step, 1) for step in range(11)), 0.3)
    assert trial.choose_mixing(alike(flat), prior=0.4) == pytest.approx(0.4, abs=0.05)
    lonely = {**flat, 0.0: 0.38}
    lonely[0.3] = lonely[0.4] = lonely[0.5] = 0.36
    assert trial.choose_mixing(alike(lonely), prior=0.4) > 0.3, "the single high value at 0 is noise"
    useless = {0.0: 0.5, 0.1: 0.4, 0.2: 0.3, 0.3: 0.2}
    assert trial.choose_mixing(alike(useless), prior=0.4) == 0.0


def test_the_usual_lambda_yields_to_clear_evidence() -> None:
    """The same curve of few words and of many: the more there are, the further λ goes from 0.4 to 0.7."""
    curve = {round(0.1 * step, 1): 0.5 - 0.3 * (0.1 * step - 0.7) ** 2 for step in range(11)}
    few, some, many = (trial.choose_mixing(alike(curve, words), prior=0.4) for words in (20, 1_000, 100_000))
    assert few == pytest.approx(0.4, abs=0.05)
    assert few < some < many == pytest.approx(0.7, abs=0.03)


def test_the_choice_of_the_extent() -> None:
    """Far from the usual 0.65 if the held-out words clearly prefer it, near it if they say nothing."""
    shares = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
    says_nothing, nearest = trial.choose_extent(alike(dict.fromkeys(shares, 0.3)))
    assert says_nothing == pytest.approx(0.65, abs=0.1) and nearest == 0.7
    harmful = {share: 0.5 - 0.3 * share for share in shares}
    few, many = (trial.choose_extent(alike(harmful, words))[0] for words in (100, 100_000))
    assert 0.02 <= many < 0.1 and many < few < 0.5
    assert trial.choose_extent(alike({share: 0.3 + 0.3 * share for share in shares}, 100_000))[0] > 0.9


def test_a_fit_makes_the_rounds_that_held_out_seeds_prefer(
    world: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds, chosen = world.pairs(0, 400), []

    def choose(curve: dict[float, Any]) -> tuple[float, float]:
        chosen.append(curve)
        return 0.12, 0.1

    monkeypatch.setattr(trial, "choose_extent", choose)
    auto = C1(device="cpu")
    fitted = fit(auto, world.source, world.target, seeds)
    (curve,) = chosen
    assert all(len(words) >= 80 and 0 <= words.min() <= words.max() <= 1 for words in curve.values())
    assert fitted.report.trial.extent == fitted.report.settings["extent"] == 0.12 and auto.extent is None
    assert fitted.report.trial.note == "extent = 0.12 is taken"
    assert list(fitted.report.trial.extent_scores) == list(map(str, curve))
    by_hand = C1(device="cpu", extent=0.12).fit(world.source, world.target, seeds)
    assert np.array_equal(fitted.maps[0].matrix, by_hand.source_map_.matrix)
    without = fit(auto, world.source, world.target, seeds, calibrate=False)
    assert without.report.trial.extent == 0.12 and not without.calibration.parts
    again = fit(fitted.aligner, world.source, world.target, seeds)
    assert again.report.trial.extent is None and len(chosen) == 2, "it is a setting of the model now"


def test_what_is_held_out() -> None:
    lexicon = Lexicon([(f"a{i}", f"b{i}") for i in range(3000)])
    for count, share, expected in ((99, 0.1, None), (100, 0.1, 20), (1000, 0.1, 200), (3000, 0.1, 300)):
        split = hold_out(lexicon.head(count), share, 0)
        if expected is None:
            assert split is None
        else:
            assert split is not None and len(split[1]) == expected
            assert not set(split[0].pairs) & set(split[1].pairs)


def test_the_score_counts_the_best_translation_of_a_word() -> None:
    source = np.eye(4, 6, dtype=np.float32)
    target = unit_rows(np.concatenate([np.eye(4, 6), np.eye(4, 6) + 0.5 * np.roll(np.eye(4, 6), 1, axis=1)]))
    forward, backward = word_scores(source, target, np.array([[0, 0], [0, 5]]), "cpu")
    assert forward.tolist() == [1.0]
    assert len(backward) == 2 and backward[0] == 1.0
    similarity = target @ source.T
    r = np.sort(similarity, axis=0)[-10:].mean(axis=0)
    order = np.argsort(-(2 * similarity[5] - r), kind="stable").tolist()
    assert backward[1] == pytest.approx(1 / (1 + order.index(0)))


def test_an_interrupted_fit_does_not_repeat_the_trial(
    world: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aligner = C1(**SHORT, device="cpu")
    seeds = world.pairs(0, 250)
    original = C1.fit

    def interrupted(self: C1, *args: Any, **rest: Any) -> C1:
        if rest.get("checkpoint") is not None:
            raise KeyboardInterrupt
        return original(self, *args, **rest)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(C1, "fit", interrupted)
        fit(aligner, world.source, world.target, seeds, checkpoint=tmp_path / "state")
    whole = fit(aligner, world.source, world.target, seeds)
    with monkeypatch.context() as patched:
        patched.setattr("bilex.fit.fitting.decide", lambda *_, **__: pytest.fail("tried again"))
        resumed = fit(aligner, world.source, world.target, seeds, checkpoint=tmp_path / "state")
    assert resumed.calibration == whole.calibration
    assert np.array_equal(resumed.maps[0].matrix, whole.maps[0].matrix)
    other = fit(aligner, world.source, world.target, world.pairs(0, 240), checkpoint=tmp_path / "other")
    assert other.report.trial.held_out_words == 48


def test_decisions_survive_json(world: Planted) -> None:
    made = trial.decide(C1(**SHORT, device="cpu"), world.source, world.target, world.pairs(0, 250))
    assert Decisions.from_dict(made.as_dict()) == made
