"""Confidences corrected by what people found in an audit, in the workbench and in the model folder.

The review file stores the model's confidences before all corrections, and `config.json` of the model keeps
that calibration and the corrections as one. So nothing that is stored has to follow a correction.
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
from bilex.model.storage import StoredModel, replace_calibration
from bilex_workbench.api import RESPONSE

FEWEST_DECISIONS = 30
_CLIP, _PENALTY = 1e-4, 1.0


@dataclass(frozen=True)
class Recalibration:
    """New confidence = logistic(shift + slope · logit of the model's own)."""

    __pydantic_config__: ClassVar[Any] = RESPONSE
    slope: float = 1.0  # never negative, so that the order stays
    shift: float = 0.0
    decisions: int = 0  # audited entries that it was learned from; 0 changes nothing
    error_before: float | None = None  # calibration error of the model's own confidences on them
    error_after: float | None = None  # that of the new ones, by cross-validation
    at: str | None = None
    model: str | None = None  # fingerprint of the model it corrects; None in files of older versions

    def __call__(self, confidence: float | None) -> float | None:
        """The new confidence of one entry."""
        return None if confidence is None else float(self.of_all(np.array(confidence)))

    def of_all(self, confidences: Numbers) -> Numbers:
        """The new confidences of many entries; NaN stays NaN."""
        return _logistic(self.shift + self.slope * _logit(confidences)) if self.decisions else confidences

    def after(self, earlier: Recalibration) -> Recalibration:
        """This correction on top of an earlier one, as one correction."""
        if not self.decisions or not earlier.decisions:
            return self if self.decisions else earlier
        shift = self.shift + self.slope * earlier.shift
        return replace(self, slope=self.slope * earlier.slope, shift=shift)


UNCHANGED = Recalibration()


def learn(confidences: Numbers, right: Truths, at: str, model: str | None = None) -> Recalibration:
    """Slope and shift that make the audited verdicts most likely, with a light penalty on |slope − 1|."""
    folds = np.arange(len(right)) % 5
    after = np.empty(len(right))
    for fold in range(5):
        shift, slope = _fit(confidences[folds != fold], right[folds != fold])
        after[folds == fold] = _logistic(shift + slope * _logit(confidences[folds == fold]))
    shift, slope = _fit(confidences, right)
    old, new = (expected_calibration_error(given, right) for given in (confidences, after))
    return Recalibration(slope, shift, len(right), old, new, at, model)


def _logit(confidences: Numbers) -> Numbers:
    p = np.clip(confidences, _CLIP, 1 - _CLIP)
    return np.asarray(np.log(p) - np.log1p(-p))


def _logistic(z: Numbers) -> Numbers:
    with np.errstate(invalid="ignore"):  # NaN, for entries without a confidence, stays NaN
        return np.asarray(np.exp(-np.logaddexp(0, -z)))


def _fit(confidences: Numbers, right: Truths) -> tuple[float, float]:
    """Shift and slope by penalised maximum likelihood."""
    from scipy.optimize import minimize

    x, y = _logit(confidences), right.astype(np.float64)

    def loss(w: Numbers) -> tuple[float, Numbers]:
        z = w[0] + w[1] * x
        value = float(np.logaddexp(0, z).sum() - y @ z + 0.5 * _PENALTY * (w[1] - 1) ** 2)
        error = _logistic(z) - y
        return value, np.array([error.sum(), error @ x + _PENALTY * (w[1] - 1)])

    found = minimize(loss, np.array([0.0, 1.0]), jac=True, method="L-BFGS-B", bounds=[(-30, 30), (0, None)])
    shift, slope = float(found.x[0]), float(found.x[1])
    return (shift, slope) if math.isfinite(shift + slope) else (0.0, 1.0)


def before_audits(
    folder: Path, fingerprint: str, calibration: Calibration
) -> tuple[str, Calibration, Recalibration]:
    """The fingerprint and calibration of a model before audits corrected it, and the corrections since.

    The model's configuration records them; that counts while it still describes the model's files.
    """
    stored = StoredModel.open(folder, many=False).config.get("recalibrated") or {}
    try:
        change = Recalibration(**{one.name: stored[one.name] for one in fields(Recalibration)})
        earlier = Calibration.from_dict(stored["calibration"])
        if stored["files"] == _files(folder) and _recalibrated(earlier, change) == calibration:
            return str(stored["base"]), earlier, change
    except (KeyError, TypeError, ValueError, AttributeError):
        pass  # written by hand or by another version
    return fingerprint, calibration, UNCHANGED


def write_into(folder: Path, base: str, own: Calibration, change: Recalibration) -> None:
    """Write corrected confidences into the model, whose calibration before all corrections is `own`."""
    stored = {**asdict(change), "base": base, "files": _files(folder), "calibration": own.as_dict()}
    replace_calibration(folder, _recalibrated(own, change), {"recalibrated": stored})


def _files(folder: Path) -> str:
    """A digest of all files but the configuration."""
    listed = sorted((name, digest) for name, digest in checksums(folder).items() if name != "config.json")
    return hashlib.sha256(repr(listed).encode("utf-8", "surrogatepass")).hexdigest()


def _recalibrated(calibration: Calibration, change: Recalibration) -> Calibration:
    """A calibration whose confidences in what was audited (forward, CSLS) are the new ones.

    The new confidence is logistic(shift + slope · (bias + slopes · features)): again a logistic model.
    """
    part = calibration.parts[("forward", "csls")]
    a, b, c, d = (change.slope * slope for slope in part.model.slopes)
    model = Logistic(change.shift + change.slope * part.model.bias, (a, b, c, d))
    error = part.error if change.error_after is None else change.error_after
    parts = {**calibration.parts, ("forward", "csls"): replace(part, model=model, error=error)}
    return Calibration(parts, calibration.note)
