"""What a published table calls a method, so that our results can stand beside it."""

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
