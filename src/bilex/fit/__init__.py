"""Fitting: one held-out trial decides what was left open, then the aligner learns from all seeds.

Importing this package is light: what computes is loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.lazy import lazy_exports

if TYPE_CHECKING:
    from bilex.fit.calibration import Calibration, calibrate
    from bilex.fit.expectation import Expectation
    from bilex.fit.fitting import FitResult, fit
    from bilex.fit.report import FitReport

__all__ = ["DEFAULT_METHOD", "Calibration", "Expectation", "FitReport", "FitResult", "calibrate", "fit"]

DEFAULT_METHOD = "c1"

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Calibration": "bilex.fit.calibration",
        "calibrate": "bilex.fit.calibration",
        "Expectation": "bilex.fit.expectation",
        "FitReport": "bilex.fit.report",
        "FitResult": "bilex.fit.fitting",
        "fit": "bilex.fit.fitting",
    },
)
