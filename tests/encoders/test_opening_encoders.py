"""Opening encoders by folder and name, saving them, and the sentences about those that cannot be had."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bilex import BilexError
from bilex.encoders import PRESETS, Reading, TuningSettings, WordEncoder
from bilex.encoders.settings import lightened, preset_for


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


def test_a_broken_library_is_not_a_damaged_model(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    def broken(*_args: object, **_options: object) -> None:
        raise ModuleNotFoundError("No module named 'sentencepiece'")

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", broken)
    with pytest.raises(BilexError, match=r"cannot be imported \(.*sentencepiece.*\); install it with pip"):
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
        ({"max_length": 2}, "too short for a word"),
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


# Encoder folders that lie: nothing in them is run or unpickled, and each is refused in one sentence.


def refusal(folder: Path) -> str:
    with pytest.raises(BilexError) as caught:
        WordEncoder.load(folder, device="cpu")
    sentence = str(caught.value)
    assert "\n" not in sentence and str(folder) in sentence
    return sentence


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


class Attack:
    """What unpickling or importing would leave behind."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (os.system, (f"touch {self.proof}",))


OPENS_EACH = """
import sys
from bilex.core.errors import BilexError
from bilex.encoders.model import WordEncoder
for folder in sys.argv[1:]:
    try:
        WordEncoder.load(folder, device="cpu")
    except BilexError as error:
        print(error)
"""


def test_code_in_a_folder_is_never_run_whatever_stdin_says(tiny_folder: Path, tmp_path: Path) -> None:
    proof = tmp_path / "code-was-run"
    (tiny_folder / "own.py").write_text(f"from pathlib import Path\nPath({str(proof)!r}).touch()\n")
    names = ("AutoConfig", "AutoModel", "AutoModelForTextEncoding", "AutoTokenizer")
    folders = []
    for file in ("config.json", "tokenizer_config.json"):
        for kind in ("bert", "own"):  # one that the library knows, and one of its own
            folder = tmp_path / f"{kind}-{file}"
            shutil.copytree(tiny_folder, folder)
            edit(folder / "config.json", model_type=kind)
            edit(folder / file, auto_map=dict.fromkeys(names, "own.Own"))
            folders.append(folder)
    command = [sys.executable, "-c", OPENS_EACH, *map(str, folders)]
    ended = subprocess.run(command, input="y\n" * 9, text=True, capture_output=True, check=True)
    assert not proof.exists()
    refusals = ended.stdout.splitlines()
    assert len(refusals) == len(folders) and all("auto_map" in line for line in refusals)
    assert "y/N" not in ended.stdout + ended.stderr


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.bin", "tf_model.h5"])
def test_pickled_weights_are_never_opened(tiny_folder: Path, tmp_path: Path, name: str) -> None:
    proof = tmp_path / "pickle-was-opened"
    (tiny_folder / "model.safetensors").unlink()
    (tiny_folder / name).write_bytes(pickle.dumps(Attack(proof)))
    sentence = refusal(tiny_folder)
    assert "pickle" in sentence or not name.endswith(".bin")
    assert not proof.exists()


def test_safetensors_that_are_a_pickle_are_refused(tiny_folder: Path, tmp_path: Path) -> None:
    proof = tmp_path / "pickle-was-opened"
    torch.save(Attack(proof), tiny_folder / "model.safetensors")
    assert "damaged" in refusal(tiny_folder)
    assert not proof.exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: edit(folder / "config.json", quantization_config={"quant_method": "bitsandbytes"}),
        lambda folder: edit(folder / "config.json", hidden_size=-1),
        lambda folder: edit(folder / "config.json", hidden_size="many"),
        lambda folder: edit(folder / "config.json", num_attention_heads=0),
        lambda folder: edit(folder / "config.json", model_type=["bert"]),
        lambda folder: edit(folder / "config.json", hidden_act="none such"),
        lambda folder: (folder / "config.json").write_text("[]"),
        lambda folder: (folder / "config.json").write_text("[" * 100_000),
        lambda folder: (folder / "config.json").write_text('{"hidden_size": NaN}'),
        lambda folder: (folder / "tokenizer.json").write_text("[" * 100_000),
        lambda folder: (folder / "tokenizer.json").write_text("{}"),
        lambda folder: (folder / "tokenizer_config.json").write_text("7"),
        lambda folder: (folder / "bilex_encoder.json").write_text('{"poling": "cls"}'),
        lambda folder: (folder / "bilex_encoder.json").write_text('{"max_length": "six"}'),
        lambda folder: (folder / "bilex_encoder.json").write_text("[" * 100_000),
        lambda folder: (folder / "adapter_config.json").write_text("{}"),
        lambda folder: (folder / "model.safetensors").write_bytes(b"\xff" * 100),
        lambda folder: (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors"),
    ],
)
def test_a_folder_that_lies_is_refused_in_one_sentence(
    tiny_folder: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(tiny_folder)
    refusal(tiny_folder)
