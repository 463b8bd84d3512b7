"""The figures of the paper's tables, which of our setups each belongs to, and methods in order and colour.

Li et al., Improving Word Translation via Two-Stage Contrastive Learning, ACL 2022. They were measured on
fastText's Wikipedia vectors with 200,000 words per language; the note beside the file says more.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from bilex_bench.results import DirectionName, Setup

Retrieval = Literal["nn", "csls"]

CITATION = "Li et al., ACL 2022"
XLING_LANGUAGES = ("de", "en", "fi", "fr", "hr", "it", "ru", "tr")
XLING_PAIRS = len(XLING_LANGUAGES) * (len(XLING_LANGUAGES) - 1) // 2
PANLEX_LANGUAGES = ("bg", "ca", "et", "eu", "he", "hu")

# The paper's weight of the language model, and the model itself.
PAPER_MIXING = 0.2
PAPER_LM = "mBERT"
LM_NAMES = {
    "bert-base-multilingual-uncased": PAPER_LM,
    "google-bert/bert-base-multilingual-uncased": PAPER_LM,
    "xlm-mlm-100-1280": "XLM",
    "FacebookAI/xlm-mlm-100-1280": "XLM",
    "google/mt5-small": "mT5",
}

# What the paper calls stage C2 over an aligner; with another model than mBERT, over C1 only.
_STAGES = {
    "C1": ("C2 (C1)", "C2 [mBERT]"),
    "RCSLS": ("C2 (RCSLS)",),
    "VecMap": ("C2 (VecMap)",),
}
_OTHER_LMS = {"XLM": ("C2 [XLM]",), "mT5": ("C2 [mT5]",)}
_OTHER_MIXINGS = {0.4: ("C2 (C1, lambda=0.4)",)}
_PER_DIRECTION = ("full", "panlex", "c2_support", "c2_lm")
_AVERAGES = ("main", "ablation_full")


@dataclass(frozen=True)
class Counterpart:
    """What the paper reports for a setup, or for the nearest thing to it."""

    names: tuple[str, ...]  # its names in the paper's tables
    difference: str = ""  # what the paper did otherwise; empty if nothing but the vectors


def counterpart(setup: Setup) -> Counterpart | None:
    """The paper's method that a setup is, by its settings and not by its label.

    A language model that the paper does not have stands beside the paper's mBERT, and the difference is
    said. Another λ than the paper's, or an aligner with other settings, has no counterpart.
    """
    base = _aligner(setup)
    if setup.lm is None:
        return None if base is None else Counterpart((base,))
    model = LM_NAMES.get(setup.lm)
    names = _stage(setup, base, model)
    if names is None:
        return None
    said = [] if model else [f"with {PAPER_LM}, ours with {setup.lm}"]
    if setup.tune and setup.tuning:
        said.append("with its own settings of tuning")
    return Counterpart(names, ", ".join(said))


def benchmark_of(setup: Setup, dictionary: str = "") -> Literal["xling", "panlex"] | None:
    """The paper's benchmark that a setup is scored on, by names and languages."""
    name, languages = setup.dataset.lower(), set(setup.languages)
    if ("xling" in name or "yacle.test" in dictionary) and languages <= set(XLING_LANGUAGES):
        return "xling"
    if ("panlex" in name or "panlex" in dictionary.lower()) and languages <= set(PANLEX_LANGUAGES):
        return "panlex"
    return None


def reported(
    setup: Setup, direction: DirectionName, retrieval: Retrieval, dictionary: str = ""
) -> float | None:
    """The paper's P@1 × 100 for a setup in one direction; None where it reports none."""
    found, benchmark = counterpart(setup), benchmark_of(setup, dictionary)
    if found is None or benchmark is None or (benchmark == "panlex" and direction == "backward"):
        return None
    source, target = setup.languages if direction == "forward" else setup.languages[::-1]
    return reported_by_name(found.names, setup.seeds, source, target, retrieval)


def reported_by_name(
    names: Iterable[str], seeds: str, source: str, target: str, retrieval: Retrieval
) -> float | None:
    """The paper's P@1 × 100 of a method in one direction."""
    direction = f"{source.upper()}->{target.upper()}"
    return _look_up(_PER_DIRECTION, seeds, direction, tuple(names), retrieval)


def reported_average(names: Iterable[str], seeds: str, row: str, retrieval: Retrieval) -> float | None:
    """The paper's mean over all its pairs."""
    return _look_up(_AVERAGES, seeds, row, tuple(names), retrieval)


def _aligner(setup: Setup) -> str | None:
    """The paper's name of the aligner."""
    method = about(setup.method)
    differing = {k: v for k, v in setup.settings.items() if v not in method.same_method.get(k, ())}
    if differing.get("preset") == setup.seeds:  # C1's presets are named after the paper's seeds
        del differing["preset"]
    fitting = (r for r in method.reported_as if r.settings == differing and setup.seeds in r.seeds)
    return next((reported_as.name for reported_as in fitting), None)


def _stage(setup: Setup, base: str | None, model: str | None) -> tuple[str, ...] | None:
    if setup.mixing == 1:  # the model alone; the aligner serves to find pairs and negatives only
        alone = f"{PAPER_LM} (tuned)" if setup.tune else PAPER_LM
        return (alone,) if model in (PAPER_LM, None) and base == "C1" else None
    if model in _OTHER_LMS:
        fits = base == "C1" and setup.tune and setup.mixing == PAPER_MIXING
        return _OTHER_LMS[model] if fits else None
    if setup.mixing in _OTHER_MIXINGS and setup.tune and base == "C1":
        return _OTHER_MIXINGS[setup.mixing]  # type: ignore[index]
    if setup.mixing != PAPER_MIXING or base is None:
        return None
    if not setup.tune:
        return (f"C1+{PAPER_LM}",) if base == "C1" else None
    return _STAGES.get(base)


def _look_up(
    tables: tuple[str, ...], seeds: str, direction: str, names: tuple[str, ...], retrieval: Retrieval
) -> float | None:
    figures = _figures()
    for name in names:
        for table in tables:
            value = figures.get((table, seeds, direction, name, retrieval))
            if value is not None:
                return value
    return None


@functools.cache
def _figures() -> dict[tuple[str, str, str, str, Retrieval], float]:
    """All figures of the packaged file."""
    text = (resources.files("bilex.data") / "reported_results.csv").read_text(encoding="utf-8")
    retrievals: tuple[Retrieval, ...] = ("nn", "csls")
    return {
        (row["table"], row["seeds"], row["direction"], row["method"], retrieval): float(
            row[f"p1_{retrieval}"]
        )
        for row in csv.DictReader(text.splitlines())
        for retrieval in retrievals
        if row[f"p1_{retrieval}"]
    }


@dataclass(frozen=True)
class ReportedAs:
    """One name of a method in the tables of Li et al. (ACL 2022)."""

    name: str  # the name there
    seeds: tuple[str, ...] = ("5k", "1k")  # the seed dictionaries with which the tables report it
    # the settings that differ from the method's defaults and make it what was reported
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class About:
    """One method."""

    colour: str | None = None  # in plots; None for the one of unknown methods
    place: int = 50  # in tables; lower places come first
    reported_as: tuple[ReportedAs, ...] = ()  # its names in published tables
    # values of settings that leave the method what is reported there
    same_method: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


_VECMAP = "#009e73"
_ABOUT = {
    "procrustes": About("#7a7a7a", 0),
    "advanced": About("#56b4e9", 10),
    "rcsls": About("#cc79a7", 20, (ReportedAs("RCSLS"),), {"restore": (True, False)}),
    # The paper reports the supervised mapping with 5k seeds and self-learning with 1k.
    "vecmap-supervised": About(_VECMAP, 30, (ReportedAs("VecMap", ("5k",)),)),
    "vecmap-semi": About(_VECMAP, 31, (ReportedAs("VecMap", ("1k",)),)),
    "vecmap-identical": About(_VECMAP, 32),
    "vecmap-unsupervised": About(_VECMAP, 33),
    "lnmap": About("#999933", 40, (ReportedAs("LNMap"),)),
    "fipp": About("#e69f00", 41, (ReportedAs("FIPP"),), {"metric": ("dot",)}),
    "c1": About(
        "#0072b2",
        90,
        (
            ReportedAs("C1"),
            ReportedAs("C1 w/o CL", settings={"contrastive": False}),
            ReportedAs("C1 w/o SL", settings={"self_learning": False}),
        ),
        {"preset": ("auto", "paper"), "contrastive": (True,), "self_learning": (True,)},
    ),
}


def about(method: str) -> About:
    """What is known about a method."""
    return _ABOUT.get(method, About())
