"""The paper's results, which of our setups each belongs to, and the order and colour of methods.

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
PANLEX_LANGUAGES = ("bg", "ca", "et", "eu", "he", "hu")
PAPER_MIXING = 0.2
PAPER_LM = "mBERT"
LM_NAMES = {
    "bert-base-multilingual-uncased": PAPER_LM,
    "google-bert/bert-base-multilingual-uncased": PAPER_LM,
    "xlm-mlm-100-1280": "XLM",
    "FacebookAI/xlm-mlm-100-1280": "XLM",
    "google/mt5-small": "mT5",
}
# The paper's names of stage C2, by aligner, language model, whether that is tuned, and λ. With λ = 1 the
# aligner only finds pairs and negatives.
_STAGES: dict[tuple[str | None, str, bool, Any], tuple[str, ...]] = {
    ("C1", PAPER_LM, True, PAPER_MIXING): ("C2 (C1)", "C2 [mBERT]"),
    ("C1", PAPER_LM, True, 0.4): ("C2 (C1, lambda=0.4)",),
    ("C1", PAPER_LM, True, 1): (f"{PAPER_LM} (tuned)",),
    ("C1", PAPER_LM, False, 1): (PAPER_LM,),
    ("C1", PAPER_LM, False, PAPER_MIXING): (f"C1+{PAPER_LM}",),
    ("C1", "XLM", True, PAPER_MIXING): ("C2 [XLM]",),
    ("C1", "mT5", True, PAPER_MIXING): ("C2 [mT5]",),
    ("RCSLS", PAPER_LM, True, PAPER_MIXING): ("C2 (RCSLS)",),
    ("VecMap", PAPER_LM, True, PAPER_MIXING): ("C2 (VecMap)",),
}


@dataclass(frozen=True)
class About:
    """What the benchmark knows about a method."""

    colour: str | None = None  # in plots; None for that of unknown methods
    place: int = 50  # in tables; lower places come first
    # The names in the paper's tables, each with the seeds, and the settings that differ from the defaults.
    reported_as: tuple[tuple[str, tuple[str, ...], Mapping[str, Any]], ...] = ()
    # values of settings that leave the method what is reported there
    same_method: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # that a setup has unless it says otherwise


_VECMAP, _BOTH = "#009e73", ("5k", "1k")
_ABOUT = {
    "procrustes": About("#7a7a7a", 0),
    "advanced": About("#56b4e9", 10),
    "rcsls": About("#cc79a7", 20, (("RCSLS", _BOTH, {}),), {"restore": (True, False)}),
    # The paper reports the supervised mapping with 5k seeds and self-learning with 1k.
    "vecmap-supervised": About(_VECMAP, 30, (("VecMap", ("5k",), {}),)),
    "vecmap-semi": About(_VECMAP, 31, (("VecMap", ("1k",), {}),)),
    "vecmap-identical": About(_VECMAP, 32),
    "vecmap-unsupervised": About(_VECMAP, 33),
    "lnmap": About("#999933", 40, (("LNMap", _BOTH, {}),)),
    "fipp": About("#e69f00", 41, (("FIPP", _BOTH, {}),), {"metric": ("dot",)}),
    "c1": About(
        "#0072b2",
        90,
        (
            ("C1", _BOTH, {}),
            ("C1 w/o CL", _BOTH, {"contrastive": False}),
            ("C1 w/o SL", _BOTH, {"self_learning": False}),
        ),
        {"preset": ("paper",), "contrastive": (True,), "self_learning": (True,)},
        {"preset": "paper"},
    ),
}


def about(method: str) -> About:
    """What is known about a method."""
    return _ABOUT.get(method, About())


@dataclass(frozen=True)
class Counterpart:
    """The paper's method that corresponds to a setup, or the nearest one."""

    names: tuple[str, ...]  # its names in the paper's tables
    difference: str = ""  # what the paper did otherwise; empty if nothing but the vectors


def counterpart(setup: Setup) -> Counterpart | None:
    """The paper's method that a setup is, by its settings and not by its label.

    A language model that the paper does not have is compared with the paper's mBERT, and the difference is
    stated. Another λ than the paper's, or an aligner with other settings, has no counterpart.
    """
    base = _aligner(setup)
    if setup.lm is None:
        return None if base is None else Counterpart((base,))
    model = LM_NAMES.get(setup.lm)
    names = _STAGES.get((base, model or PAPER_LM, setup.tune, setup.mixing))
    if names is None:
        return None
    differences = [] if model else [f"with {PAPER_LM}, ours with {setup.lm}"]
    if setup.tune and setup.tuning:
        differences.append("with its own settings of tuning")
    return Counterpart(names, ", ".join(differences))


def _aligner(setup: Setup) -> str | None:
    """The paper's name of the aligner."""
    method = about(setup.method)
    differing = {k: v for k, v in setup.settings.items() if v not in method.same_method.get(k, ())}
    if differing.get("preset") == setup.seeds:  # C1's presets are named after the paper's seeds
        del differing["preset"]
    names = (n for n, seeds, settings in method.reported_as if settings == differing and setup.seeds in seeds)
    return next(names, None)


def benchmark_of(setup: Setup, dictionary: str = "") -> Literal["xling", "panlex"] | None:
    """The paper's benchmark that a setup is evaluated on, by names and languages."""
    name, languages = setup.dataset.lower(), set(setup.languages)
    if ("xling" in name or "yacle.test" in dictionary) and languages <= set(XLING_LANGUAGES):
        return "xling"
    if ("panlex" in name or "panlex" in dictionary.lower()) and languages <= set(PANLEX_LANGUAGES):
        return "panlex"
    return None


def reported(
    setup: Setup, direction: DirectionName, retrieval: Retrieval, dictionary: str = ""
) -> float | None:
    """The paper's P@1 × 100 for a setup in one direction; None if it reports none."""
    found, benchmark = counterpart(setup), benchmark_of(setup, dictionary)
    if found is None or benchmark is None or (benchmark == "panlex" and direction == "backward"):
        return None
    source, target = setup.languages if direction == "forward" else setup.languages[::-1]
    return reported_by_name(found.names, setup.seeds, f"{source}->{target}", retrieval)


def reported_by_name(names: Iterable[str], seeds: str, row: str, retrieval: Retrieval) -> float | None:
    """The paper's P@1 × 100 of a method in a direction such as "en->fi", or in a row of means.

    Means over all pairs of the paper are in the rows "en->*", "*->en" and "Avg.".
    """
    values = (_values().get((seeds, row.upper(), name, retrieval)) for name in names)
    return next((value for value in values if value is not None), None)


@functools.cache
def _values() -> dict[tuple[str, str, str, str], float]:
    """All results of the packaged file; where tables of the paper overlap, they agree."""
    text = (resources.files("bilex.data") / "reported_results.csv").read_text(encoding="utf-8")
    return {
        (row["seeds"], row["direction"].upper(), row["method"], retrieval): float(row[f"p1_{retrieval}"])
        for row in csv.DictReader(text.splitlines())
        for retrieval in ("nn", "csls")
        if row[f"p1_{retrieval}"]
    }
