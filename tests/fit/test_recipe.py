"""A recipe is plain data that survives JSON, and makes what it says."""

from __future__ import annotations

import numpy as np
import pytest

from bilex.aligners.c1 import C1
from bilex.aligners.procrustes import Procrustes
from bilex.core.errors import BilexError
from bilex.encoders.presets import TuningSettings
from bilex.encoders.settings import StageC2
from bilex.fit import Recipe, fit
from bilex.model import Translator
from planted import planted


def test_a_recipe_survives_json() -> None:
    recipe = Recipe(
        method="c1",
        settings={"preset": "paper", "updates": 7},
        lm="e5-small-q4",
        tuning_settings=TuningSettings(epochs=3),
        mixing=0.4,
        calibrate=False,
        held_out=0.2,
        random_seed=5,
        device="cpu",
    )
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert again.tuning_settings == TuningSettings(epochs=3)
    aligner = again.aligner()
    assert isinstance(aligner, C1)
    assert (aligner.preset, aligner.updates, aligner.seed, aligner.device) == ("paper", 7, 5, "cpu")


def test_the_recipe_of_what_was_made_by_hand() -> None:
    aligner = C1(updates=3, seed=4, device="cpu")
    stage = StageC2(lm="some model", mixing=0.3, tune=False, device="cpu")
    recipe = Recipe.of(aligner, stage, calibrate=False)
    assert recipe.settings == {"updates": 3}
    assert (recipe.random_seed, recipe.lm, recipe.mixing, recipe.tune) == (4, "some model", 0.3, False)
    assert recipe.aligner() == aligner


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ("[]", "JSON object"),
        ('{"metod": "c1"}', "no entry 'metod'.* Did you mean 'method'"),
        ('{"tuning_settings": {"ephocs": 3}}', "this is no recipe"),
        ('{"mixing": 1.5}', "from 0 to 1"),
        ('{"mixing": true}', "from 0 to 1"),
        ('{"held_out": 1}', "cannot be held out"),
        ('{"tuning": "heavy"}', "'heavy' is not known"),
    ],
)
def test_what_is_no_recipe_is_refused(text: str, message: str) -> None:
    with pytest.raises(BilexError, match=message):
        Recipe.from_json(text)


def test_an_unknown_method_or_setting_is_named() -> None:
    with pytest.raises(BilexError, match=r"method 'procrust' is not known.*Did you mean 'procrustes'"):
        Recipe(method="procrust").aligner()
    with pytest.raises(BilexError, match=r"'c1' has no setting 'update'.*Did you mean 'updates'"):
        Recipe(settings={"update": 3}).aligner()


def test_fit_makes_what_the_translator_makes() -> None:
    world = planted(500, 12, 0.5)
    seeds = world.pairs(0, 300)
    fitted = fit(Recipe(method="procrustes", device="cpu"), world.source, world.target, seeds)
    by_hand = Translator.fit(Procrustes(device="cpu"), world.source, world.target, seeds)
    assert np.array_equal(fitted.source_map.matrix, by_hand.source_map.matrix)
    assert fitted.calibration == by_hand.calibration
    assert fitted.encoder is None and fitted.combination is None
    made = Translator.of(fitted, world.source, world.target, languages=("en", "fi"))
    assert made.languages == ("English", "Finnish")
    word = world.source.index_to_key[400]
    assert made.translate(word)[0] == by_hand.translate(word)[0]


def test_rejected_pairs_leave_the_seeds() -> None:
    world = planted(100, 8, 0.3)
    seeds = world.pairs(0, 50)
    wrong = seeds.pairs[3]
    recipe = Recipe(method="procrustes", calibrate=False, device="cpu")
    fitted = fit(recipe, world.source, world.target, seeds, rejected=[wrong])
    assert wrong not in fitted.seeds.pairs and list(fitted.seeds.rejected) == [wrong]
    assert len(fitted.seeds) == 49


def test_a_model_remembers_its_recipe() -> None:
    world = planted(100, 8, 0.3)
    recipe = Recipe(method="procrustes", calibrate=False, device="cpu", random_seed=3)
    fitted = fit(recipe, world.source, world.target, world.pairs(0, 50))
    made = Translator.of(fitted, world.source, world.target)
    assert made.provenance.recipe == recipe
