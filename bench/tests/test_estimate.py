"""Estimates: what is shared counts once, what was measured corrects the table."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bilex.vectors import WordVectors
from bilex_bench.costs import Size, gigabytes, seconds
from bilex_bench.datasets import DataFolder
from bilex_bench.estimate import estimate
from bilex_bench.setups import Setup
from bilex_bench.store import ResultsStore
from bilex_bench.word_counts import word_count
from fabricated import fabricated

FULL = Size(200_000, 200_000, 5_000)


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


def test_a_fit_and_a_tuning_count_once(folder: DataFolder) -> None:
    lm = {"lm": "e5-small-q4"}
    setups = [
        setup(),
        setup(**lm, mixing=0.2),
        setup(**lm, mixing=0.4),
        setup(**lm, mixing="auto"),
        setup(method="rcsls"),
    ]
    size = Size(30_000, 60_000, 5_000)
    alone, first, second, auto, other = estimate(setups, {"own": folder})
    full = seconds(setups[1], size, "cpu")
    assert alone.seconds == pytest.approx(full["fit"] + full["evaluate"])
    assert first.seconds == pytest.approx(sum(full.values()) - full["fit"])
    assert second.seconds == pytest.approx(full["combine"] + full["evaluate"])
    assert auto.seconds == pytest.approx(second.seconds + seconds(setups[3], size, "cpu")["trial"])
    assert other.seconds == pytest.approx(sum(seconds(setups[4], size, "cpu").values()))
    assert not any(found.measured for found in (alone, first, second, auto, other))
    assert estimate(setups[1:2], {"own": folder})[0].seconds == pytest.approx(sum(full.values()))


def test_earlier_results_of_the_method_correct_the_table(folder: DataFolder, tmp_path: Path) -> None:
    small = setup(pair="en-fr")
    table = seconds(small, Size(30_000, 1_000, 5_000), "cpu")
    memory = gigabytes(small, Size(30_000, 1_000, 5_000))
    plain_c1, plain_rcsls = estimate([setup(), setup(method="rcsls")], {"own": folder})
    with ResultsStore.open(tmp_path / "r.sqlite") as store:
        for seed, factor in enumerate((2, 3, 50)):  # the median counts
            measured = {step: factor * cost for step, cost in table.items()}
            done = fabricated(replace(small, seed=seed), 5)
            store.add(replace(done, seconds=measured, gigabytes=factor * memory))
        store.add(replace(fabricated(setup(pair="en-fr", seed=9), 5), seconds={"fit": 1e9}, device="cuda"))
        store.add(replace(fabricated(setup(pair="en-fr", dataset="gone"), 5), seconds={"fit": 1e9}))
        c1, rcsls = estimate([setup(), setup(method="rcsls")], {"own": folder}, store)
    assert c1.seconds == pytest.approx(3 * plain_c1.seconds) and c1.measured
    assert c1.gigabytes == pytest.approx(3 * plain_c1.gigabytes)
    size = Size(30_000, 60_000, 5_000)
    evaluating = seconds(setup(), size, "cpu")["evaluate"]
    assert rcsls.seconds == pytest.approx(plain_rcsls.seconds + 2 * evaluating) and not rcsls.measured
    assert rcsls.gigabytes == plain_rcsls.gigabytes


def test_the_table_agrees_with_what_was_measured() -> None:
    """Finnish–Russian at full size, docs/performance.md: within a factor of two, and on the safe side."""
    five, one = setup(), setup(seeds="1k")
    assert 428 <= seconds(five, FULL, "cpu")["fit"] <= 2 * 428
    assert 301 <= seconds(one, replace(FULL, seeds=1_000), "cpu")["fit"] <= 2 * 301
    assert 3.2 <= seconds(five, FULL, "cuda")["fit"] <= 2 * 3.2
    assert 2.7 <= gigabytes(five, FULL) <= 2 * 2.7
    tuned = seconds(setup(lm="e5-small-q4", mixing=0.2), FULL, "cuda")
    assert 15.6 <= tuned["tune"] <= 2 * 15.6 and 1.5 <= tuned["encode"] <= 2 * 1.5
    demo = setup(lm="e5-small-q4", mixing=0.2, tuning={"preset": "demo"})
    assert 5.5 <= seconds(demo, FULL, "cpu")["tune"] <= 2 * 5.5


def test_more_of_anything_never_costs_less() -> None:
    for method in ("procrustes", "c1", "rcsls", "vecmap-semi", "fipp", "lnmap"):
        for device in ("cpu", "cuda"):
            small, large = Size(10_000, 10_000, 5_000), Size(20_000, 200_000, 5_000)
            less, more = (sum(seconds(setup(method=method), s, device).values()) for s in (small, large))
            assert 0 < less < more
    cut = [setup(settings={"contrastive": False}), setup(settings={"self_learning": False})]
    assert all(seconds(s, FULL, "cpu")["fit"] < seconds(setup(), FULL, "cpu")["fit"] for s in cut)


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
