"""Estimates: what was measured counts, and what is shared counts once."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bilex.vectors import WordVectors
from bilex_bench.datasets import DataFolder
from bilex_bench.results import Setup
from bilex_bench.runner import by_family, estimate, word_count
from bilex_bench.store import ResultsStore
from fabricated import fabricated


def setup(**changes: object) -> Setup:
    given = {"dataset": "own", "pair": "en-fi", "seeds": "5k", "method": "c1", "limit": 200_000} | changes
    return Setup(**given)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    for language, words in (("en", 30_000), ("fi", 60_000), ("fr", 1_000)):
        (tmp_path / f"{language}.vec").write_text(f"{words} 2\na 1 0\n", encoding="utf-8")
    for pair in ("en-fi", "en-fr"):
        for size, pairs in (("5k", 5_000), ("1k", 1_000)):
            lines = "".join(f"a{number}\tb{number}\n" for number in range(pairs))
            (tmp_path / f"{pair}.train.{size}.tsv").write_text(lines, encoding="utf-8")
        (tmp_path / f"{pair}.test.tsv").write_text("a\tb\n", encoding="utf-8")
    return DataFolder.open(tmp_path, "own")


def test_what_was_never_measured_has_no_estimate(folder: DataFolder) -> None:
    (found,) = estimate([setup()], {"own": folder})
    assert (found.seconds, found.gigabytes) == (None, None)
    assert by_family([found]) == {setup().family: (None, None)}


def test_a_fit_and_a_tuning_count_once(folder: DataFolder, tmp_path: Path) -> None:
    lm = {"lm": "e5-small-q4"}
    setups = [setup(), setup(**lm, mixing=0.2), setup(**lm, mixing=0.4), setup(**lm, mixing="auto")]
    measured = {"fit": 31.0, "tune": 310.0, "encode": 62.0, "trial": 93.0, "combine": 3.1, "evaluate": 6.2}
    with ResultsStore.open(tmp_path / "r.sqlite") as store:  # on 31,000 words; the setups have 90,000
        store.add(replace(fabricated(setup(pair="en-fr", **lm, mixing="auto"), 5), seconds=measured))
        alone, first, second, auto = estimate(setups, {"own": folder}, store)
    seconds = {step: 90 / 31 * cost for step, cost in measured.items()}
    assert alone.seconds == pytest.approx(seconds["fit"] + seconds["evaluate"])
    again = seconds["combine"] + seconds["evaluate"]
    assert first.seconds == pytest.approx(seconds["tune"] + seconds["encode"] + again)
    assert second.seconds == pytest.approx(again)
    assert auto.seconds == pytest.approx(again + seconds["trial"])


def test_the_median_of_earlier_results_counts_and_the_most_memory(folder: DataFolder, tmp_path: Path) -> None:
    with ResultsStore.open(tmp_path / "r.sqlite") as store:
        for seed, seconds in enumerate((2.0, 3.0, 50.0)):
            done = fabricated(setup(seed=seed), 5)
            store.add(replace(done, seconds={"fit": seconds, "evaluate": 1.0}, gigabytes=seconds))
        store.add(replace(fabricated(setup(seed=9), 5), seconds={"fit": 1e9}, device="cuda"))
        store.add(replace(fabricated(setup(dataset="gone"), 5), seconds={"fit": 1e9}))
        c1, rcsls = estimate([setup(), setup(method="rcsls")], {"own": folder}, store)
    assert c1.seconds == pytest.approx(4.0) and c1.gigabytes == 50.0
    assert rcsls.seconds is None and rcsls.gigabytes is None


def test_words_are_counted_without_reading(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(400)]
    vectors = WordVectors(words, np.random.default_rng(0).normal(size=(400, 5)).astype(np.float32))
    for name in ("v.vec", "v.vec.gz", "v.npy", "v.bin"):
        vectors.save(tmp_path / name)
        assert word_count(tmp_path / name) == 400
    vectors.save(tmp_path / "folder", "safetensors")
    assert word_count(tmp_path / "folder") == 400
    lines = "".join(f"w{number:05d} 0.25 0.5\n" for number in range(20_000))
    (tmp_path / "headless.txt").write_text(lines, encoding="utf-8")
    assert word_count(tmp_path / "headless.txt") == pytest.approx(20_000, rel=0.01)
    (tmp_path / "headless.txt.gz").write_bytes(gzip.compress(lines.encode()))
    assert word_count(tmp_path / "headless.txt.gz") > 1_000
    assert word_count(tmp_path / "missing.vec") == 200_000
