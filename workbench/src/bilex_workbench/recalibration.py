"""Confidences brought in line with what people found in an audit, and written into the model.

The model's folder is replaced as a whole, checksums included, so that a kill leaves the old or the new one.
The configuration keeps the calibration before all changes, and the changes as one. The review file stores
confidences of that calibration only, so that nothing in it has to follow, however often this is done.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bilex.core.manifest import checksums
from bilex.fit.calibration import Calibration, Logistic, Numbers, Truths, expected_calibration_error
from bilex.model.storage import read_config, replace_calibration
from bilex_workbench.interface import ANSWERED

FEWEST_DECISIONS = 30
_CONFIG = "config.json"
_NEAREST = 1e-4
_PENALTY = 1.0


@dataclass(frozen=True)
class Recalibration:
    """New confidence = logistic(shift + slope · logit of the model's own)."""

    __pydantic_config__: ClassVar[Any] = ANSWERED
    slope: float = 1.0  # never negative, so that the order stays
    shift: float = 0.0
    decisions: int = 0  # audited entries that it was learned on; 0 for none
    error_before: float | None = None  # calibration error of the model's own confidences on them
    error_after: float | None = None  # that of the new ones, by cross-validation
    at: str | None = None
    model: str | None = None  # whose confidences are meant; None in files of older versions

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
    """Slope and shift that make the audited truths most likely, with a light pull of the slope towards 1."""
    folds = np.arange(len(right)) % 5
    after = np.empty(len(right))
    for fold in range(5):
        shift, slope = _fit(confidences[folds != fold], right[folds != fold])
        after[folds == fold] = _logistic(shift + slope * logit(confidences[folds == fold]))
    shift, slope = _fit(confidences, right)
    old, new = (expected_calibration_error(said, right) for said in (confidences, after))
    return Recalibration(slope, shift, len(right), old, new, at, model)


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


@dataclass(frozen=True)
class Lineage:
    """The model before audits changed its confidences."""

    base: str  # its fingerprint, under which the review file knows it
    calibration: Calibration
    applied: Recalibration  # what changed its confidences since

    @classmethod
    def of(cls, folder: Path, fingerprint: str, calibration: Calibration) -> Lineage:
        """The lineage that a model's configuration tells, if it is still true of its files."""
        told = read_config(folder).get("recalibrated") or {}
        try:
            change = Recalibration(**{one.name: told[one.name] for one in fields(Recalibration)})
            earlier = Calibration.from_dict(told["calibration"])
            true = told["files"] == _files(folder) and recalibrated(earlier, change) == calibration
        except (KeyError, TypeError, ValueError, AttributeError):
            true = False
        return cls(str(told["base"]), earlier, change) if true else cls(fingerprint, calibration, UNCHANGED)


def write_into(folder: Path, base: str, own: Calibration, change: Recalibration) -> None:
    """Make changed confidences those of the model, whose own before all changes are `own`."""
    told = {**change.as_dict(), "base": base, "files": _files(folder), "calibration": own.as_dict()}
    replace_calibration(folder, recalibrated(own, change), {"recalibrated": told})


def _files(folder: Path) -> str:
    """What all files but the configuration are."""
    listed = sorted((name, digest) for name, digest in checksums(folder).items() if name != _CONFIG)
    return hashlib.sha256(repr(listed).encode("utf-8", "surrogatepass")).hexdigest()


def recalibrated(calibration: Calibration, change: Recalibration) -> Calibration:
    """A calibration whose confidences in what was audited (forward, CSLS) are the new ones.

    The new confidence is logistic(shift + slope · (bias + slopes · features)): again a logistic model.
    """
    part = calibration.parts[("forward", "csls")]
    a, b, c, d = (change.slope * slope for slope in part.model.slopes)
    model = Logistic(change.shift + change.slope * part.model.bias, (a, b, c, d))
    error = part.error if change.error_after is None else change.error_after
    parts = {**calibration.parts, ("forward", "csls"): replace(part, model=model, error=error)}
    return Calibration(parts, calibration.note)
