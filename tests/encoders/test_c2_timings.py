"""The timings of stage C2 run through, on a made-up data folder with a tiny encoder."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from test_stage_c2 import languages

from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of two languages; the last 40 pairs are for testing."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    source, target, lexicon = languages()
    folder = tmp_path / "data"
    (folder / "vectors").mkdir(parents=True)
    for name, side in (("en", source), ("ru", target)):
        _store(folder / "vectors", name, side)
    pairs = folder / "dictionaries" / "xling" / "en-ru"
    pairs.mkdir(parents=True)
    lexicon.head(200).write(pairs / "yacle.train.freq.1k.en-ru.tsv")
    lexicon.head(200).write(pairs / "yacle.train.freq.5k.en-ru.tsv")
    Lexicon(lexicon.pairs[200:]).write(pairs / "yacle.test.freq.2k.en-ru.tsv")
    return folder


def _store(folder: Path, name: str, side: WordVectors) -> None:
    scale = np.abs(side.vectors).max(axis=1, keepdims=True) / 127
    np.savez(folder / f"{name}.npz", q=np.round(side.vectors / scale).astype(np.int8), scale=scale)
    (folder / f"{name}.txt").write_text("".join(f"{word}\n" for word in side.index_to_key), encoding="utf-8")


def test_all_rows_are_written_as_they_come(
    data: Path, tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = importlib.import_module("timings.stage_c2")
    out = tmp_path / "rows.json"
    overrides = ["--lm", str(tiny_folder), "--aligner", "procrustes", "--device", "cpu", "--out", str(out)]
    presets = ["--tuning", "paper", "light", "--mixing", "0.2", "auto"]
    benchmark.main([str(data), "--pairs", "en-ru", "--seeds", "1k", *presets, *overrides])
    rows = {row["name"]: row for row in json.loads(out.read_text())}
    assert list(rows) == [
        "aligner",
        "LM alone, not tuned",
        "aligner + LM not tuned, λ=0.2",
        "LM alone, tuned",
        "C2 λ=0.2",
        "C2 λ=auto",
        "LM alone, tuned [light]",
        "C2 λ=0.2 [light]",
        "C2 λ=auto [light]",
    ]
    assert all(len(row["figures"]) == 4 for row in rows.values())
    auto = rows["C2 λ=auto"]["parts"]
    assert all(auto[f"{part}_seconds"] >= 0 for part in ("tokenise", "tune", "encode", "combine", "trial"))
    assert "held-out seeds of 2 settings" in capsys.readouterr().out
    fixed = json.dumps(rows["C2 λ=0.2"]["figures"])
    assert auto["λ"] != 0.2 or json.dumps(rows["C2 λ=auto"]["figures"]) == fixed


def test_choosing_a_preset_reads_no_test_file(
    data: Path, tiny_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "dictionaries" / "xling" / "en-ru" / "yacle.test.freq.2k.en-ru.tsv").unlink()
    benchmark = importlib.import_module("timings.choose_c2")
    monkeypatch.setitem(benchmark.CANDIDATES, "light", [{}, {"epochs": 1, "negatives": 4}])
    overrides = ["--lm", str(tiny_folder), "--aligner", "procrustes", "--device", "cpu"]
    benchmark.main([str(data), "--pairs", "en-ru", "--seeds", "5k", *overrides])
    shown = capsys.readouterr().out
    assert "learned from 160 pairs, 40 held out" in shown
    assert shown.count("epochs 1, negatives 4") == 2


def test_timing_names_every_part(data: Path, tiny_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = importlib.import_module("timings.stage_c2")
    benchmark.main(
        [str(data), "--timing", "en-ru", "--lm", str(tiny_folder), "--device", "cpu", "--rounds", "1"]
    )
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("tokenising", "TUNING", "ENCODING 480 words", "combining"))
