"""What to fit, the held-out trial that fills in what was left open, and the fitted result.

A `Recipe` is plain data; `fit` turns a recipe, two vocabularies and seed pairs into a `Fitted`. Importing
this package is light: what computes is loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.named_later import names_from

if TYPE_CHECKING:
    from bilex.recipe.calibration import Calibration, calibrate
    from bilex.recipe.expectation import Expectation
    from bilex.recipe.fitted import Fitted
    from bilex.recipe.fitting import fit
    from bilex.recipe.report import FitReport
    from bilex.recipe.settings import Recipe

__all__ = ["Calibration", "Expectation", "FitReport", "Fitted", "Recipe", "calibrate", "fit"]

__getattr__ = names_from(
    __name__,
    {
        "Calibration": "bilex.recipe.calibration",
        "calibrate": "bilex.recipe.calibration",
        "Expectation": "bilex.recipe.expectation",
        "FitReport": "bilex.recipe.report",
        "Fitted": "bilex.recipe.fitted",
        "fit": "bilex.recipe.fitting",
        "Recipe": "bilex.recipe.settings",
    },
)
