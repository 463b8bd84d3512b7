from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bilex.aligners.maps import Center, Linear, Map, Unit
from bilex.model import Translator
from bilex.model.refine import inverse_map, taken_back
from planted import planted

WORLD = planted(words=700, dim=24, noise=0.7, seed=3)


def model_of(method, seeds):
    return Translator(method).fit(WORLD.source, WORLD.target, seeds, calibrate=False)


@pytest.fixture(scope="module")
def weak():
    return model_of("procrustes", WORLD.pairs(0, 15))


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
