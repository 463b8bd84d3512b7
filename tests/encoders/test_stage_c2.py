"""The whole stage on a planted problem that only both views together solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bilex.aligners import get_method
from bilex.core.errors import BilexError
from bilex.encoders.model import WordEncoder, encode_cached
from bilex.encoders.settings import C2, TuningSettings
from bilex.encoders.stage import run_stage_c2
from bilex.encoders.tuning import Tuner
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

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
    next(encoder.module.parameters()).data[6:].mul_(-1)
    assert not np.allclose(run(["ab", "cd"]), first)
    assert computed == [2, 3, 2]


def test_a_light_preset_gives_the_encoder_less_weight(make_encoder: Callable[..., WordEncoder]) -> None:
    encoder = make_encoder()
    encoder.preset = replace(encoder.preset, mixing=0.4)
    weights = [C2(preset=preset, mixing="prior").mixing_for(encoder) for preset in ("paper", "light", "demo")]
    assert weights == [0.4, 0.3, 0.3]
    assert C2(preset="light", mixing=0.6).mixing_for(encoder) == 0.6


@pytest.mark.parametrize("mixing", [-0.1, 1.5, "much"])
def test_a_senseless_weight_is_refused(mixing: object) -> None:
    with pytest.raises(BilexError, match="from 0 to 1"):
        C2(mixing=mixing)
