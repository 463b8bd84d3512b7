"""What the tables and plots know about the methods: their order, their colours, their names in the paper.

A method that is not listed, such as one from another package, comes between VecMap's and C1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ReportedAs:
    """One name of a method in the tables of Li et al. (ACL 2022).

    Args:
        name: The name there.
        seeds: The seed dictionaries with which the tables report it.
        settings: The settings that differ from the method's defaults and make it what was reported.
    """

    name: str
    seeds: tuple[str, ...] = ("5k", "1k")
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class About:
    """One method.

    Args:
        colour: In plots; None for the one of unknown methods.
        place: In tables; lower places come first.
        reported_as: Its names in published tables.
        same_method: Values of settings that leave the method what is reported there.
    """

    colour: str | None = None
    place: int = 50
    reported_as: tuple[ReportedAs, ...] = ()
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
