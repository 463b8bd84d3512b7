"""Encoder folders that lie: nothing in them is run or unpickled, and each is refused in one sentence."""

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

import pytest
import torch

from bilex.core.errors import BilexError
from bilex.encoders.model import WordEncoder


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
