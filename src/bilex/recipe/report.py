"""What a fit was made from, how, and what came of it: the content of a model's card."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import bilex
from bilex import arithmetic
from bilex.aligners.base import Aligner
from bilex.encoders.report import StageReport
from bilex.lexicon import Lexicon
from bilex.machine import processor
from bilex.recipe.decisions import TrialReport
from bilex.recipe.expectation import Expectation
from bilex.vectors import WordVectors


@dataclass(frozen=True, kw_only=True)
class FitReport:
    """Everything that is remembered of a fit.

    Attributes:
        method: The aligner's name.
        method_summary: What it is, in a line.
        settings: Its settings.
        report: What it says about its fit.
        fit_seconds: What fitting it took.
        resumed: Whether the work went on from a checkpoint, so that its seconds are those of a part.
        source_file: Where the source vectors came from, if from a file.
        target_file: Likewise.
        source_dim: The dimension of the source vectors.
        target_dim: Likewise.
        source_preprocessing: What was done to the source vectors when they were read.
        target_preprocessing: Likewise.
        seeds: What the seed dictionary is called.
        seed_pairs: Its pairs.
        seed_pairs_covered: Of these, those with both words in the vectors.
        expectation: How many held-out seed words were translated rightly.
        trial: What the held-out trial found.
        language_model: What stage C2 says about itself; None without a language model.
        bilex_version: Of the program.
        python_version: Of Python.
        processor: Where it was computed.
        arithmetic: In which precision, by the kind of work.
        made: When, in UTC.
    """

    method: str
    method_summary: str
    settings: dict[str, Any]
    report: dict[str, Any]
    fit_seconds: float
    source_file: str | None
    target_file: str | None
    source_dim: int
    target_dim: int
    source_preprocessing: list[str]
    target_preprocessing: list[str]
    seeds: str
    seed_pairs: int
    seed_pairs_covered: int
    expectation: Expectation
    trial: TrialReport
    language_model: StageReport | None = None
    resumed: bool = False
    bilex_version: str = bilex.__version__
    python_version: str = field(default_factory=platform.python_version)
    processor: str = field(default_factory=lambda: processor().name)
    arithmetic: dict[str, str] = field(default_factory=arithmetic.used)
    made: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @classmethod
    def of(
        cls,
        aligner: Aligner,
        source: WordVectors,
        target: WordVectors,
        seeds: Lexicon,
        seconds: float,
        expectation: Expectation,
        trial: TrialReport,
        language_model: StageReport | None = None,
        *,
        resumed: bool = False,
    ) -> FitReport:
        """The report of a fitted aligner.

        Args:
            aligner: The aligner.
            source: Source vectors.
            target: Target vectors.
            seeds: The seed pairs.
            seconds: What fitting took.
            expectation: What held-out seeds say.
            trial: What the held-out trial found.
            language_model: What stage C2 says.
            resumed: Whether the work went on from a checkpoint.
        """
        return cls(
            method=aligner.name,
            method_summary=aligner.summary,
            settings=aligner.settings(),
            report=aligner.report_,
            fit_seconds=round(seconds, 2),
            source_file=source.report.source if source.report else None,
            target_file=target.report.source if target.report else None,
            source_dim=source.dim,
            target_dim=target.dim,
            source_preprocessing=list(source.preprocessing),
            target_preprocessing=list(target.preprocessing),
            seeds=seeds.name,
            seed_pairs=len(seeds),
            seed_pairs_covered=len(seeds.index(source.key_to_index, target.key_to_index)),
            expectation=expectation,
            trial=trial,
            language_model=language_model,
            resumed=resumed,
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON; without a language model nothing is said about one."""
        stored = asdict(self)
        if self.language_model is None:
            del stored["language_model"]
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> FitReport:
        """What `as_dict` gave.

        Raises:
            TypeError: It was changed.
        """
        values = dict(stored)
        values["expectation"] = Expectation(**values["expectation"])
        values["trial"] = TrialReport(**values["trial"])
        if values.get("language_model") is not None:
            values["language_model"] = StageReport.from_dict(values["language_model"])
        return cls(**values)
