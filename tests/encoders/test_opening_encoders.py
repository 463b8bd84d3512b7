"""Opening encoders by folder and name, saving them, and the sentences about those that cannot be had."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bilex.core.errors import BilexError
from bilex.encoders.model import WordEncoder
from bilex.encoders.settings import PRESETS, Reading, TuningSettings, lightened, preset_for


@pytest.mark.parametrize("kind", ["bert", "mt5"])
def test_a_saved_encoder_is_read_as_before(
    make_encoder: Callable[..., WordEncoder], tmp_path: Path, kind: str
) -> None:
    """Of an encoder-decoder model the encoder is saved alone, which AutoModel took for the whole model."""
    encoder = make_encoder(kind, pooling="mean", max_length=7)
    encoder.save(tmp_path / "saved", "card")
    again = WordEncoder.load(tmp_path / "saved", device="cpu")
    assert again.preset.reading == Reading(pooling="mean", max_length=7)
    assert again.fingerprint() == encoder.fingerprint()
    np.testing.assert_allclose(again.encode(["abc", "z"]), encoder.encode(["abc", "z"]), atol=1e-6)
    assert (tmp_path / "saved" / "README.md").read_text() == "card"


def test_automodel_opens_a_saved_encoder_as_one_of_its_own(tiny_folder: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(tiny_folder), AutoTokenizer.from_pretrained(tiny_folder)
    assert {type(part).__module__.split(".")[0] for part in (model, tokenizer)} == {"transformers"}
    batch = tokenizer(["abc"], return_tensors="pt", return_token_type_ids=False)
    assert model(**batch).last_hidden_state.isfinite().all()


def test_pooling_of_sentence_transformers_is_honoured(tiny_folder: Path) -> None:
    (tiny_folder / "bilex_encoder.json").unlink()
    assert preset_for("x", tiny_folder).reading.pooling == "cls"
    (tiny_folder / "1_Pooling").mkdir()
    (tiny_folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    assert preset_for("x", tiny_folder).reading.pooling == "mean"
    assert WordEncoder.load(tiny_folder, device="cpu").preset.reading.pooling == "mean"


def test_a_template_surrounds_the_word(tiny_folder: Path) -> None:
    templated = WordEncoder.load(tiny_folder, reading=Reading(template="a {}", max_length=8), device="cpu")
    assert templated.tokenise(["bc", ""]).lengths.tolist() == [5, 0]


def test_a_folder_without_weights_is_reported(tiny_folder: Path) -> None:
    (tiny_folder / "model.safetensors").unlink()
    with pytest.raises(BilexError, match="half downloaded"):
        WordEncoder.load(tiny_folder, device="cpu")


def test_a_cut_off_weight_file_is_reported(tiny_folder: Path) -> None:
    weights = tiny_folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    with pytest.raises(BilexError, match="half downloaded"):
        WordEncoder.load(tiny_folder, device="cpu")


def test_missing_tensors_are_reported(tiny_folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(tiny_folder / "model.safetensors")
    weights.pop("encoder.layer.1.output.dense.weight")
    save_file(weights, tiny_folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BilexError, match=r"lacks.*encoder\.layer\.1\.output\.dense\.weight"):
        WordEncoder.load(tiny_folder, device="cpu")


def test_a_folder_without_config_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BilexError, match=r"no config\.json"):
        WordEncoder.load(tmp_path, device="cpu")


def test_a_model_without_tokenizer_is_reported(tiny_folder: Path) -> None:
    for path in tiny_folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(BilexError, match="tokenizer"):
        WordEncoder.load(tiny_folder, device="cpu")


def test_a_decoder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(BilexError, match="left to right"):
        WordEncoder.load(tmp_path, device="cpu")


def test_an_unreachable_hub_names_the_offline_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    def unreachable(*_: object, **__: object) -> None:
        raise OSError("We couldn't connect to 'https://huggingface.co'.\nCheck your connection.")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", unreachable)
    with pytest.raises(BilexError, match=r"cannot be fetched.*e5-small-q4.*folder") as caught:
        WordEncoder.load("bert-base-multilingual-uncased", device="cpu")
    assert "\n" not in str(caught.value)


def test_presets_are_the_papers() -> None:
    mbert = PRESETS["bert-base-multilingual-uncased"]
    assert (mbert.reading, mbert.mixing) == (Reading(pooling="cls", max_length=6, template="{}"), 0.2)
    assert mbert.tuning == TuningSettings(
        negatives=28, frequent=60_000, induced=4_000, temperature=0.1, learning_rate=2e-5, weight_decay=0.01,
        epochs=5, batch_size=100, dropout=0.1, precision="auto", max_pairs=None, whole_batch=False, seed=33,
    )  # fmt: skip
    assert PRESETS["xlm-mlm-100-1280"].tuning.batch_size == 50
    assert (PRESETS["google/mt5-small"].tuning.learning_rate, PRESETS["google/mt5-small"].tuning.epochs) == (
        6e-4,
        6,
    )
    assert PRESETS["intfloat/multilingual-e5-small"].reading.pooling == "mean"
    assert preset_for("google-bert/bert-base-multilingual-uncased") == mbert


def test_lighter_presets_do_less_work() -> None:
    full = TuningSettings()
    assert lightened(full, "paper") is full
    light, demo = lightened(full, "light"), lightened(full, "demo")
    work = [(1 + s.negatives) * s.epochs for s in (full, light, demo)]
    assert work[0] > 4 * work[1] > 8 * work[2]
    assert light.precision == demo.precision == "auto", "which precision is fast is the machine's to say"
    with pytest.raises(BilexError, match="paper, light or demo"):
        lightened(full, "fast")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"pooling": "max"}, "cls or mean"),
        ({"max_length": 2}, "no room"),
        ({"template": "word"}, "where the word goes"),
    ],
)
def test_senseless_readings_are_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(BilexError, match=reason):
        Reading(**settings)


def test_importing_the_package_is_light() -> None:
    script = (
        "import sys, bilex.encoders; assert 'transformers' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tiny_folder: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BilexError, match=r"pip install 'bilex\[lm\]'"):
        WordEncoder.load(tiny_folder, device="cpu")
