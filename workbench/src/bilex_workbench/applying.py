"""Recalibrated confidences written into the model itself, so that everybody who opens it has them.

The model's folder is replaced as a whole, checksums included, so that a kill leaves the old or the new one.
The configuration keeps the calibration before all changes, and the changes as one. The review file stores
confidences of that calibration only, so that nothing in it has to follow, however often this is done.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bilex.core.errors import BilexError
from bilex.core.manifest import checksums
from bilex.fit.calibration import Calibration
from bilex.fit.logistic import Logistic
from bilex.model.storage import read_config, replace_calibration
from bilex_workbench.problems import ProblemError
from bilex_workbench.recalibration import UNCHANGED, Recalibration

if TYPE_CHECKING:
    from bilex_workbench.state import Workbench

_CONFIG = "config.json"


@dataclass(frozen=True)
class Lineage:
    """The model before audits changed its confidences.

    Attributes:
        base: Its fingerprint, under which the review file knows it.
        calibration: Its confidences.
        applied: What changed them since.
    """

    base: str
    calibration: Calibration
    applied: Recalibration

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


def apply_to_model(bench: Workbench) -> Recalibration:
    """Make the recalibrated confidences the model's own.

    Raises:
        ProblemError: There is no recalibration, the server does something else, or the folder is damaged or
            cannot be replaced.
    """
    with bench.exclusive("apply"):
        engine = bench.engine
        change = engine.recalibration
        if not change.decisions:
            raise ProblemError(409, "The confidences were not recalibrated; do that first.")
        own = engine.translator.calibration
        told = {
            **engine.change.as_dict(),
            "base": engine.base,
            "files": _files(engine.folder),
            "calibration": own.as_dict(),
        }
        try:
            new = recalibrated(own, engine.change)
            replace_calibration(engine.folder, new, {"recalibrated": told})
        except BilexError as error:
            raise ProblemError(409, str(error)) from error
        bench.load()
        return change


def _files(folder: Path) -> str:
    """What all files but the configuration are."""
    listed = sorted((name, digest) for name, digest in checksums(folder).items() if name != _CONFIG)
    return hashlib.sha256(repr(listed).encode("utf-8", "surrogatepass")).hexdigest()


def recalibrated(calibration: Calibration, change: Recalibration) -> Calibration:
    """A calibration whose confidences in what was audited (forward, CSLS) are the new ones.

    The new confidence is logistic(shift + slope · (bias + slopes · features)): again a logistic model.
    """
    part = calibration.parts[("forward", "csls")]
    slopes = part.model.slopes
    model = Logistic(
        change.shift + change.slope * part.model.bias,
        (change.slope * slopes[0], change.slope * slopes[1], change.slope * slopes[2]),
    )
    error = part.error if change.error_after is None else change.error_after
    parts = {**calibration.parts, ("forward", "csls"): replace(part, model=model, error=error)}
    return Calibration(parts, calibration.note)
