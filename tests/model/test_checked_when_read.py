"""A model with a language model: what is compared with its checksum, and when."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bilex import C2, BilexError
from bilex.aligners import Map
from bilex.aligners.procrustes import Procrustes
from bilex.cli import run
from bilex.model import Translator
from bilex.model.unknown import Remapped
from planted import planted
from tiny_encoders import tiny_encoder

ENCODER = "unknown/encoder/model"
KNOWN, UNHEARD_OF = "batis", "unheardof"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_encoder().save(folder / "tiny", "tiny")
    world = planted(120, 16, 0.6)
    made = Translator(
        Procrustes(device="cpu"), encoder=C2(folder / "tiny", mixing=0.4, tune=False, device="cpu")
    ).fit(world.source, world.target, world.pairs(0, 60), calibrate=False)
    made.save(folder / "model")
    return folder / "model"


@pytest.fixture
def copied(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def flip(file: Path) -> None:
    """Change a byte in the middle, which leaves the length as it was."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))


def files_of(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def test_a_changed_language_model_is_found_before_it_is_used(copied: Path, tmp_path: Path) -> None:
    for file in files_of(copied / ENCODER):
        content = file.read_bytes()
        flip(file)
        opened = Translator.load(copied, device="cpu")
        assert opened.translate(KNOWN).known, "no known word needs the language model"
        with pytest.raises(BilexError, match=rf"{file.name}: was changed or damaged since it was saved"):
            opened.translate(UNHEARD_OF)
        with pytest.raises(BilexError, match=rf"{file.name}: was changed or damaged since it was saved"):
            opened.save(tmp_path / "again")
        assert not (tmp_path / "again").exists()
        file.write_bytes(content)
    assert Translator.load(copied, device="cpu").translate(UNHEARD_OF).known


def test_all_that_opening_reads_is_compared_when_it_is_opened(copied: Path) -> None:
    read = [
        file
        for file in files_of(copied)
        if copied / ENCODER not in file.parents and file.name not in ("README.md", "SHA256SUMS")
    ]
    assert copied / "unknown" / "encoder" / "combination.safetensors" in read
    for file in read:
        content = file.read_bytes()
        flip(file)
        with pytest.raises(BilexError, match=file.name):
            Translator.load(copied)
        file.write_bytes(content)


def test_a_missing_file_of_the_language_model_is_found_when_the_model_is_opened(copied: Path) -> None:
    for file in files_of(copied / ENCODER):
        content = file.read_bytes()
        file.unlink()
        with pytest.raises(BilexError, match=rf"{file.name}: cannot be read"):
            Translator.load(copied)
        file.write_bytes(content)


def test_also_in_a_retrained_model(saved: Path, tmp_path: Path) -> None:
    retrained = Translator.load(saved, device="cpu")
    maps = {"source": Map([]), "target": Map([])}
    retrained.unknown = [Remapped(retrained.unknown[0], maps, maps)]  # type: ignore[arg-type]
    retrained.save(tmp_path / "model")
    inner = tmp_path / "model" / "unknown" / "remapped" / "inner"
    assert Translator.load(tmp_path / "model", device="cpu").translate(UNHEARD_OF).known
    flip(inner / "model" / "model.safetensors")
    opened = Translator.load(tmp_path / "model", device="cpu")
    with pytest.raises(BilexError, match=r"model\.safetensors: was changed or damaged"):
        opened.translate(UNHEARD_OF)
    flip(inner / "combination.safetensors")
    with pytest.raises(BilexError, match=r"combination\.safetensors: was changed or damaged"):
        Translator.load(tmp_path / "model")


def test_without_verification_nothing_is_compared(copied: Path) -> None:
    flip(copied / ENCODER / "README.md")
    assert Translator.load(copied, verify=False, device="cpu").translate(UNHEARD_OF).known


def test_info_reads_little_and_with_verify_everything(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = copied / ENCODER / "model.safetensors"
    content = weights.read_bytes()
    flip(weights)
    assert run(["info", str(copied), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checksums_compared"] is False
    assert run(["info", str(copied), "--verify"]) == 2
    assert "model.safetensors: was changed or damaged" in capsys.readouterr().err
    weights.write_bytes(content[:-1])
    assert run(["info", str(copied)]) == 2
    assert "model.safetensors: is cut off or damaged" in capsys.readouterr().err
    weights.write_bytes(content)
    assert run(["info", str(copied), "--verify"]) == 0
    assert "every file is as its checksum says" in capsys.readouterr().out
    assert run(["info", str(copied), "--verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checksums_compared"] is True
    for name in ("config.json", "seeds/source-target.json"):
        content = (copied / name).read_bytes()
        flip(copied / name)
        assert run(["info", str(copied)]) == 2
        assert name in capsys.readouterr().err
        (copied / name).write_bytes(content)
    (copied / "languages" / "source" / "vocabulary.txt").unlink()
    assert run(["info", str(copied)]) == 2
    assert "vocabulary.txt: cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["info"], ["translate", KNOWN]])
def test_a_model_with_a_language_model_is_looked_at_without_heavy_libraries(
    saved: Path, words: list[str]
) -> None:
    arguments = [words[0], str(saved), *words[1:]]
    code = (
        f"import sys\nfrom bilex.cli import run\nassert run({arguments!r}) == 0\n"
        "heavy = {'torch', 'numba', 'scipy', 'transformers'} & set(sys.modules)\nassert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
