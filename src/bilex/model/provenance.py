"""From what and how a model was made: what its folder and its card record."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import bilex
from bilex.core.languages import language_name
from bilex.fit.report import FitReport, TrialReport, now
from bilex.model.space import Direction

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.encoders.settings import C2


@dataclass(frozen=True, kw_only=True)
class Retrained:
    """How often a model learned from decisions of people, and the pairs of the last time."""

    rounds: int
    accepted: int
    rejected: int


@dataclass(frozen=True, kw_only=True)
class Provenance(FitReport):
    """The report of a model's fit, and what else the model records.

    Attributes:
        asked: The constructor's arguments of the aligner as the user gave it, before the trial chose.
        encoder_settings: Those of `C2`; empty without a language model.
        source_language: The code of the source language; None where it is not known.
        target_language: The same for the target language.
        composed: Phrases of the seeds that were added to each vocabulary, composed of their words.
        retrained: What came after the fit; None where nothing did.
        recalibrated: How an audit changed the confidences, as the workbench recorded it; empty if none did.
    """

    asked: Mapping[str, Any] = field(default_factory=dict)
    encoder_settings: Mapping[str, Any] = field(default_factory=dict)
    source_language: str | None = None
    target_language: str | None = None
    composed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    retrained: Retrained | None = None
    recalibrated: Mapping[str, Any] = field(default_factory=dict)

    def aligner(self, *, chosen: bool = False) -> Aligner | None:
        """The user's aligner, or with what the trial chose, not fitted; None where it is not known."""
        from bilex.aligners import methods

        method = methods().get(self.method)
        settings = self.settings if chosen else self.asked or self.settings
        if method is None or not set(settings) <= set(method.settings_fields()):
            return None
        return method(**settings)

    def encoder(self) -> C2 | None:
        """The user's settings of stage C2; None without a language model."""
        from bilex.encoders.settings import C2

        return C2.from_settings(dict(self.encoder_settings)) if self.encoder_settings else None

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of both languages, as far as they are known."""
        return self.source_language, self.target_language

    def language_names(self, direction: Direction = "forward") -> tuple[str, str]:
        """The names of the query and the key language; "source" and "target" where they are not known."""
        source = language_name(self.source_language) if self.source_language else "source"
        target = language_name(self.target_language) if self.target_language else "target"
        return (source, target) if direction == "forward" else (target, source)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without entries that are empty."""
        optional = ("asked", "encoder_settings", "composed", "retrained", "recalibrated")
        absent = [name for name in optional if not getattr(self, name)]
        return {name: value for name, value in super().as_dict().items() if name not in absent}


@dataclass(frozen=True, kw_only=True)
class JointReport:
    """What aligning several languages together reports; a pair of languages is written as "en-fi".

    `composed_pairs` share a translation in a third language; `losses` are those of each update, by round;
    `stopped` says where the fit broke, "" if it did not.
    """

    seed_pairs: Mapping[str, int]
    pairs_of_the_last_round: Mapping[str, int]
    composed_pairs: Mapping[str, int] = field(default_factory=dict)
    losses: tuple[tuple[float, ...], ...] = ()
    stopped: str = ""
    trial: TrialReport = field(default_factory=TrialReport)


@dataclass(frozen=True, kw_only=True)
class JoinReport:
    """The models of two languages that were joined, and the mean cosine of each language with the result."""

    models: tuple[str, ...]
    agreement: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class ManyProvenance:
    """What a model of many languages records; the names are those of `Provenance`.

    `method` is "joint" or "join"; `files` are the vector files of the languages, None where there was none.
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
