"""What `bilex data check` finds out, on a folder where it is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bilex.vectors import WordVectors
from bilex_bench.datasets import DataFolder
from bilex_bench.datasets.checking import check_folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    numbers = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    WordVectors(["Dog", "cat", "house", "tree"], numbers).save(tmp_path / "vectors" / "en.vec")
    WordVectors(["koira", "kissa", "talo", "puu"], numbers).save(tmp_path / "vectors" / "fi.vec")
    (tmp_path / "en-fi.train.5k.tsv").write_text("dog\tkoira\nDOG\tkoira\ncat\tkissa\nboat\tvene\n")
    (tmp_path / "en-fi.train.1k.tsv").write_text("dog\tkoira\n")
    (tmp_path / "en-fi.test.tsv").write_text("house\ttalo\ncat\tkissa\ncat\tkissa\nship\tlaiva\n")
    (tmp_path / "en-ru.train.5k.tsv").write_text("dog\tпёс\n")
    (tmp_path / "en-ru.test.tsv").write_text("dog\tпёс\n")
    return tmp_path


def test_counts(data: Path) -> None:
    found = check_folder(DataFolder.open(data))
    assert {name: (check.words, check.dim) for name, check in found.vectors.items()} == {
        "en": (4, 5),
        "fi": (4, 5),
    }
    first = found.pairs[0].dictionaries
    assert {
        name: (check.pairs, check.repeated, check.covered, check.leaked) for name, check in first.items()
    } == {"test": (4, 1, 3, None), "5k": (4, 1, 3, 1), "1k": (1, 0, 1, 0)}
    assert found.pairs[1].dictionaries["5k"].covered is None
    assert found.pairs[1].dictionaries["5k"].leaked == 1
    assert found.usable == ("en-fi",)
    assert json.loads(json.dumps(found.as_dict()))["usable"] == ["en-fi"]


def test_warnings(data: Path) -> None:
    warnings = check_folder(DataFolder.open(data)).warnings
    assert "no vectors for ru: 1 of 2 pairs cannot be run." in warnings
    assert any(
        sentence.startswith("seeds 5k: test pairs are in them too, 1 to 1 in 2") for sentence in warnings
    )
    assert not any(sentence.startswith("seeds 1k") for sentence in warnings)


def test_a_limit_lowers_the_coverage_and_few_covered_pairs_are_reported(data: Path) -> None:
    found = check_folder(DataFolder.open(data), limit=2)
    assert found.pairs[0].dictionaries["test"].covered == 2
    found = check_folder(DataFolder.open(data), limit=1)
    assert found.pairs[0].dictionaries["test"].covered == 0
    assert any("en-fi.test.tsv: only 0 of 4 pairs have both words" in sentence for sentence in found.warnings)
    assert found.usable == ()


def test_broken_files_are_warnings(data: Path) -> None:
    (data / "en-fi.train.1k.tsv").write_bytes(b"\xff\xfe")
    (data / "vectors" / "en.vec").write_text("")
    (data / "en-ru.test.tsv").unlink()
    found = check_folder(DataFolder.open(data))
    assert set(found.pairs[0].dictionaries) == {"test", "5k"}
    caught = "\n".join(found.warnings)
    assert "1k.tsv: holds no word pairs" in caught
    assert "en.vec: is empty" in caught
    assert "one test dictionary is needed for 'en-ru'" in caught
    assert "no vectors for en, ru" in caught
