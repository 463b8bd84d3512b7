"""No command deletes or overwrites what it did not make."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from bilex.cli import run
from bilex.model import Translator
from bilex.vectors import WordVectors
from cli_files import Files

Captured = pytest.CaptureFixture[str]


def refused(capsys: Captured, *command: object) -> str:
    assert run([str(word) for word in command]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("bilex: error:")]
    assert len(lines) == 1
    return lines[0]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def align(files: Files, output: Path, *extra: object) -> list[object]:
    where = ["align", files.source, files.target, "--seeds", files.seeds, "-o", output]
    return [*where, "--method", "procrustes", "--device", "cpu", "--no-calibrate", *extra]


@pytest.fixture
def model(files: Files, tmp_path: Path) -> Path:
    return Path(shutil.copytree(files.model, tmp_path / "model"))


@pytest.mark.parametrize("config", ["{}", '{"format": "bilex-vectors", "version": 1}'])
def test_convert_does_not_replace_a_project(
    files: Files, tmp_path: Path, capsys: Captured, config: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "config.json").write_text(config)
    (project / "thesis.tex").write_text("three years")
    assert "thesis.tex" in refused(capsys, "convert", files.source, project) or config == "{}"
    assert sorted(contents(project)) == ["config.json", "thesis.tex"]


def test_convert_does_not_replace_a_model(files: Files, model: Path, capsys: Captured) -> None:
    before = contents(model)
    assert "other things in it" in refused(capsys, "convert", files.source, model)
    assert contents(model) == before


def test_convert_replaces_its_own_folder(files: Files, tmp_path: Path) -> None:
    for limit in (50, 60):
        assert run(["convert", str(files.source), str(tmp_path / "v"), "--limit", str(limit)]) == 0
    assert len(WordVectors.load(tmp_path / "v")) == 60


def test_align_does_not_delete_what_a_user_keeps_in_a_model(
    files: Files, model: Path, capsys: Captured
) -> None:
    (model / "notes").mkdir()
    (model / "notes" / "words.tsv").write_text("dog\tkoira\n")
    before = contents(model)
    assert "holds 'notes/words.tsv', which bilex did not write" in refused(capsys, *align(files, model))
    assert contents(model) == before


def test_align_does_not_overwrite_a_card_that_was_edited(files: Files, model: Path, capsys: Captured) -> None:
    with (model / "README.md").open("a") as card:
        card.write("My remarks.\n")
    Translator.load(model)  # a card may be edited
    assert "'README.md'" in refused(capsys, *align(files, model))
    assert "My remarks." in (model / "README.md").read_text()


def test_align_replaces_an_earlier_model_when_asked_to(files: Files, model: Path, capsys: Captured) -> None:
    before = contents(model)
    assert "is a model already" in refused(capsys, *align(files, model, "--method", "advanced"))
    assert contents(model) == before
    assert run([str(word) for word in align(files, model, "--method", "advanced", "--force")]) == 0
    assert Translator.load(model).provenance.method == "advanced"


@pytest.mark.parametrize("method", ["c1", "vecmap-semi", "lnmap"])
def test_a_checkpoint_does_not_wipe_a_folder(
    files: Files, tmp_path: Path, capsys: Captured, method: str
) -> None:
    mine = tmp_path / "mine" / "aligner"
    inner = mine / "source" if method == "lnmap" else mine
    inner.mkdir(parents=True)
    (inner / "data.csv").write_text("precious")
    small = {
        "c1": ["iterations=1", "updates=1"],
        "vecmap-semi": ["frequent=200"],
        "lnmap": ["autoencoder_epochs=1", "autoencoder_samples=500", "mapper_epochs=1", "rounds=1"],
    }
    settings = [word for name in small[method] for word in ("--set", name)]
    command = align(files, tmp_path / "model", "--checkpoint", tmp_path / "mine", "--method", method)
    assert "data.csv" in refused(capsys, *command, *settings)
    assert [path.name for path in inner.iterdir()] == ["data.csv"]
    assert not (tmp_path / "model").exists()


def test_outputs_are_never_inputs(files: Files, tmp_path: Path, capsys: Captured) -> None:
    text, matrix = tmp_path / "en.txt", tmp_path / "en.npy"
    shutil.copy(files.source, text)
    before = text.read_bytes()
    assert "en.txt: is an input" in refused(capsys, "convert", text, matrix)
    assert "is an input" in refused(capsys, "convert", text, text)
    np.save(matrix, np.ones((3, 2), np.float32))
    assert "en.txt: is an input" in refused(capsys, "convert", text, matrix)
    (tmp_path / "en.words").write_text("a\nb\nc\n")
    assert text.read_bytes() == before


def test_a_word_list_of_something_else_is_not_overwritten(
    files: Files, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "en.txt").write_text("my notes on English\n")
    assert "en.txt: would be overwritten" in refused(capsys, "convert", files.source, tmp_path / "en.npy")
    assert (tmp_path / "en.txt").read_text() == "my notes on English\n"
    assert [path.name for path in tmp_path.iterdir()] == ["en.txt"]


@pytest.mark.parametrize("output", ["file/model", "/proc/model", "x" * 300])
def test_an_output_that_cannot_be_written_is_reported_before_the_fit(
    files: Files, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Translator, "fit", lambda *_args, **_more: pytest.fail("it must be told before"))
    assert re.search("cannot be .*written", refused(capsys, *align(files, Path(output))))


def test_a_model_of_before_checksums_were_whole_is_refused_by_name(model: Path, capsys: Captured) -> None:
    config = json.loads((model / "config.json").read_text())
    assert len(config["card_sha256"]) == 64
    sums = (model / "SHA256SUMS").read_text().splitlines(keepends=True)
    (model / "SHA256SUMS").write_text("".join(line for line in sums if "seeds/" not in line))
    assert "does not list all files ('seeds/source-target.json')" in refused(capsys, "info", model)
