"""A fit with a language model: λ from the trial, and honest confidences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_stage_c2 import SETTINGS, languages

from bilex import C2
from bilex.aligners.procrustes import Procrustes
from bilex.encoders import Combination, WordEncoder, tuning
from bilex.encoders.stage import mixed_views
from bilex.fit import fit, trial
from bilex.fit.trial import hold_out, word_scores
from bilex.vectors.stored import unit_rows

ALIGNER = Procrustes(device="cpu")


@pytest.fixture
def encoder(tiny_folder: Path) -> C2:
    return C2(tiny_folder, tuning=replace(SETTINGS, epochs=2))


def test_lambda_is_chosen_without_the_held_out_pairs(encoder: C2, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target, lexicon = languages()
    seeds = lexicon.head(200)
    seen: list[set[tuple[str, str]]] = []
    ordinary = tuning.training_pairs

    def spy(x: np.ndarray, y: np.ndarray, pairs: np.ndarray, *others: Any) -> object:
        seen.append({(source.index_to_key[a], target.index_to_key[b]) for a, b in pairs})
        return ordinary(x, y, pairs, *others)

    monkeypatch.setattr(tuning, "training_pairs", spy)
    fitted = fit(ALIGNER, source, target, seeds, encoder=encoder)
    split = hold_out(seeds, 0.1, 0)
    assert split is not None
    held_out = set(split[1].pairs)
    assert len(held_out) == fitted.report.trial.held_out_words == 40
    in_trial, in_fit = seen
    assert not in_trial & held_out and in_fit >= held_out
    assert fitted.stage is not None and fitted.report.language_model is not None
    assert encoder.mixing == "auto"
    assert (
        fitted.report.trial.mixing == fitted.stage.combination.mixing == fitted.report.language_model.mixing
    )
    assert len(fitted.report.trial.mixing_scores) == len(trial.MIXING_GRID)
    assert fitted.calibration.parts["forward", "csls"].words == 40


def test_too_few_seeds_take_the_usual_lambda_and_say_so(encoder: C2) -> None:
    source, target, lexicon = languages()
    fitted = fit(ALIGNER, source, target, lexicon.head(60), encoder=encoder)
    assert fitted.report.trial.mixing == 0.2 and not fitted.report.trial.ran
    assert "60 seed words in the vectors are too few" in fitted.report.trial.note


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
    curve = {}
    for mixing in trial.MIXING_GRID:
        scores = word_scores(*(mixed_views(*view, mixing) for view in views), held_out, "cpu")
        curve[mixing] = np.concatenate(scores)
    assert low <= trial.choose_mixing(curve, prior=0.2) <= high


def test_the_random_seed_and_the_device_of_the_aligner_are_also_those_of_the_encoder(
    encoder: C2, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[C2 | None] = []

    def watched(*args: Any, encoder: C2 | None, **rest: Any) -> object:
        seen.append(encoder)
        return trial.decide(*args, encoder=encoder, **rest)

    monkeypatch.setattr("bilex.fit.fitting.decide", watched)
    source, target, lexicon = languages()
    asked = replace(encoder, mixing=0.4)
    for settings in (asked, replace(asked, random_seed=9)):
        fit(
            Procrustes(device="cpu", seed=4),
            source,
            target,
            lexicon.head(60),
            encoder=settings,
            calibrate=False,
        )
    assert [(one.random_seed, one.device) for one in seen if one is not None] == [(4, "cpu"), (9, "cpu")]


def test_the_random_seed_is_added_to_that_of_the_tuning(make_encoder: Callable[..., WordEncoder]) -> None:
    encoder = make_encoder()
    usual, other = (C2(encoder, random_seed=seed).settings_for(encoder) for seed in (None, 4))
    assert other.seed == usual.seed + 4
