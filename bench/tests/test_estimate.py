"""Estimates: what was measured counts, and what is shared counts once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bilex_bench.results import Setup
from bilex_bench.runner import by_family, estimate
from bilex_bench.store import ResultsStore
from fabricated import fabricated


def setup(**changes: object) -> Setup:
    given = {"dataset": "own", "pair": "en-fi", "seeds": "5k", "method": "c1", "limit": 90_000} | changes
    return Setup(**given)  # type: ignore[arg-type]


def test_what_was_never_measured_has_no_estimate() -> None:
    (found,) = estimate([setup()])
    assert (found.seconds, found.gigabytes) == (None, None)
    assert by_family([found]) == {setup().family: (None, None)}


def test_a_fit_and_a_tuning_count_once(tmp_path: Path) -> None:
    lm = {"lm": "e5-small-q4"}
    setups = [setup(), setup(**lm, mixing=0.2), setup(**lm, mixing=0.4), setup(**lm, mixing="auto")]
    measured = {"fit": 31.0, "tune": 310.0, "encode": 62.0, "trial": 93.0, "combine": 3.1, "evaluate": 6.2}
    with ResultsStore.open(tmp_path / "r.sqlite") as store:
        store.add(replace(fabricated(setup(limit=31_000, **lm, mixing="auto"), 5), seconds=measured))
        alone, first, second, auto = estimate(setups, store)
    seconds = {step: 90 / 31 * cost for step, cost in measured.items()}
    assert alone.seconds == pytest.approx(seconds["fit"] + seconds["evaluate"])
    again = seconds["combine"] + seconds["evaluate"]
    assert first.seconds == pytest.approx(seconds["tune"] + seconds["encode"] + again)
    assert second.seconds == pytest.approx(again)
    assert auto.seconds == pytest.approx(again + seconds["trial"])


def test_the_median_of_earlier_results_counts_and_the_most_memory(tmp_path: Path) -> None:
    with ResultsStore.open(tmp_path / "r.sqlite") as store:
        for seed, seconds in enumerate((2.0, 3.0, 50.0)):
            done = fabricated(setup(seed=seed), 5)
            store.add(replace(done, seconds={"fit": seconds, "evaluate": 1.0}, gigabytes=seconds))
        store.add(replace(fabricated(setup(seed=9), 5), seconds={"fit": 1e9}, device="cuda"))
        c1, rcsls = estimate([setup(), setup(method="rcsls")], store)
    assert c1.seconds == pytest.approx(4.0) and c1.gigabytes == 50.0
    assert rcsls.seconds is None and rcsls.gigabytes is None
