"""What to fit, the held-out trial that fills in what was left open, and the fitted result.

A `Recipe` is plain data; `fit` turns a recipe, two vocabularies and seed pairs into a `Fitted`. Importing
this package is light: what computes is loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from bilex.fit.calibration import Calibration, calibrate
    from bilex.fit.expectation import Expectation
    from bilex.fit.fitted import Fitted
    from bilex.fit.fitting import fit
    from bilex.fit.report import FitReport
    from bilex.fit.settings import Recipe

__all__ = ["Calibration", "Expectation", "FitReport", "Fitted", "Recipe", "calibrate", "fit"]

__getattr__ = lazy_exports(
    __name__,
    {
        "Calibration": "bilex.fit.calibration",
        "calibrate": "bilex.fit.calibration",
        "Expectation": "bilex.fit.expectation",
        "FitReport": "bilex.fit.report",
        "Fitted": "bilex.fit.fitted",
        "fit": "bilex.fit.fitting",
        "Recipe": "bilex.fit.settings",
    },
)
