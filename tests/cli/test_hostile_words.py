"""Words that would steer a terminal, break a table or a file: shown as they are, or refused."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bilex.aligners import get_method
from bilex.cli import run
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors

Captured = pytest.CaptureFixture[str]
HOSTILE = ["[/b]", "[red]", ":smile:", "\x1b[31mred", "\u202eabc", "\x07bell", "\x9bx", "<script>", "=1+1"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    numbers = np.random.default_rng(0)
    rows = numbers.normal(size=(60, 8)).astype(np.float32)
    source = WordVectors([*HOSTILE, *(f"s{i}" for i in range(60 - len(HOSTILE)))], rows)
    target = WordVectors([*HOSTILE, *(f"t{i}" for i in range(60 - len(HOSTILE)))], rows)
    seeds = Lexicon(list(zip(source.index_to_key, target.index_to_key, strict=True)))
    path = tmp_path_factory.mktemp("hostile") / "model [bold]"
    aligner = get_method("procrustes")(device="cpu")
    Translator(aligner).fit(source, target, seeds, calibrate=False, lowercase=False).save(path)
    return path


@pytest.mark.parametrize("word", HOSTILE)
def test_words_are_shown_and_not_obeyed(model: Path, capsys: Captured, word: str) -> None:
    for command in (["translate", str(model), word, "-k", "1", "--format", "table"], ["info", str(model)]):
        assert run(command) == 0
        caught = capsys.readouterr()
        shown = caught.out + caught.err
        assert not set(shown) & set("\x1b\u202e\x07\x9b")
        if command[0] == "translate":
            assert word.translate({0x1B: "\\x1b", 0x202E: "\\u202e", 0x07: "\\x07", 0x9B: "\\x9b"}) in shown


@pytest.mark.parametrize("word", ["[/nope]", "\x1b[2J", "\ud800"])
def test_unknown_words_are_named_harmlessly(model: Path, capsys: Captured, word: str) -> None:
    assert run(["translate", str(model), word]) == 2
    assert "\x1b" not in capsys.readouterr().err
    assert run(["translate", str(model), word, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["word"] in (word, word.encode("utf-8", "replace").decode())


def test_a_tab_in_a_word_is_not_written_into_tsv(tmp_path: Path, capsys: Captured) -> None:
    rows = np.eye(4, dtype=np.float32)
    source = WordVectors(["a\tb", "c", "d", "e"], rows)
    seeds = Lexicon([("c", "c"), ("d", "d"), ("e", "e")])
    fitted = Translator(get_method("procrustes")(device="cpu")).fit(
        source, WordVectors(["x", "c", "d", "e"], rows), seeds
    )
    fitted.save(tmp_path / "m")
    for name in ("d.tsv", "d.jsonl"):
        assert run(["lexicon", str(tmp_path / "m"), "-o", str(tmp_path / name)]) == 0
        assert "control character" in capsys.readouterr().err
        assert len((tmp_path / name).read_text().splitlines()) == 3


def test_half_a_character_in_a_json_dictionary_is_a_broken_line(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    lines = [{"source": f"a{i}", "target": f"b{i}"} for i in range(50)]
    path.write_text("\n".join(json.dumps(line) for line in [*lines, {"source": "\ud800", "target": "b"}]))
    lexicon = Lexicon.load(path)
    assert len(lexicon) == 50
    assert lexicon.report is not None and lexicon.report.left_out.total() == 1


def test_the_same_vectors_give_the_same_gzip_bytes(tmp_path: Path) -> None:
    vectors = WordVectors(["a", "b"], np.eye(2, dtype=np.float32))
    vectors.save(tmp_path / "x.vec.gz")
    vectors.save(tmp_path / "y.vec.gz")
    first = (tmp_path / "x.vec.gz").read_bytes()
    assert first == (tmp_path / "y.vec.gz").read_bytes()
    assert b"bilex" not in first and first[4:8] == bytes(4)


def test_cards_hold_names_of_others_as_text(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    source = WordVectors(["$(reboot)", "```\nevil", "\x1b[2J", "plain", *(f"s{i}" for i in range(26))], rows)
    target = WordVectors([f"t{i}" for i in range(30)], rows)
    seeds = Lexicon(
        [(f"s{i}", f"t{i}") for i in range(20)], "seeds|<img src=x onerror=alert(1)>\n# title.tsv"
    )
    fitted = Translator(get_method("procrustes")(device="cpu")).fit(
        source, target, seeds, calibrate=False, languages=("<script>alert(1)</script>", "a|b\n\x1b[31m")
    )
    fitted.save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text()
    assert not set(card) & set("\x1b\x07\u202e")
    assert "<script" not in card and "<img" not in card and "\n# title" not in card
    assert "bilex translate THIS_FOLDER plain" in card and "reboot" not in card


def test_formulas_in_tables_are_defused_on_request(model: Path, tmp_path: Path) -> None:
    plain, defused = tmp_path / "plain.csv", tmp_path / "defused.csv"
    assert run(["lexicon", str(model), "-o", str(plain)]) == 0
    assert run(["lexicon", str(model), "-o", str(defused), "--defuse-formulas"]) == 0

    def cells(path: Path) -> list[str]:
        with path.open(newline="", encoding="utf-8") as file:
            return [cell for row in csv.reader(file) for cell in row]

    assert "=1+1" in cells(plain)
    assert "'=1+1" in cells(defused)
    assert not [cell for cell in cells(defused) if cell.startswith(("=", "+", "@", "\t", "\r"))]


@pytest.mark.parametrize("name", ["-o", "a\nb", "\x1b[2J", "$(reboot)", "ä" * 100, " ", "~", "[red]", "a'b"])
def test_files_of_any_name_are_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    WordVectors(["a", "b"], np.eye(2, dtype=np.float32)).save(Path(f"{name}.vec"))
    assert run(["convert", "--", f"{name}.vec", f"{name}2.vec"]) == 0
    assert run(["info", "--", f"{name}2.vec"]) == 0
    caught = capsys.readouterr()
    assert not set(caught.out + caught.err) & set("\x1b\x07")
    assert sorted(path.name for path in Path().iterdir()) == sorted([f"{name}.vec", f"{name}2.vec"])


@pytest.mark.parametrize("word", ["x" * 1_000_000, "\x00", "a\nb", "\u202e" * 1000, "🏳️‍🌈" * 10_000])
def test_words_of_any_length_and_kind_are_kept_or_refused(
    tmp_path: Path, capsys: Captured, word: str
) -> None:
    rows = np.eye(4, dtype=np.float32)
    source = WordVectors([word, "c", "d", "e"], rows)
    source.save(tmp_path / "v")
    assert WordVectors.load(tmp_path / "v").index_to_key == source.index_to_key
    seeds = Lexicon([("c", "c"), ("d", "d"), ("e", "e")])
    target = WordVectors([word, "c", "d", "e"], rows)
    aligner = get_method("procrustes")(device="cpu")
    Translator(aligner).fit(source, target, seeds, calibrate=False, lowercase=False).save(tmp_path / "m")
    assert Translator.load(tmp_path / "m").space.source.index_to_key == source.index_to_key
    assert run(["translate", str(tmp_path / "m"), "c", "-k", "4", "--format", "table"]) == 0
    caught = capsys.readouterr()
    assert not set(caught.out + caught.err) & set("\x00\u202e")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a file's size are those of Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_does_not_fit_is_no_success(tmp_path: Path, unbuffered: str) -> None:
    import resource

    with (tmp_path / "out").open("wb") as out:
        ended = subprocess.run(
            [sys.executable, "-m", "bilex", "--help"],
            stdout=out,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
            check=False,
        )
    assert ended.returncode == 2 and b"stdout: the disk is full" in ended.stderr
