"""`bilex data`: what a user sees and the exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bilex.cli import run
from bilex.vectors import WordVectors
from bilex_bench.datasets import catalogue
from data_server import serving


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "list"]) == 0
    caught = capsys.readouterr().out
    for word in ("fasttext-wiki", "fasttext-cc", "xling", "panlex", "muse", "none stated", "CC BY-SA 3.0"):
        assert word in caught


def test_list_says_what_is_in_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / "wiki.en.200k.vec").write_text("")
    (tmp_path / "dictionaries" / "muse").mkdir(parents=True)
    (tmp_path / "dictionaries" / "muse" / "en-fi.0-5000.txt").write_text("")
    assert run(["data", "list", str(tmp_path), "--json"]) == 0
    there = {row["name"]: row["there"] for row in json.loads(capsys.readouterr().out)}
    assert there == {
        "fasttext-wiki": ["en"],
        "fasttext-cc": [],
        "pypi-vectors": [],
        "xling": [],
        "panlex": [],
        "muse": ["en-fi"],
    }
    assert run(["data", "list", str(tmp_path / "missing")]) == 2


def test_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        text = b"3 2\na 1 2\nb 3 4\nc 5 6\n"
        server.add("/wiki.en.vec", text)
        server.add("/wiki.fi.vec", text)
        data = replace(catalogue.known("fasttext-wiki"), base=server.address)
        monkeypatch.setattr(catalogue, "KNOWN", (data,))
        line = ["data", "get", "fasttext-wiki", "--languages", "en,fi", "-o", str(tmp_path), "--limit", "2"]
        assert run(line) == 0
        assert "fetched 2" in capsys.readouterr().err
        assert (tmp_path / "vectors" / "wiki.fi.2.vec").read_text() == "2 2\na 1 2\nb 3 4\n"
        assert run(line) == 0
        assert "2 were there" in capsys.readouterr().err
        assert run([*line, "--all"]) == 0
        assert (tmp_path / "vectors" / "wiki.en.vec").read_bytes() == text
        assert run(["data", "get", "fasttext-wiki", "--languages", "xx", "-o", str(tmp_path)]) == 2
        caught = capsys.readouterr().err
        assert "/wiki.xx.vec: the server answers 404" in caught
        assert f"put it, whole, at {tmp_path}/vectors/wiki.xx.vec" in caught


def test_get_without_a_network_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = replace(catalogue.known("xling"), base="http://127.0.0.1:9")
    monkeypatch.setattr(catalogue, "KNOWN", (data,))
    assert run(["data", "get", "xling", "--languages", "en,fi", "-o", str(tmp_path)]) == 2
    caught = capsys.readouterr().err
    assert caught.startswith(
        "bilex: error: http://127.0.0.1:9/en-fi/yacle.test.freq.2k.en-fi.tsv: "
        "cannot be reached (Connection refused); "
    )
    assert caught.endswith(
        "get https://github.com/codogogo/xling-eval where there is a network and put its dictionaries, named "
        f"as there, into {tmp_path}/dictionaries/xling.\n"
    )
    assert caught.count("\n") == 1


def test_get_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "get", "xlign"]) == 2
    assert "Did you mean 'xling'?" in capsys.readouterr().err


@pytest.fixture
def data(tmp_path: Path) -> Path:
    numbers = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    WordVectors(["dog", "house"], numbers).save(tmp_path / "en", "safetensors")
    WordVectors(["koira", "talo"], numbers).save(tmp_path / "fi", "safetensors")
    (tmp_path / "en-fi.train.5k.tsv").write_text("dog\tkoira\nhouse\ttalo\n")
    (tmp_path / "en-fi.test.tsv").write_text("house\ttalo\n")
    return tmp_path


def test_check_with_warnings_is_fine(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "check", str(data)]) == 0
    caught = capsys.readouterr()
    row = next(line for line in caught.out.splitlines() if line.split()[:1] == ["en-fi"])
    assert row.split() == ["en-fi", "1/1", "2/2", "1", "0", "0"]
    assert "warning: seeds 5k: test pairs are in them too" in caught.err


def test_check_as_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "check", str(data), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["usable"] == ["en-fi"]
    assert found["vectors"]["fi"]["words"] == 2
    assert found["pairs"][0]["dictionaries"]["5k"]["leaked"] == 1


def test_check_of_nothing_usable(
    data: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["data", "check", str(tmp_path_factory.mktemp("empty"))]) == 2
    assert "nothing to run a benchmark on, no dictionary" in capsys.readouterr().err
    assert run(["data", "check", str(data / "missing")]) == 2
    assert run(["data", "check", str(data), "--vectors", str(tmp_path_factory.mktemp("none"))]) == 2
    caught = capsys.readouterr()
    assert "–/1" in caught.out
    assert "no pair with a test dictionary that vectors cover" in caught.err
