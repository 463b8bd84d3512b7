"""The held-out trial: what it decides, that it is honest, and what it does where it cannot be held."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilex.aligners.c1 import C1
from bilex.aligners.lnmap import LNMap
from bilex.aligners.procrustes import Procrustes
from bilex.aligners.vecmap import VecMapSemi
from bilex.core.errors import BilexError
from bilex.fit import fit, trial
from bilex.fit.calibration import Records, ask
from bilex.fit.held_out import halves, hold_out, word_scores
from bilex.fit.trial import Decisions
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors.stored import unit_rows
from planted import Planted, planted

SHORT = {"iterations": 1, "negatives": 5}


@pytest.fixture(scope="module")
def world() -> Planted:
    return planted(500, 12, 0.5)


def pairs_of(lexicon: Lexicon, side: int) -> set[str]:
    return {pair[side] for pair in lexicon.pairs}


def test_auto_is_two_passes_of_best_unless_held_out_words_prefer_more(
    world: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    aligner, seeds = C1(**SHORT, device="cpu"), world.pairs(0, 300)
    monkeypatch.setattr(trial, "WEAK", 2.0)
    for number, passes in ((0, 2), (-1, 3)):
        monkeypatch.setattr(trial, "choose_form", lambda scores, number=number: list(scores)[number])
        fitted = fit(aligner, world.source, world.target, seeds)
        assert fitted.report.trial.form == ("best" if passes == 2 else "best, third pass")
        assert set(fitted.report.trial.form_scores) == {"best", "best, third pass"}
        chosen = {"preset": "best", "way": 0.65, "early": 0.75, "passes": passes}
        assert fitted.aligner.settings().items() >= chosen.items()
        by_hand = C1(**chosen, device="cpu", **SHORT).fit(world.source, world.target, seeds)
        assert np.array_equal(fitted.maps[0].matrix, by_hand.source_map_.matrix)
        assert aligner.preset == "auto", "a fit leaves its aligner as it is"
    assert fitted.calibration.parts


@pytest.mark.parametrize(
    ("settings", "seeds", "names"),
    [
        ({}, 200, [["best"]]),
        ({}, 1000, [["best"], ["third pass"]]),
        ({}, 5000, [["best"], ["joined start"]]),
        ({"start": "seeds"}, 5000, [["best"]]),
        ({"passes": 1}, 5000, [["best"]]),
        ({"contrastive": False}, 1000, [["best"]]),
        ({"preset": "paper"}, 5000, []),
        ({"preset": "best"}, 1000, []),
        ({"preset": "quick"}, 5000, []),
    ],
)
def test_only_what_is_left_open_is_chosen(
    settings: dict[str, Any], seeds: int, names: list[list[str]]
) -> None:
    assert [list(step) for step in C1(**settings).choices(seeds)] == names
    assert Procrustes().choices(seeds) == []


def test_a_third_pass_is_tried_only_where_two_are_weak(
    world: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds, aligner = world.pairs(0, 400), C1(device="cpu", **SHORT)
    for weak, tried in ((0.01, {"best"}), (2.0, {"best", "best, third pass"})):
        monkeypatch.setattr(trial, "WEAK", weak)
        found = trial.decide(aligner, world.source, world.target, seeds)
        assert set(found.report.form_scores) == tried
    assert aligner.settings()["passes"] is None


@pytest.mark.parametrize(
    ("preset", "seeds", "updates"),
    [("best", 5000, 25), ("careful", 5000, 12), ("best", 1000, 12), ("careful", 1000, 6), ("careful", 0, 6)],
)
def test_candidates_make_fewer_updates(preset: str, seeds: int, updates: int) -> None:
    whole = C1(preset=preset)
    short = whole.for_trial(seeds, 200_000).constants(seeds * 4 // 5, 20_000)
    assert short == replace(whole.constants(seeds, 200_000), updates=updates)


@pytest.mark.parametrize(("preset", "updates"), [("paper", 25), ("quick", 9)])
def test_candidates_at_the_papers_rate_take_longer_steps(preset: str, updates: int) -> None:
    short = C1(preset=preset).for_trial(5000, 200_000).constants(5000, 200_000)
    assert (short.updates, short.learning_rate, short.decay) == (updates, 3.0, 0.99**2)


def test_candidates_without_updates_stay_as_they_are() -> None:
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


def test_candidates_learn_neither_word_nor_answer_of_the_held_out(
    world: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[Lexicon] = []
    asked: list[Lexicon] = []
    original = C1.fit

    def spy(self: C1, source: Any, target: Any, lexicon: Lexicon, **rest: Any) -> C1:
        learned.append(lexicon)
        return original(self, source, target, lexicon, **rest)

    def watched(space: Space, held_out: Lexicon, seeds: Lexicon) -> Records:
        asked.append(held_out)
        return ask(space, held_out, seeds)

    monkeypatch.setattr(C1, "fit", spy)
    monkeypatch.setattr(trial, "ask", watched)
    monkeypatch.setattr(trial, "WEAK", 2.0)
    several = [(a, world.target.index_to_key[i + 7]) for i, (a, _) in enumerate(world.pairs(0, 60).pairs)]
    seeds = Lexicon([*world.pairs(0, 300).pairs, *several])
    fit(C1(**SHORT, device="cpu"), world.source, world.target, seeds)
    *candidates, whole = learned
    assert len(candidates) == 2 and set(whole.pairs) == set(seeds.pairs)
    for side in (0, 1):
        questions = set().union(*(pairs_of(part, side) for part in asked))
        assert questions
        for lexicon in candidates:
            assert not pairs_of(lexicon, side) & questions


def test_each_half_is_asked_of_what_the_other_chose(world: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two halves are made to choose differently; the spaces asked must be those of the other half."""
    two, three = "best", "best, third pass"
    preferred = iter([two, two, three])  # all words, the first half, the second half
    known: dict[tuple[float, ...], str] = {}

    def chosen(scores: dict[str, float]) -> str:
        key = tuple(scores.values())
        return known[key] if key in known else known.setdefault(key, next(preferred))

    asked: list[tuple[Space, Lexicon]] = []

    def watched(space: Space, held_out: Lexicon, seeds: Lexicon) -> Records:
        asked.append((space, held_out))
        return ask(space, held_out, seeds)

    fits: dict[int | None, C1] = {}
    original = C1.fit

    def spy(self: C1, *args: Any, **rest: Any) -> C1:
        fits.setdefault(self.passes, self)
        return original(self, *args, **rest)

    monkeypatch.setattr(C1, "fit", spy)
    monkeypatch.setattr(trial, "WEAK", 2.0)
    monkeypatch.setattr(trial, "choose_form", chosen)
    monkeypatch.setattr(trial, "ask", watched)
    seeds = world.pairs(0, 300)
    decisions = trial.decide(C1(device="cpu", **SHORT), world.source, world.target, seeds)
    assert decisions.report.form == two
    (of_second, first), (of_first, second) = asked
    assert not set(first.pairs) & set(second.pairs)
    held_out = hold_out(seeds, 0.1, 0)
    assert held_out is not None and {*first.pairs, *second.pairs} == set(held_out[1].pairs)
    for space, passes in ((of_second, 3), (of_first, 2)):
        expected = Space.from_aligner(fits[passes], world.source, world.target)
        assert np.array_equal(space.source.vectors, expected.source.vectors)
    assert decisions.calibration.parts["forward", "csls"].words == len(held_out[1].translations())


def test_halves_share_no_word() -> None:
    pairs = [(f"a{i}", f"b{i}") for i in range(50)] + [(f"a{i}", f"b{i + 1}") for i in range(0, 40, 4)]
    one, other = halves(Lexicon(pairs), 0)
    assert sorted([*one.pairs, *other.pairs]) == sorted(pairs)
    assert abs(len(one) - len(other)) <= 3
    for side in (0, 1):
        assert not pairs_of(one, side) & pairs_of(other, side)


@pytest.mark.parametrize(("count", "calibrates"), [(99, False), (150, False), (200, True)])
def test_few_seeds_give_no_confidences_and_say_so(world: Planted, count: int, calibrates: bool) -> None:
    fitted = fit(C1(**SHORT, device="cpu"), world.source, world.target, world.pairs(0, count))
    assert fitted.report.trial.ran is bool(fitted.calibration.parts) is calibrates
    assert fitted.aligner.settings()["preset"] == "best"
    if not calibrates:
        assert (
            f"need 200 seed words that are in the vectors, and there are {count}" in fitted.calibration.note
        )


def test_a_candidate_that_breaks_is_left_out_and_named(
    world: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = C1.fit

    def broken(self: C1, *args: Any, **rest: Any) -> C1:
        if self.passes in failing:
            raise BilexError(f"{self.passes} passes broke.")
        return original(self, *args, **rest)

    monkeypatch.setattr(C1, "fit", broken)
    monkeypatch.setattr(trial, "WEAK", 2.0)
    aligner = C1(**SHORT, device="cpu")
    failing = {3}
    some = trial.decide(aligner, world.source, world.target, world.pairs(0, 300))
    assert some.report.ran and some.report.failed == {"best, third pass": "3 passes broke."}
    assert some.settings["passes"] == 2 and some.calibration.parts
    failing = {2, 3}
    none = trial.decide(aligner, world.source, world.target, world.pairs(0, 300))
    assert not none.report.ran and "no candidate could be fitted (2 passes broke.)" in none.report.note
    assert none.settings["passes"] == 2 and not none.calibration.parts


def test_confidences_that_fail_do_not_undo_the_choice(
    world: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(space: Space, held_out: Lexicon, seeds: Lexicon) -> Records:
        raise BilexError("no answers.")

    monkeypatch.setattr(trial, "ask", broken)
    monkeypatch.setattr(trial, "choose_form", lambda scores: "best")
    made = trial.decide(C1(**SHORT, device="cpu"), world.source, world.target, world.pairs(0, 250))
    assert made.settings["preset"] == "best" and made.report.ran
    assert made.calibration.note == "not calibrated: no answers."


def test_nothing_is_tried_where_nothing_is_open(world: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[object] = []
    original = C1.fit
    monkeypatch.setattr(
        C1, "fit", lambda self, *args, **rest: fits.append(self) or original(self, *args, **rest)
    )
    aligner = C1(**SHORT, preset="paper", device="cpu")
    fitted = fit(aligner, world.source, world.target, world.pairs(0, 250), calibrate=False)
    assert len(fits) == 1 and not fitted.report.trial.ran


def test_a_fit_may_leave_the_preset_as_the_aligner_has_it(world: Planted) -> None:
    """By itself "auto" is the paper's form; the trial would take another."""
    aligner, seeds = C1(**SHORT, device="cpu"), world.pairs(0, 250)
    fitted = fit(aligner, world.source, world.target, seeds, choose_preset=False, calibrate=False)
    by_hand = C1(**SHORT, device="cpu").fit(world.source, world.target, world.pairs(0, 250))
    assert not fitted.report.trial.ran and fitted.report.settings["preset"] == "auto"
    assert np.array_equal(fitted.maps[0].matrix, by_hand.source_map_.matrix)


def alike(curve: dict[float, float], words: int = 100) -> dict[float, np.ndarray]:
    """A curve of λ on which all words agree up to noise of mean 0."""
    noise = np.random.default_rng(0).normal(scale=0.3, size=(len(curve), words))
    noise -= noise.mean(axis=1, keepdims=True)
    return {mixing: value + noise[place] for place, (mixing, value) in enumerate(curve.items())}


def test_the_choice_of_lambda() -> None:
    """The usual λ, unless the held-out words prefer another beyond what chance explains."""
    curve = {0.0: 0.46, 0.1: 0.48, 0.2: 0.5, 0.3: 0.48, 0.4: 0.46}
    assert trial.choose_mixing(alike(curve), prior=0.4) == 0.4
    assert trial.choose_mixing(alike(dict.fromkeys(curve, 0.3)), prior=0.3) == 0.3
    lonely = {0.0: 0.30, 0.1: 0.44, 0.2: 0.30, 0.3: 0.40, 0.4: 0.41, 0.5: 0.40}
    assert trial.choose_mixing(alike(lonely), prior=0.3) == 0.35, "the single high value at 0.1 is noise"
    useless = {0.0: 0.5, 0.1: 0.4, 0.2: 0.3, 0.3: 0.2}
    assert trial.choose_mixing(alike(useless), prior=0.4) == 0.0


def test_the_usual_lambda_yields_to_clear_evidence() -> None:
    """The same curve of 20 and of 20,000 words: only the second says surely that 0.4 is too low."""
    curve = {round(0.1 * step, 1): 0.5 - 0.3 * (0.1 * step - 0.7) ** 2 for step in range(11)}
    assert trial.choose_mixing(alike(curve, words=20), prior=0.4) == 0.4
    assert trial.choose_mixing(alike(curve, words=20_000), prior=0.4) == 0.65


def test_the_prior_gives_way_to_a_clear_difference_only() -> None:
    assert trial.choose_form({"careful": 0.5, "best": 0.5}) == "careful"
    assert trial.choose_form({"careful": 0.5, "best": 0.504}) == "careful"
    assert trial.choose_form({"careful": 0.5, "best": 0.51}) == "best"


def test_what_is_held_out() -> None:
    lexicon = Lexicon([(f"a{i}", f"b{i}") for i in range(3000)])
    for count, share, expected in ((99, 0.1, None), (100, 0.1, 20), (1000, 0.1, 200), (3000, 0.1, 300)):
        split = hold_out(lexicon.head(count), share, 0)
        if expected is None:
            assert split is None
        else:
            assert split is not None and len(split[1]) == expected
            assert not set(split[0].pairs) & set(split[1].pairs)


def test_the_score_counts_the_best_gold_of_a_word() -> None:
    source = np.eye(4, 6, dtype=np.float32)
    target = unit_rows(np.concatenate([np.eye(4, 6), np.eye(4, 6) + 0.5 * np.roll(np.eye(4, 6), 1, axis=1)]))
    scores = word_scores(source, target, np.array([[0, 0], [0, 5]]), "cpu")
    assert scores.forward.tolist() == [1.0]
    assert scores.targets.tolist() == [0, 5] and scores.backward[0] == 1.0
    similarity = target @ source.T
    r = np.sort(similarity, axis=0)[-10:].mean(axis=0)
    order = np.argsort(-(2 * similarity[5] - r), kind="stable").tolist()
    assert scores.backward[1] == pytest.approx(1 / (1 + order.index(0)))
    assert scores.mean(np.array([[0, 0]])) == 1.0


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
