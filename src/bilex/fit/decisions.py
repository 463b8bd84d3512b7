"""What the held-out trial decided, and by what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bilex.core.typed_json import as_json, from_json
from bilex.fit.calibration import Calibration


@dataclass(frozen=True, kw_only=True)
class TrialReport:
    """What the trial found.

    Attributes:
        ran: Whether there was one.
        note: In a sentence, what was decided, or why nothing was.
        held_out_words: Source words that were held out.
        form: The form of the aligner that was taken; None where there was nothing to choose.
        form_scores: The score of each form on the held-out words (mean reciprocal rank, both directions).
        failed: Forms that could not be fitted, and why.
        mixing: The λ that was taken; None where there was nothing to choose.
        mixing_scores: The score of each λ.
        seconds: What it took.
    """

    ran: bool = False
    note: str = "there was nothing to decide"
    held_out_words: int = 0
    form: str | None = None
    form_scores: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    mixing: float | None = None
    mixing_scores: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return as_json(self)


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What a recipe leaves open, decided.

    Attributes:
        settings: Settings of the aligner to take in the place of the recipe's.
        mixing: λ; None without a language model.
        calibration: Confidences, or a note why there are none.
        report: What the trial found.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    mixing: float | None = None
    calibration: Calibration
    report: TrialReport

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "settings": dict(self.settings),
            "mixing": self.mixing,
            "calibration": self.calibration.as_dict(),
            "report": self.report.as_dict(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Decisions:
        """What `as_dict` gave."""
        return cls(
            settings=stored["settings"],
            mixing=stored["mixing"],
            calibration=Calibration.from_dict(stored["calibration"]),
            report=from_json(TrialReport, stored["report"]),
        )
