from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bilex.aligners.maps import Center, Linear, Map, Unit
from bilex.core.progress import SILENT
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.inverse_map import inverse_map, taken_back
from bilex_workbench.learning import change_verdict, held_out_accuracy, retrained
from planted import planted

WORLD = planted(words=700, dim=24, noise=0.7, seed=3)
HELD_BACK = {a: [b] for a, b in WORLD.pairs(400, 700).pairs}


def model_of(method, seeds):
    return Translator(method).fit(WORLD.source, WORLD.target, seeds, calibrate=False)


def after(model, decided):
    return retrained(model, decided, HELD_BACK, updates=2, random_seed=0, progress=SILENT)


@pytest.fixture(scope="module")
def weak():
    return model_of("procrustes", WORLD.pairs(0, 15))


def accuracy(model):
    return held_out_accuracy(model, model, HELD_BACK)["after"]


def test_the_way_back_leads_to_the_vectors_of_the_files():
    model = model_of("advanced", WORLD.pairs(0, 200))
    for side, given in (("source", WORLD.source), ("target", WORLD.target)):
        back = inverse_map(model, side)
        mapped = model.space.source if side == "source" else model.space.target
        found = taken_back(mapped, back)
        unit = given.vectors / np.linalg.norm(given.vectors, axis=1, keepdims=True)
        assert found.index_to_key == given.index_to_key
        assert np.abs(found.vectors - unit).max() < 1e-4
        assert np.abs(np.asarray(mapped.vectors) - unit).max() > 0.1  # there was something to undo


@pytest.mark.parametrize(
    "steps",
    [[Center(np.zeros(24)), Unit()], [Unit(), Linear(np.diag([1.0] * 23 + [0.0])), Unit()]],
    ids=["a step that is not known", "a direction that is flattened"],
)
def test_without_a_way_back_the_space_itself_is_the_start(weak, steps):
    back = inverse_map(weak.with_parts(source_map=Map(steps)), "source")
    assert back.steps == []
    assert taken_back(weak.space.source, back) is weak.space.source


def test_a_space_with_a_language_model_has_no_way_back(weak):
    model = weak.with_parts(provenance=replace(weak.provenance, language_model=object()))
    assert inverse_map(model, "target").steps == []


def test_the_maps_of_a_retrained_model_lead_into_its_space(weak):
    model = after(weak, WORLD.pairs(100, 160))
    for one, given, there in (
        (model.source_map, WORLD.source, model.space.source),
        (model.target_map, WORLD.target, model.space.target),
    ):
        assert np.abs(one(given.vectors) - np.asarray(there.vectors)).max() < 1e-4


def test_retraining_again_and_again_does_not_wear_a_model_out():
    model = model_of("advanced", WORLD.pairs(0, 200))
    once = after(model, Lexicon([]))
    again = once
    for _ in range(3):
        again = after(again, Lexicon([]))
    assert accuracy(again) >= accuracy(once) - 0.03


def test_decisions_teach_about_other_words(weak):
    without = accuracy(after(weak, Lexicon([])))
    with_decisions = accuracy(after(weak, WORLD.pairs(100, 160)))
    assert with_decisions > without + 0.05


@pytest.mark.parametrize(
    ("gained", "lost", "verdict"),
    [
        (0, 0, "too few to tell"),
        (5, 0, "too few to tell"),
        (6, 0, "better"),
        (0, 6, "worse"),
        (12, 10, "too few to tell"),
    ],
)
def test_a_few_words_are_too_few_to_tell(gained, lost, verdict):
    assert change_verdict(gained, lost) == verdict


def test_the_comparison_has_intervals(weak):
    found = held_out_accuracy(weak, weak, HELD_BACK)
    low, high = found["before_interval"]
    assert low < found["before"] < high and found["before_interval"] == found["after_interval"]
    assert (found["gained"], found["lost"], found["verdict"]) == (0, 0, "too few to tell")
