"""Names, numbers and encodings that no sensible user gives: one sentence each, never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError, Lexicon, Translator, WordVectors
from bilex.cli import run
from bilex.corpus import TrainingSettings
from cli_files import Files

HUGE = "9" * 23
LONG, DEEP = "x" * 5000, "/".join(["y" * 100] * 60)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run([str(argument) for argument in arguments]) == 2, arguments
    said = capsys.readouterr().err.strip()
    assert "\n" not in said and said.startswith("bilex: error: ") and len(said) < 500, said
    return said


@pytest.mark.parametrize("name", [LONG, DEEP], ids=["long", "deep"])
def test_a_path_of_thousands_of_characters(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["info", name],
        ["translate", name, "word"],
        ["lexicon", name],
        ["evaluate", name],
        ["align", name, name, "--seeds", name, "-o", "model"],
        ["convert", name, "-o", "out.vec"],
        ["join", name, "-o", "many"],
        ["vectors", name, "-o", "out.vec"],
        ["demo", "-o", name],
        ["serve", name, "--no-browser"],
        ["review", "status", name],
        ["benchmark", "report", name, "-o", "page.html"],
        ["data", "check", name],
    ):
        refused(capsys, *command)


def test_numbers_of_23_digits(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    word = files.seeds.read_text().split()[0]
    assert run(["translate", str(files.model), word, "-k", HUGE]) == 0
    capsys.readouterr()
    assert run(["evaluate", str(files.model), str(files.test), "--bootstrap", HUGE]) == 2
    assert "--bootstrap" in capsys.readouterr().err
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("one two three four\n" * 50)
    for option in ("--window", "--epochs", "--threads", "--min-count", "--random-seed"):
        refused(capsys, "vectors", corpus, "-o", tmp_path / "out.vec", option, HUGE)
    refused(capsys, "vectors", corpus, "-o", tmp_path / "out.vec", "--window", "999999999")
    refused(capsys, "vectors", corpus, "-o", tmp_path / "out.vec", "--subwords", f"1-{HUGE}")
    with pytest.raises(BilexError, match="window is 999999999; give a whole number up to 1,000"):
        TrainingSettings(window=999_999_999)


def test_numbers_of_5000_digits(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digits = "9" * 5000  # Python's int() refuses more than 4,300
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("one two three four\n" * 50)
    refused(capsys, "vectors", corpus, "-o", tmp_path / "out.vec", "--subwords", f"3-{digits}")
    align = ("align", files.source, files.target, "--seeds", files.seeds, "-o", tmp_path / "model")
    refused(capsys, *align, "--columns", f"1,{digits}")


def test_an_output_encoding_that_lacks_a_letter(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("ä\tö\n" * 3, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(
        [sys.executable, "-m", "bilex", "info", "pairs.tsv"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
    assert "the output's encoding (ascii)" in ended.stderr and "PYTHONIOENCODING=utf-8" in ended.stderr


@pytest.mark.parametrize("name", [LONG, DEEP, "a\0b"], ids=["long", "deep", "NUL"])
def test_names_in_python(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    vectors, pairs = WordVectors(["a", "b"], np.eye(2)), Lexicon([("a", "b")])
    for ending in ("", ".vec", ".bin", ".npy"):
        with pytest.raises(BilexError, match=r"too long a name|NUL character"):
            vectors.save(name + ending)
    for ending in (".tsv", ".ifo", ".xlsx"):
        with pytest.raises(BilexError, match=r"too long a name|NUL character"):
            pairs.save(name + ending)
    for load in (WordVectors.load, Lexicon.load, Translator.load):
        with pytest.raises(BilexError, match=r"too long a name|NUL character"):
            load(name)
    assert not list(tmp_path.iterdir())


def test_vectors_without_a_dimension_are_refused() -> None:
    for words in ([], ["a", "b"]):
        with pytest.raises(BilexError, match="no dimension"):
            WordVectors(words, np.zeros((len(words), 0), np.float32))


def test_a_model_that_is_cut_off_while_it_is_open(files: Files, tmp_path: Path) -> None:
    """Without the check the process dies of SIGBUS, so that this runs in a process of its own."""
    shutil.copytree(files.model, tmp_path / "model")
    word = files.seeds.read_text().split()[0]
    program = f"""
import os
from bilex import BilexError, Translator
translator = Translator.load({str(tmp_path / "model")!r}, device="cpu")
os.truncate({str(tmp_path / "model" / "languages" / "target" / "vectors.safetensors")!r}, 4096)
for attempt in (lambda: translator.translate({word!r}), lambda: translator.lexicon()):
    try:
        attempt()
    except BilexError as error:
        print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended
    assert ended.stdout.count("vectors.safetensors: was cut off while it was open") == 2
