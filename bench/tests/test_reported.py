"""The paper's figures, and which of our setups they belong to."""

from __future__ import annotations

import csv
from importlib import resources
from statistics import fmean
from typing import Any

import pytest

from bilex_bench.reported import (
    XLING_LANGUAGES,
    benchmark_of,
    counterpart,
    reported,
    reported_by_name,
)
from bilex_bench.results import Setup

MBERT = "bert-base-multilingual-uncased"


def setup(method: str = "c1", seeds: str = "5k", **more: Any) -> Setup:
    return Setup(**{"dataset": "xling", "pair": "en-ru", "seeds": seeds, "method": method, **more})


PAPERS = [
    (setup("rcsls"), "RCSLS"),
    (setup("rcsls", settings={"restore": False}), "RCSLS"),
    (setup("vecmap-supervised"), "VecMap"),
    (setup("vecmap-semi", "1k"), "VecMap"),
    (setup("lnmap"), "LNMap"),
    (setup("fipp"), "FIPP"),
    (setup(), "C1"),
    (setup(settings={"preset": "5k"}), "C1"),
    (setup(settings={"contrastive": False}), "C1 w/o CL"),
    (setup(settings={"self_learning": False}), "C1 w/o SL"),
    (setup(lm=MBERT, mixing=0.2), "C2 (C1)"),
    (setup(lm=MBERT, mixing=0.2), "C2 [mBERT]"),
    (setup(lm=MBERT, mixing=0.4), "C2 (C1, lambda=0.4)"),
    (setup(lm=MBERT, mixing=1), "mBERT (tuned)"),
    (setup(lm=MBERT, mixing=1, tune=False), "mBERT"),
    (setup(lm=MBERT, mixing=0.2, tune=False), "C1+mBERT"),
    (setup("rcsls", lm=MBERT, mixing=0.2), "C2 (RCSLS)"),
    (setup("vecmap-supervised", lm=MBERT, mixing=0.2), "C2 (VecMap)"),
    (setup(lm="xlm-mlm-100-1280", mixing=0.2), "C2 [XLM]"),
    (setup(lm="google/mt5-small", mixing=0.2), "C2 [mT5]"),
]


@pytest.mark.parametrize("ours,name", PAPERS)
def test_every_method_of_the_paper_is_one_of_ours(ours: Setup, name: str) -> None:
    found = counterpart(ours)
    assert found is not None and name in found.names and not found.difference


def test_no_method_of_the_paper_is_forgotten() -> None:
    text = (resources.files("bilex.data") / "reported_results.csv").read_text(encoding="utf-8")
    assert {row["method"] for row in csv.DictReader(text.splitlines())} == {name for _, name in PAPERS}


@pytest.mark.parametrize(
    "ours",
    [
        setup("procrustes"),
        setup("vecmap-semi", "5k"),
        setup("vecmap-supervised", "1k"),
        setup(settings={"preset": "best"}),
        setup(settings={"preset": "1k"}),
        setup(settings={"updates": 15}),
        setup(settings={"contrastive": False, "self_learning": False}),
        setup("fipp", settings={"metric": "cosine"}),
        setup(lm=MBERT, mixing=0.3),
        setup(lm=MBERT, mixing="auto"),
        setup("procrustes", lm=MBERT, mixing=0.2),
        setup("rcsls", lm="xlm-mlm-100-1280", mixing=0.2),
        setup(seeds="0"),
    ],
)
def test_what_the_paper_does_not_have_has_no_counterpart(ours: Setup) -> None:
    assert counterpart(ours) is None


def test_another_language_model_stands_beside_mbert_and_says_so() -> None:
    found = counterpart(setup(lm="e5-small-q4", mixing=0.2, label="anything"))
    assert found is not None and found.names[0] == "C2 (C1)"
    assert "mBERT" in found.difference and "e5-small-q4" in found.difference
    lighter = counterpart(setup(lm=MBERT, mixing=0.2, tuning={"preset": "light"}))
    assert lighter is not None and "tuning" in lighter.difference


def test_figures_of_a_direction() -> None:
    # Two cells of the paper's appendix, read off its pages.
    assert reported(setup(), "forward", "csls") == 49.15
    assert reported(setup(), "backward", "csls") == 51.91
    assert reported(setup(seeds="1k"), "forward", "nn") == 43.80
    turned = setup(pair="ru-en")
    assert reported(turned, "backward", "csls") == 49.15


def test_means_over_all_directions_are_the_papers_means() -> None:
    """The per-direction table and the main table were transcribed apart; they must agree."""
    for name in ("RCSLS", "VecMap", "LNMap", "FIPP", "C1", "C2 (C1)"):
        for seeds in ("5k", "1k"):
            found = {
                (a, b): reported_by_name([name], seeds, f"{a}->{b}", "csls")
                for a in XLING_LANGUAGES
                for b in XLING_LANGUAGES
                if a != b
            }
            assert fmean(found.values()) == pytest.approx(
                reported_by_name([name], seeds, "Avg.", "csls"), abs=0.006
            )
            for language in XLING_LANGUAGES:
                away = fmean(value for (a, _), value in found.items() if a == language)
                row = f"{language.upper()}->*"
                assert away == pytest.approx(reported_by_name([name], seeds, row, "csls"), abs=0.006)


def test_only_the_papers_benchmarks_have_reported_figures() -> None:
    assert benchmark_of(setup(dataset="sample")) is None
    assert benchmark_of(setup(dataset="shared"), "yacle.test.freq.2k.en-ru.tsv") == "xling"
    assert benchmark_of(setup(dataset="my XLING", pair="en-es")) is None
    assert reported(setup(dataset="sample", pair="en-fi"), "forward", "csls") is None


def test_panlex_has_figures_forward_only() -> None:
    place = {"dataset": "panlex", "pair": "bg-ca"}
    assert reported(setup("fipp", "1k", **place), "forward", "csls") is not None
    assert reported(setup("fipp", "1k", **place), "forward", "nn") is None
    assert reported(setup("fipp", "1k", **place), "backward", "csls") is None
    assert reported(setup("fipp", "1k", dataset="panlex", pair="ca-bg"), "backward", "csls") is None
