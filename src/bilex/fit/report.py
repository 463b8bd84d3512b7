"""What a fit was made from, how, and its results: the content of a model card."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import bilex
from bilex.aligners.base import AlignerReport, StoredReport
from bilex.core.machine import processor
from bilex.core.typed_json import as_json, from_json
from bilex.encoders.settings import StageReport
from bilex.fit.expectation import NOT_MEASURED, Expectation
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from typing import Self

    from bilex.aligners.base import Aligner


@dataclass(frozen=True, kw_only=True)
class TrialReport:
    """What the trial found.

    Attributes:
        ran: Whether there was one.
        note: In a sentence, what was decided, or why nothing was.
        held_out_words: Source words that were held out.
        mixing: The λ that was taken; None where there was nothing to choose.
        mixing_scores: The score of each λ on the held-out words (mean reciprocal rank, both directions).
        extent: The share of its rounds that C1 was found to make; None where there was nothing to choose.
        extent_scores: The score of each share on the held-out words.
        seconds: What it took.
    """

    ran: bool = False
    note: str = "there was nothing to decide"
    held_out_words: int = 0
    mixing: float | None = None
    mixing_scores: dict[str, float] = field(default_factory=dict)
    extent: float | None = None
    extent_scores: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return as_json(self)


@dataclass(frozen=True, kw_only=True)
class FitReport:
    """Everything that is recorded about a fit; unknown values have defaults.

    Attributes:
        method: The aligner's name.
        method_summary: What it is, in a line.
        settings: Its settings.
        seeds_optional: Whether it can do without a seed dictionary.
        report: The report of the aligner; from a file, its `StoredReport`.
        fit_seconds: The time of the fit; NaN if unknown.
        resumed: Whether the work went on from a checkpoint, so that its seconds are those of a part.
        source_file: Where the source vectors came from, if from a file.
        target_file: The same for the target language.
        source_dim: The dimension of the source vectors; None where that is not known.
        target_dim: The same for the target language.
        source_preprocessing: What was done to the source vectors when they were read.
        target_preprocessing: The same for the target language.
        seeds: What the seed dictionary is called.
        seed_pairs: Its pairs.
        seed_pairs_covered: Of these, those with both words in the vectors.
        expectation: How many held-out seed words were translated rightly.
        trial: What the held-out trial found.
        language_model: The report of stage C2; None without a language model.
        bilex_version: Of the program.
        python_version: Of Python.
        processor: Where it was computed.
        arithmetic: In which precision, by the kind of work.
        made: When, in UTC.
    """

    method: str = "unknown"
    method_summary: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds_optional: bool = False
    report: AlignerReport = field(default_factory=AlignerReport)
    fit_seconds: float = math.nan
    source_file: str | None = None
    target_file: str | None = None
    source_dim: int | None = None
    target_dim: int | None = None
    source_preprocessing: tuple[str, ...] = ()
    target_preprocessing: tuple[str, ...] = ()
    seeds: str = "no seeds"
    seed_pairs: int = 0
    seed_pairs_covered: int = 0
    expectation: Expectation = NOT_MEASURED
    trial: TrialReport = field(default_factory=TrialReport)
    language_model: StageReport | None = None
    resumed: bool = False
    bilex_version: str = "?"
    python_version: str = "?"
    processor: str = "a CPU"
    arithmetic: Mapping[str, str] = field(default_factory=dict)
    made: str = "?"

    @classmethod
    def of(
        cls,
        aligner: Aligner,
        source: WordVectors,
        target: WordVectors,
        seeds: Lexicon,
        **results: Any,
    ) -> FitReport:
        """The report of a fitted aligner; `results` are further fields."""
        from bilex.search.low_precision.operands import used

        return cls(
            method=aligner.name,
            method_summary=aligner.summary,
            settings=aligner.settings(),
            seeds_optional=not aligner.needs_seeds,
            report=aligner.report_,
            source_file=source.report.source if source.report else None,
            target_file=target.report.source if target.report else None,
            source_dim=source.dim,
            target_dim=target.dim,
            source_preprocessing=tuple(source.preprocessing),
            target_preprocessing=tuple(target.preprocessing),
            seeds=seeds.name,
            seed_pairs=len(seeds),
            seed_pairs_covered=len(seeds.index(source.key_to_index, target.key_to_index)),
            bilex_version=bilex.__version__,
            python_version=platform.python_version(),
            processor=processor().name,
            arithmetic=used(),
            made=now(),
            **results,
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without `language_model` if there is none."""
        stored = as_json(self)
        if self.language_model is None:
            del stored["language_model"]
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], kind: type[AlignerReport] = StoredReport) -> Self:
        """What `as_dict` gave, now or in an earlier version.

        Args:
            stored: The object.
            kind: The class of the aligner's report, where it is known.

        Raises:
            TypeError: It was changed.
        """
        report = from_json(kind, stored.get("report", {}))
        return replace(from_json(cls, stored), report=report)


def now() -> str:
    """The time in UTC, as reports write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
