"""From what and how a model of many languages was made."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import bilex
from bilex.fit.report import now


@dataclass(frozen=True, kw_only=True)
class JointTrial:
    """What the held-out trial of a joint fit reports.

    Attributes:
        form: The form of C1 that was taken; "" where there was nothing to choose, or no trial.
        form_scores: The mean reciprocal rank of held-out words with each form.
        note: Why there was no trial; "" where there was one.
    """

    form: str = ""
    form_scores: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class JointReport:
    """What aligning several languages together reports; two languages are written as "en-fi".

    Attributes:
        seed_pairs: Seed pairs that were used, by two languages.
        pairs_of_the_last_round: Pairs that the last maps were learned from, likewise.
        composed_pairs: Pairs that the seeds of other languages gave, likewise.
        losses: The loss of each update, by round.
        stopped: Where the fit broke; "" if it did not.
        trial: What held-out seeds decided.
    """

    seed_pairs: Mapping[str, int]
    pairs_of_the_last_round: Mapping[str, int]
    composed_pairs: Mapping[str, int] = field(default_factory=dict)
    losses: tuple[tuple[float, ...], ...] = ()
    stopped: str = ""
    trial: JointTrial = field(default_factory=JointTrial)


@dataclass(frozen=True, kw_only=True)
class JoinReport:
    """What joining models of two languages reports.

    Attributes:
        models: The models.
        agreement: How well the models agree about each language: the mean cosine with what was made of them.
    """

    models: tuple[str, ...]
    agreement: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class ManyProvenance:
    """What a model of many languages remembers.

    Attributes:
        method: "joint" or "join".
        method_summary: What it is, in a line.
        settings: Its settings.
        report: What happened.
        fit_seconds: What fitting took; NaN where nothing was fitted.
        files: The vector file of each language, None where there was none.
        dimensions: The dimension of each language's vectors.
        bilex_version: Of the program.
        python_version: Of Python.
        made: When, in UTC.
    """

    method: str = "unknown"
    method_summary: str = "unknown"
    settings: Mapping[str, Any] = field(default_factory=dict)
    report: JointReport | JoinReport | None = None
    fit_seconds: float = math.nan
    files: Mapping[str, str | None] = field(default_factory=dict)
    dimensions: Mapping[str, int] = field(default_factory=dict)
    bilex_version: str = bilex.__version__
    python_version: str = field(default_factory=platform.python_version)
    made: str = field(default_factory=now)
