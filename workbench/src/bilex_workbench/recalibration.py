"""Confidences brought in line with what people found in an audit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bilex.fit.logistic import Numbers, Truths, expected_calibration_error
from bilex_workbench.problems import ANSWERED

FEWEST_DECISIONS = 30
_NEAREST = 1e-4
_PENALTY = 1.0


@dataclass(frozen=True)
class Recalibration:
    """New confidence = logistic(shift + slope · logit of the model's own).

    Attributes:
        slope: How much the model's differences count; never negative, so that the order stays.
        shift: What is added for all.
        decisions: How many audited entries it was learned on; 0 for none.
        error_before: Calibration error of the model's own confidences on them.
        error_after: That of the new ones, by cross-validation.
        at: When.
        model: The fingerprint of the model whose confidences are meant; None in files of older versions.
    """

    __pydantic_config__: ClassVar[Any] = ANSWERED
    slope: float = 1.0
    shift: float = 0.0
    decisions: int = 0
    error_before: float | None = None
    error_after: float | None = None
    at: str | None = None
    model: str | None = None

    def __call__(self, confidence: float | None) -> float | None:
        """The new confidence of one entry."""
        if confidence is None or not self.decisions:
            return confidence
        return float(_logistic(self.shift + self.slope * logit(np.array([confidence])))[0])

    def after(self, earlier: Recalibration) -> Recalibration:
        """This change of confidences that another one has changed already, as one change."""
        if not self.decisions or not earlier.decisions:
            return self if self.decisions else earlier
        shift = self.shift + self.slope * earlier.shift
        return replace(self, slope=self.slope * earlier.slope, shift=shift)

    def of_all(self, confidences: Numbers) -> Numbers:
        """The new confidences of many; NaN stays NaN."""
        if not self.decisions:
            return confidences
        return _logistic(self.shift + self.slope * logit(confidences))

    @classmethod
    def from_facts(cls, stored: dict[str, Any] | None, model: str) -> Recalibration:
        """What `as_dict` gave, or one that changes nothing if it was about another model."""
        found = UNCHANGED if stored is None else cls(**stored)
        return found if found.model in (None, model) else UNCHANGED

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


UNCHANGED = Recalibration()


def learn(confidences: Numbers, right: Truths, at: str, model: str | None = None) -> Recalibration:
    """Slope and shift that make the audited truths most likely, with a light pull of the slope towards 1.

    Args:
        confidences: The model's own confidence of each audited entry.
        right: Whether people found it right.
        at: When this is done.
        model: The fingerprint of the model.
    """
    folds = np.arange(len(right)) % 5
    after = np.empty(len(right))
    for fold in range(5):
        shift, slope = _fit(confidences[folds != fold], right[folds != fold])
        after[folds == fold] = _logistic(shift + slope * logit(confidences[folds == fold]))
    shift, slope = _fit(confidences, right)
    return Recalibration(
        slope,
        shift,
        len(right),
        expected_calibration_error(confidences, right),
        expected_calibration_error(after, right),
        at,
        model,
    )


def logit(confidences: Numbers) -> Numbers:
    """Log p/(1−p), with p kept away from 0 and 1."""
    p = np.clip(confidences, _NEAREST, 1 - _NEAREST)
    value: Numbers = np.log(p) - np.log1p(-p)
    return value


def _logistic(z: Numbers) -> Numbers:
    with np.errstate(invalid="ignore"):  # NaN, for entries without a confidence, stays NaN
        value: Numbers = np.exp(-np.logaddexp(0, -z))
    return value


def _fit(confidences: Numbers, right: Truths) -> tuple[float, float]:
    from scipy.optimize import minimize

    x, y = logit(confidences), right.astype(np.float64)

    def loss(w: Numbers) -> tuple[float, Numbers]:
        z = w[0] + w[1] * x
        value = float(np.logaddexp(0, z).sum() - y @ z + 0.5 * _PENALTY * (w[1] - 1) ** 2)
        error = _logistic(z) - y
        return value, np.array([error.sum(), error @ x + _PENALTY * (w[1] - 1)])

    found = minimize(loss, np.array([0.0, 1.0]), jac=True, method="L-BFGS-B", bounds=[(-30, 30), (0, None)])
    shift, slope = float(found.x[0]), float(found.x[1])
    return (shift, slope) if math.isfinite(shift + slope) else (0.0, 1.0)
