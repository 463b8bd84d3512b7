"""From what and how a model was made: what its folder and its card say."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import bilex
from bilex.core.languages import language_name
from bilex.fit.report import FitReport, now
from bilex.model.space import Direction

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.encoders.settings import C2


@dataclass(frozen=True, kw_only=True)
class Retrained:
    """What a model learned after its fit, from decisions of people.

    Attributes:
        rounds: How often it was retrained.
        accepted: Pairs that were accepted by the last time.
        rejected: Pairs that were rejected.
    """

    rounds: int
    accepted: int
    rejected: int


@dataclass(frozen=True, kw_only=True)
class Provenance(FitReport):
    """The report of a model's fit, and what the model knows beside it.

    Attributes:
        asked: The constructor's arguments of the aligner that was asked for, before the trial chose.
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

    @classmethod
    def of_fit(
        cls,
        report: FitReport,
        aligner: Aligner,
        encoder: C2 | None,
        languages: tuple[str | None, str | None],
    ) -> Provenance:
        """What a model remembers of a fit.

        Args:
            report: The report of the fit.
            aligner: The aligner that was asked for.
            encoder: The settings of stage C2; None without a language model.
            languages: Codes of the two languages, where known.
        """
        return cls(
            **{part.name: getattr(report, part.name) for part in fields(report)},
            asked=aligner.settings(),
            encoder_settings={} if encoder is None else encoder.settings(),
            source_language=languages[0],
            target_language=languages[1],
        )

    def aligner(self) -> Aligner | None:
        """The aligner that was asked for, not fitted; None where it is not known to this installation."""
        from bilex.aligners import methods

        method = methods().get(self.method)
        settings = self.asked or self.settings
        if method is None or not set(settings) <= set(method.settings_fields()):
            return None
        return method(**settings)

    def encoder(self) -> C2 | None:
        """The settings of stage C2 that were asked for; None without a language model."""
        if not self.encoder_settings:
            return None
        from bilex.encoders.settings import C2

        return C2.from_settings(dict(self.encoder_settings))

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
        """For JSON, without what there is not."""
        stored = super().as_dict()
        optional = ("asked", "encoder_settings", "composed", "retrained", "recalibrated")
        absent = [name for name in optional if not getattr(self, name)]
        return {name: value for name, value in stored.items() if name not in absent}


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
        pairs_of_the_last_round: Pairs that the last maps were learned from.
        composed_pairs: Pairs that the seeds of other languages gave.
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
