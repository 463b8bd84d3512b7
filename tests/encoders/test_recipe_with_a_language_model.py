"""A recipe with a language model: λ from the trial, honest confidences, saving and loading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_stage_c2 import SETTINGS, languages

from bilex.core.errors import BilexError
from bilex.encoders import stage as stage_module
from bilex.encoders.combine import Combination, mixed_views, unit_rows
from bilex.encoders.model import WordEncoder
from bilex.fit import Fitted, Recipe, evidence, fit, trial
from bilex.fit.calibration import Records, ask
from bilex.fit.scoring import word_scores
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.space import Space
from bilex.search import arithmetic


@pytest.fixture
def recipe(tiny_folder: Path) -> Recipe:
    return Recipe(
        method="procrustes",
        lm=str(tiny_folder),
        tuning_settings=replace(SETTINGS, epochs=2),
        device="cpu",
    )


def test_lambda_is_chosen_without_the_held_out_pairs(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target, lexicon = languages()
    seeds = lexicon.head(200)
    seen: list[set[tuple[str, str]]] = []
    ordinary = stage_module.training_pairs

    def spy(x: np.ndarray, y: np.ndarray, pairs: np.ndarray, *others: Any) -> object:
        seen.append({(source.index_to_key[a], target.index_to_key[b]) for a, b in pairs})
        return ordinary(x, y, pairs, *others)

    monkeypatch.setattr(stage_module, "training_pairs", spy)
    fitted = fit(recipe, source, target, seeds)
    split = evidence.hold_out(seeds, source.key_to_index, target.key_to_index, 0.1, 0)
    assert split is not None
    held_out = set(split[1].pairs)
    assert len(held_out) == fitted.report.trial.held_out_words == 40
    in_trial, in_fit = seen
    assert not in_trial & held_out and in_fit >= held_out
    assert fitted.combination is not None and fitted.report.language_model is not None
    assert fitted.report.trial.mixing == fitted.combination.mixing == fitted.report.language_model.mixing
    assert len(fitted.report.trial.mixing_scores) == len(evidence.MIXING_GRID)
    assert fitted.calibration.parts["forward", "csls"].words == 40


def test_confidences_come_from_words_that_did_not_choose_lambda(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The halves are made to choose other λ than all words do; each half is asked with the other's λ."""
    chosen = iter([0.3, 0.1, 0.9])  # all words, the first half, the second half
    asked: list[tuple[Space, Lexicon]] = []

    def watched(space: Space, held_out: Lexicon) -> Records:
        asked.append((space, held_out))
        return ask(space, held_out)

    monkeypatch.setattr(evidence, "choose_mixing", lambda curve, prior: next(chosen))
    monkeypatch.setattr(trial, "ask", watched)
    source, target, lexicon = languages()
    fitted = fit(recipe, source, target, lexicon.head(200))
    assert fitted.combination is not None and fitted.combination.mixing == 0.3
    (of_second, first), (of_first, second) = asked
    assert not {word for pair in first.pairs for word in pair} & {w for pair in second.pairs for w in pair}
    rows = [np.asarray(space.source.vectors) for space in (of_first, of_second)]
    alike = [float(np.linalg.norm(vectors @ vectors.T)) for vectors in rows]
    assert alike[0] < alike[1], "words are more alike to the tiny encoder, and the second half chose 0.9"


def test_too_few_seeds_take_the_usual_lambda_and_say_so(recipe: Recipe) -> None:
    source, target, lexicon = languages()
    fitted = fit(recipe, source, target, lexicon.head(60))
    assert fitted.report.trial.mixing == 0.2 and not fitted.report.trial.ran
    assert "60 seed words in the vectors are too few" in fitted.report.trial.note


def test_words_are_encoded_again_in_the_precision_of_the_recipe(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a processor on which another precision is faster."""
    monkeypatch.setattr(arithmetic, "fastest", lambda job: torch.bfloat16)
    source, target, lexicon = languages()
    made = replace(recipe, mixing=0.4, calibrate=False, choose_form=False)
    assert made.tuning_settings is not None and made.tuning_settings.precision == "float32"
    fitted = fit(made, source, target, lexicon.head(200))
    fitted.save(tmp_path / "fitted")
    loaded = Fitted.load(tmp_path / "fitted", source, target, device="cpu")
    np.testing.assert_allclose(loaded.space.source.vectors, fitted.space.source.vectors, atol=1e-5)


def test_a_fitted_recipe_saves_and_loads_itself(recipe: Recipe, tmp_path: Path) -> None:
    source, target, lexicon = languages()
    seeds = lexicon.head(200)
    for made in (replace(recipe, mixing=0.4), replace(recipe, lm=None)):
        fitted = fit(made, source, target, seeds, rejected=[("abc", "nop")])
        folder = tmp_path / ("plain" if made.lm is None else "combined")
        fitted.save(folder)
        loaded = Fitted.load(folder, source, target, device="cpu")
        assert loaded.recipe == made
        assert loaded.calibration == fitted.calibration
        assert loaded.report.as_dict() == fitted.report.as_dict()
        assert loaded.seeds.pairs == list(seeds.pairs) and list(loaded.seeds.rejected) == [("abc", "nop")]
        np.testing.assert_allclose(loaded.space.source.vectors, fitted.space.source.vectors, atol=1e-5)
        words = source.index_to_key[200:210]
        first, again = (Translator.of(one, source, target).translate(words, 1) for one in (fitted, loaded))
        assert [answer[0].word for answer in first] == [answer[0].word for answer in again]
        fitted.save(folder)
        with pytest.raises(BilexError, match="vectors of dimension 20 and 20, not 20 and 24"):
            Fitted.load(folder, source, fit(recipe, source, target, seeds).space.target)
    (tmp_path / "plain" / "fitted.json").write_text("{}")
    with pytest.raises(BilexError, match="was changed or damaged"):
        Fitted.load(tmp_path / "plain", source, target)
    with pytest.raises(BilexError, match="there is no fitted recipe"):
        Fitted.load(tmp_path / "nothing", source, target)


@pytest.mark.parametrize(
    ("noises", "low", "high"), [((0.3, 3.0), 0.0, 0.3), ((3.0, 0.3), 0.7, 1.0), ((1, 1), 0.3, 0.7)]
)
def test_the_better_view_gets_the_greater_weight(
    noises: tuple[float, float], low: float, high: float
) -> None:
    rng = np.random.default_rng(4)
    truth = rng.normal(size=(400, 30))
    static, encoded = (
        [unit_rows(truth + noise * rng.normal(size=truth.shape)) for _ in range(2)] for noise in noises
    )
    learned, held_out = (np.array([[i, i] for i in range(*ends)]) for ends in ((0, 40), (100, 300)))
    combination = Combination.fit((static[0], static[1]), (encoded[0], encoded[1]), learned, 0.5)
    views = [combination.views(s, e) for s, e in zip(static, encoded, strict=True)]
    curve = {
        mixing: word_scores(*(mixed_views(*view, mixing) for view in views), held_out, "cpu").mean()
        for mixing in evidence.MIXING_GRID
    }
    assert low <= evidence.choose_mixing(curve, prior=0.2) <= high


def test_the_random_seed_is_also_that_of_the_tuning(make_encoder: Callable[..., WordEncoder]) -> None:
    encoder = make_encoder()
    usual = Recipe(lm="some model", device="cpu").stage(encoder)
    other = Recipe(lm="some model", device="cpu", random_seed=4).stage(encoder)
    assert usual is not None and other is not None
    assert other.settings_for(encoder).seed == usual.settings_for(encoder).seed + 4
