"""Stage C2: on a planted problem that only both views together solve, its combination, over all aligners."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from bilex import C2, BilexError
from bilex.aligners import get_method
from bilex.cli import run
from bilex.encoders import Combination, TuningSettings, WordEncoder, run_stage_c2
from bilex.encoders.model import encode_cached
from bilex.encoders.stage import generalised_procrustes
from bilex.encoders.tuning import Tuner
from bilex.fit import fit
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.space import Space
from bilex.vectors import WordVectors
from bilex.vectors.stored import unit_rows

WORDS = 240


def languages(seed: int = 0) -> tuple[WordVectors, WordVectors, Lexicon]:
    """A target language whose words are the source's with each letter shifted, and noisy rotated vectors."""
    rng = np.random.default_rng(seed)
    letters = "abcdefghijklm"
    spelt: list[str] = []
    while len(spelt) < WORDS:
        word = "".join(rng.choice(list(letters), rng.integers(2, 6)))
        if word not in spelt:
            spelt.append(word)
    shifted = ["".join(chr(ord(letter) + 13) for letter in word) for word in spelt]
    vectors = rng.normal(size=(WORDS, 20))
    rotation = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    other = vectors @ rotation + 1.5 * rng.normal(size=vectors.shape)
    source = WordVectors(spelt, vectors.astype(np.float32))
    target = WordVectors(shifted, other.astype(np.float32))
    return source, target, Lexicon(list(zip(spelt, shifted, strict=True)), "planted")


SETTINGS = TuningSettings(
    negatives=8, epochs=12, batch_size=20, learning_rate=3e-3, dropout=0.0, induced=0, precision="float32"
)


def hits(source: WordVectors, target: WordVectors, rows: range) -> float:
    best = (source.vectors[list(rows)] @ target.vectors.T).argmax(axis=1)
    return float((best == np.array(rows)).mean())


@pytest.fixture
def stage(tiny_folder: Path) -> C2:
    return C2(tiny_folder, mixing=0.5, tuning=SETTINGS, device="cpu")


def test_the_stage_improves_on_the_aligner_alone(stage: C2) -> None:
    source, target, lexicon = languages()
    seeds = lexicon.head(200)
    aligner = get_method("procrustes")(device="cpu").fit(source, target, seeds)
    untuned = run_stage_c2(aligner, source, target, seeds, replace(stage, tune=False))
    result = run_stage_c2(aligner, source, target, seeds, stage)
    unseen = range(200, WORDS)
    alone = hits(*result.mixed(0.0), unseen)
    tuned_lm, plain_lm = hits(*result.mixed(1.0), unseen), hits(*untuned.mixed(1.0), unseen)
    both = hits(result.source, result.target, unseen)
    assert tuned_lm > plain_lm + 0.1
    assert both > alone + 0.05
    assert result.report.losses[-1] < result.report.losses[0]
    assert result.report.pairs == 200
    assert result.source.dim == 24
    np.testing.assert_allclose(np.linalg.norm(result.source.vectors, axis=1), 1, atol=1e-5)
    assert not untuned.report.tuned


def test_lambda_auto_is_left_to_the_trial(stage: C2) -> None:
    source, target, lexicon = languages()
    aligner = get_method("procrustes")(device="cpu").fit(source, target, lexicon)
    with pytest.raises(BilexError, match=r"Translator\.fit; give a number"):
        run_stage_c2(aligner, source, target, lexicon, replace(stage, mixing="auto"))


def test_no_or_one_pair_is_reported(stage: C2) -> None:
    source, target, lexicon = languages()
    aligner = get_method("procrustes")(device="cpu").fit(source, target, lexicon)
    for seeds in (None, Lexicon([]), lexicon.head(1), Lexicon([("no", "such")] * 5)):
        with pytest.raises(BilexError, match="needs at least 2"):
            run_stage_c2(aligner, source, target, seeds, stage)


def test_unreadable_words_keep_their_static_vectors(stage: C2) -> None:
    source, target, lexicon = languages()
    source.index_to_key[150] = "\u3000"
    source = WordVectors(source.index_to_key, source.vectors)
    aligner = get_method("procrustes")(device="cpu").fit(source, target, lexicon)
    result = run_stage_c2(aligner, source, target, lexicon, replace(stage, tune=False))
    assert result.report.unreadable_words == 1
    np.testing.assert_allclose(result.source.vectors[150], result.mixed(0.0)[0].vectors[150], atol=1e-6)


def test_the_tuned_encoder_is_saved_with_its_card(stage: C2, tmp_path: Path) -> None:
    source, target, lexicon = languages()
    aligner = get_method("procrustes")(device="cpu").fit(source, target, lexicon)
    result = run_stage_c2(
        aligner, source, target, lexicon, replace(stage, tuning=replace(SETTINGS, epochs=1))
    )
    result.save_encoder(tmp_path / "tuned")
    again = WordEncoder.load(tmp_path / "tuned", device="cpu")
    assert again.fingerprint() == result.encoder.fingerprint()
    card = (tmp_path / "tuned" / "README.md").read_text()
    assert "240 word pairs" in card
    assert "`procrustes`" in card
    assert f"{result.report.losses[0]:.4f}" in card


def test_another_weight_from_the_checkpoint_costs_neither_tuning_nor_encoding(
    stage: C2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target, lexicon = languages()
    aligner = get_method("procrustes")(device="cpu").fit(source, target, lexicon)
    quick = replace(stage, tuning=replace(SETTINGS, epochs=1))
    first = run_stage_c2(aligner, source, target, lexicon, quick, checkpoint=tmp_path / "c")
    monkeypatch.setattr(WordEncoder, "encode", lambda *_, **__: pytest.fail("encoded again"))
    monkeypatch.setattr(Tuner, "_update", lambda *_: pytest.fail("tuned again"))
    again = run_stage_c2(
        aligner, source, target, lexicon, replace(quick, mixing=0.1), checkpoint=tmp_path / "c"
    )
    np.testing.assert_allclose(again.source.vectors, first.mixed(0.1)[0].vectors, atol=1e-6)


def test_encodings_are_kept_by_content(make_encoder: Callable[..., WordEncoder], tmp_path: Path) -> None:
    encoder = make_encoder()
    computed: list[int] = []
    ordinary = encoder.encode
    encoder.encode = lambda table, **o: computed.append(len(table)) or ordinary(table, **o)

    def run(words: list[str]) -> np.ndarray:
        return encode_cached(encoder, words, encoder.tokenise(words), tmp_path)

    first = run(["ab", "cd"])
    np.testing.assert_array_equal(run(["ab", "cd"]), first)
    assert computed == [2]
    run(["ab", "cd", "e"])
    assert computed == [2, 3]
    next(encoder.parameters()).data[6:].mul_(-1)
    assert not np.allclose(run(["ab", "cd"]), first)
    assert computed == [2, 3, 2]


def test_a_cache_of_others_is_used_although_its_files_cannot_be_changed(
    make_encoder: Callable[..., WordEncoder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, words = make_encoder(), ["ab", "cd"]
    (tmp_path / "removed meanwhile.safetensors").symlink_to(tmp_path / "nowhere")
    first = encode_cached(encoder, words, encoder.tokenise(words), tmp_path)

    def refused(*_: object) -> None:
        raise PermissionError("not the owner")

    monkeypatch.setattr(Path, "touch", refused)
    monkeypatch.setattr(WordEncoder, "encode", lambda *_, **__: pytest.fail("encoded again"))
    again = encode_cached(encoder, words, encoder.tokenise(words), tmp_path)
    np.testing.assert_array_equal(again, first)


def test_the_demo_gives_the_encoder_less_weight(make_encoder: Callable[..., WordEncoder]) -> None:
    encoder = make_encoder()
    encoder.preset = replace(encoder.preset, mixing=0.4)
    weights = [C2(preset=preset, mixing="prior").mixing_for(encoder) for preset in ("paper", "light", "demo")]
    assert weights == [0.4, 0.4, 0.35]
    assert C2(preset="demo", mixing=0.6).mixing_for(encoder) == 0.6


@pytest.mark.parametrize("mixing", [-0.1, 1.5, "much"])
def test_a_senseless_weight_is_refused(mixing: object) -> None:
    with pytest.raises(BilexError, match="from 0 to 1"):
        C2(mixing=mixing)


# Procrustes between spaces of different dimensions, mixing, and the choice of λ.


PAIRS = np.array([[i, i] for i in range(40)])


def random_unit(rows: int, dim: int, seed: int) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).normal(size=(rows, dim)))


@pytest.mark.parametrize(("first", "second"), [(6, 9), (9, 6), (7, 7)])
def test_a_planted_rotation_between_dimensions_is_found(first: int, second: int) -> None:
    small, large = sorted((first, second))
    views = random_unit(50, small, 0)
    across = np.linalg.qr(np.random.default_rng(1).normal(size=(large, small)))[0].T.astype(np.float32)
    other = views @ across
    pair = (views, other) if first <= second else (other, views)
    one, two = generalised_procrustes(*pair)
    np.testing.assert_allclose(pair[0] @ one, pair[1] @ two, atol=1e-5)
    assert one.shape[1] == two.shape[1] == large


def test_the_map_is_u_i0_vt_of_the_full_svd() -> None:
    views, others = random_unit(30, 5, 2), random_unit(30, 8, 3)
    u, _, vt = scipy.linalg.svd(views.astype(np.float64).T @ others)
    expected = u @ np.eye(5, 8) @ vt
    np.testing.assert_allclose(generalised_procrustes(views, others)[0], expected, atol=1e-6)


def test_rows_are_the_formula_written_out() -> None:
    static = random_unit(60, 5, 0), random_unit(50, 5, 1)
    encoded = random_unit(60, 8, 2), random_unit(50, 8, 3)
    combination = Combination.fit(static, encoded, PAIRS, 0.3)
    views = np.concatenate([static[0][:40], static[1][:40]])
    others = np.concatenate([encoded[0][:40], encoded[1][:40]])
    u, _, vt = scipy.linalg.svd(views.astype(np.float64).T @ others)
    mapped = static[0] @ (u @ np.eye(5, 8) @ vt)
    expected = 0.7 * mapped / np.linalg.norm(mapped, axis=1, keepdims=True) + 0.3 * encoded[0]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(combination(static[0], encoded[0]), expected, atol=1e-5)


def test_the_ends_of_mixing_and_words_that_one_view_does_not_know() -> None:
    static, encoded = random_unit(4, 5, 0), random_unit(4, 8, 1)
    combination = Combination.fit((static, static), (encoded, encoded), PAIRS[:4], 0.4)
    alone = combination.with_mixing(1.0)(static, encoded)
    np.testing.assert_allclose(alone, encoded, atol=1e-6)
    np.testing.assert_allclose(combination(np.zeros_like(static), encoded), encoded, atol=1e-6)
    unread = combination(static, np.zeros_like(encoded))
    np.testing.assert_allclose(unread, combination.with_mixing(0.0)(static, encoded), atol=1e-6)
    np.testing.assert_allclose(unread @ unread.T, static @ static.T, atol=1e-5)
    np.testing.assert_allclose(combination.with_mixing(1.0)(static, 0 * encoded), unread, atol=1e-6)
    np.testing.assert_allclose(combination.with_mixing(0.0)(0 * static, encoded), encoded, atol=1e-6)


def test_a_combination_saves_itself() -> None:
    combination = Combination(np.eye(2, 3, dtype=np.float32), np.eye(3, dtype=np.float32), 0.3)
    again = Combination.from_state(combination.state())
    assert again.mixing == 0.3
    np.testing.assert_array_equal(again.static_map, combination.static_map)
    np.testing.assert_array_equal(again.encoder_map, combination.encoder_map)


# Stage C2 over aligners of every kind, and from the command line, with a tiny encoder.


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
