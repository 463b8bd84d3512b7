"""The statistics of audits: bands, the 95 % interval of a share in a stratified sample, and recalibration.

A recalibration corrects confidences by what people found, in the workbench and in the model folder. The
review file stores the model's confidences before all corrections, and `config.json` of the model keeps that
calibration and the corrections as one. So nothing that is stored has to follow a correction.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bilex.core.manifest import checksums
from bilex.evaluation.without_gold import wilson_interval
from bilex.fit.calibration import Calibration, Numbers, Truths, expected_calibration_error
from bilex.model.storage import StoredModel, replace_calibration
from bilex_workbench.api import RESPONSE

FEWEST_DECISIONS = 30
_CLIP, _PENALTY = 1e-4, 1.0
_FOLDS = 5
_BAND_ENDS = (1_000, 5_000, 20_000, 50_000, 100_000)
_CONFIDENCE_CUTS = (0.2, 0.5, 0.8)
CONFIDENCE_BANDS = [f"{low:g}-{high:g}" for low, high in pairwise((0, *_CONFIDENCE_CUTS, 1))]


@dataclass(frozen=True)
class FrequencyBand:
    """A range of frequency ranks, both ends included."""

    name: str
    first: int
    last: int


def frequency_bands(words: int) -> list[FrequencyBand]:
    """The bands of a vocabulary; the last ends with its last word."""
    ends = (*(end for end in _BAND_ENDS if end < words), words)
    return [FrequencyBand(f"{before + 1}-{end}", before + 1, end) for before, end in pairwise((0, *ends))]


def band_of(rank: int, bands: list[FrequencyBand]) -> str:
    """The name of the band of a rank."""
    return next((band.name for band in bands if rank <= band.last), bands[-1].name)


def confidence_band(confidence: float | None) -> str:
    """The name of a confidence's band, such as "0.5-0.8"; "none" without a confidence."""
    return "none" if confidence is None else CONFIDENCE_BANDS[bisect_right(_CONFIDENCE_CUTS, confidence)]


@dataclass(frozen=True)
class Stratum:
    """How many entries a stratum has, how many of those were drawn and decided, and how many are right."""

    entries: int
    decided: int
    right: int


@dataclass(frozen=True)
class Estimate:
    """A share with its 95 % interval."""

    share: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The width of the interval."""
        return self.high - self.low


def wilson(share: float, decisions: float) -> Estimate:
    """Wilson's interval of a share found in a number of independent decisions, which need not be whole."""
    return Estimate(share, *wilson_interval(share, decisions))


def estimate(strata: Sequence[Stratum]) -> Estimate | None:
    """The share of right entries over all strata; None without a decision.

    Each stratum counts by its entries, not by how many were drawn. Strata without a decision are left out,
    and their weight with them.
    """
    share, informative, _ = _pooled(strata)
    return wilson(share, informative) if informative else None


def more_decisions(strata: Sequence[Stratum], width: float) -> int | None:
    """How many more decisions would narrow the interval to a width, if they turn out like those so far."""
    share, informative, decided = _pooled(strata)
    if not decided:
        return None
    possible = range(decided, 1 << 40)
    return bisect_left(
        possible, True, key=lambda total: wilson(share, informative / decided * total).width <= width
    )


def _pooled(strata: Sequence[Stratum]) -> tuple[float, float, int]:
    """The weighted share, how many simple random decisions are as informative, and how many there are.

    The weighted share has the variance Σ W²·p(1−p)/n, with one right and one wrong added to p in each
    stratum, so that a stratum without a mistake is not taken for certain.
    """
    known = [one for one in strata if one.decided and one.entries]
    decided, entries = sum(one.decided for one in known), sum(one.entries for one in known)
    share, variance, pooled = 0.0, 0.0, 0.0
    for one in known:
        weight, p = one.entries / entries, (one.right + 1) / (one.decided + 2)
        share += one.entries * one.right / one.decided
        variance += weight * weight * p * (1 - p) / one.decided
        pooled += weight * p
    if not known:
        return 0.0, 0.0, 0
    return share / entries, min(decided, pooled * (1 - pooled) / variance), decided


def allocate(entries: Sequence[int], size: int, least: int = 2) -> list[int]:
    """How many to draw from each stratum: in proportion to its entries, but at least a few from each."""
    size, total = min(size, sum(entries)), sum(entries)
    drawn = [min(count, least) for count in entries]
    while sum(drawn) > size:
        drawn[drawn.index(max(drawn))] -= 1
    while sum(drawn) < size:
        gaps = [
            size * count / total - got if got < count else -math.inf
            for count, got in zip(entries, drawn, strict=True)
        ]
        drawn[gaps.index(max(gaps))] += 1
    return drawn


def or_none(value: float) -> float | None:
    """A number for SQLite and JSON: None instead of NaN."""
    return None if math.isnan(value) else float(value)


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
    folds = np.arange(len(right)) % _FOLDS
    after = np.empty(len(right))
    for fold in range(_FOLDS):
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

    The new confidence is logistic(shift + slope · log-odds of the earlier one): again a logistic model.
    """
    part = calibration.parts[("forward", "csls")]
    model = part.model.rescaled(change.shift, change.slope)
    error = part.error if change.error_after is None else change.error_after
    parts = {**calibration.parts, ("forward", "csls"): replace(part, model=model, error=error)}
    return Calibration(parts, calibration.note)
