"""Stage C2 over aligners of every kind, and from the command line, with a tiny encoder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_stage_c2 import SETTINGS, WORDS, hits, languages

from bilex.aligners import get_method
from bilex.cli import run
from bilex.encoders.model import WordEncoder
from bilex.encoders.settings import C2
from bilex.encoders.stage import run_stage_c2
from bilex.fit import fit
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.space import Space

QUICK = replace(SETTINGS, epochs=6)
METHODS: dict[str, dict[str, Any]] = {
    "procrustes": {},
    "advanced": {},
    "fipp": {},
    "rcsls": {},
    "vecmap-supervised": {},
    "vecmap-semi": {"patience": 2},
    "vecmap-unsupervised": {"patience": 2},
    "lnmap": {
        "hidden": 40,
        "latent": 20,
        "autoencoder_samples": 1_000,
        "autoencoder_epochs": 10,
        "autoencoder_rate": 1e-2,
        "mapper_epochs": 40,
        "rounds": 1,
    },
}


@pytest.mark.parametrize("method", METHODS)
def test_the_stage_takes_the_space_of_any_aligner(method: str, tiny_folder: Path) -> None:
    source, target, lexicon = languages()
    seeds = lexicon.head(200)
    aligner = get_method(method)(device="cpu", **METHODS[method]).fit(source, target, seeds)
    tuned = method in ("procrustes", "lnmap")  # a linear map, and networks
    stage = C2(tiny_folder, mixing=0.5, tune=tuned, tuning=QUICK, device="cpu")
    result = run_stage_c2(aligner, source, target, seeds, stage)
    assert result.report.aligner == method
    static, encoded = result.mixed(0.0), result.mixed(1.0)
    space = Space.from_aligner(aligner, source, target)
    own = [
        side.vectors / np.linalg.norm(side.vectors, axis=1, keepdims=True)
        for side in (space.source, space.target)
    ]
    np.testing.assert_allclose(static[0].vectors @ static[1].vectors.T, own[0] @ own[1].T, atol=1e-4)
    unseen = range(200, WORDS)
    if tuned:
        assert hits(result.source, result.target, unseen) >= hits(*static, unseen)
        assert hits(*encoded, unseen) > 0.05, "one word in 240 would be chance"


def test_lambda_is_chosen_over_an_aligner_with_networks(tiny_folder: Path) -> None:
    source, target, lexicon = languages()
    aligner = get_method("lnmap")(**{"device": "cpu", **METHODS["lnmap"]})
    encoder = C2(tiny_folder, tuning=replace(QUICK, epochs=1))
    fitted = fit(aligner, source, target, lexicon, encoder=encoder, calibrate=False)
    assert fitted.stage is not None
    assert fitted.stage.combination.mixing == fitted.report.trial.mixing is not None


def test_an_open_encoder_stays_as_it_is(tiny_folder: Path) -> None:
    source, target, lexicon = languages()
    aligner = get_method("procrustes")(device="cpu").fit(source, target, lexicon)
    encoder = WordEncoder.load(tiny_folder, device="cpu")
    before = encoder.fingerprint()
    stage = C2(encoder, mixing=0.5, tuning=replace(QUICK, epochs=1), device="cpu")
    result = run_stage_c2(aligner, source, target, lexicon, stage)
    assert encoder.fingerprint() == before != result.encoder.fingerprint()
    named = run_stage_c2(aligner, source, target, lexicon, replace(stage, lm=tiny_folder))
    assert named.encoder.fingerprint() == result.encoder.fingerprint()


@pytest.fixture
def command(tiny_folder: Path, tmp_path: Path) -> list[str]:
    """`bilex align` with the tiny encoder on files."""
    source, target, lexicon = languages()
    source.save(tmp_path / "source", "safetensors")
    target.save(tmp_path / "target", "safetensors")
    lexicon.save(tmp_path / "seeds.tsv")
    files = [str(tmp_path / "source"), str(tmp_path / "target"), "--seeds", str(tmp_path / "seeds.tsv")]
    overrides = ["--method", "procrustes", "--lm", str(tiny_folder), "--device", "cpu", "-o"]
    return ["align", *files, *overrides, str(tmp_path / "model")]


def test_without_a_gpu_the_light_tuning_is_taken_and_said_once(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == 0
    caught = [line for line in capsys.readouterr().err.splitlines() if "light tuning" in line]
    assert len(caught) == 1 and "8 negatives per side, 2 epochs)" in caught[0], caught
    model = Translator.load(tmp_path / "model").provenance.language_model
    assert (model.preset, model.tuning.precision) == ("light", "auto")
    assert model.arithmetic in ("float32", "bfloat16")


@pytest.mark.parametrize(
    ("override", "preset"),
    [
        (["--tuning", "light"], "light"),
        (["--tuning", "paper"], "paper"),
    ],
)
def test_a_tuning_that_is_asked_for_is_not_announced(
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    override: list[str],
    preset: str,
) -> None:
    assert run([*command, *override, "--no-calibrate", "--lambda", "0.3"]) == 0
    assert "No GPU" not in capsys.readouterr().err
    assert Translator.load(tmp_path / "model").provenance.language_model.preset == preset


def test_the_demo_with_a_language_model(
    tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target, lexicon = languages()
    sample = tmp_path / "sample"
    source.save(sample / "en")
    target.save(sample / "fi")
    lexicon.head(200).save(sample / "seeds.tsv")
    Lexicon(lexicon.pairs[200:]).save(sample / "test.tsv")
    monkeypatch.setattr("bilex.data.sample_path", lambda: sample)
    out = tmp_path / "out"
    overrides = ["--output", str(out), "--method", "procrustes", "--lm", str(tiny_folder), "--device", "cpu"]
    assert run(["demo", *overrides]) == 0
    shown = capsys.readouterr().out
    scores = json.loads((out / "scores.json").read_text())
    assert f"{scores['forward']['csls']['p@1']:.1%}" in shown
    assert "procrustes +" in shown, "both stages are shown"
    translator = Translator.load(out / "en-fi")
    assert translator.provenance.language_model.tuning.epochs == 1
    assert translator.provenance.language_model.mixing == 0.2
    assert translator.translate("abba").translations, "the encoder reads any word"
