"""What to fit, the held-out trial that fills in what was left open, and the fitted result.

A `Recipe` is plain data; `fit` turns a recipe, two vocabularies and seed pairs into a `Fitted`. Importing
this package is light: what computes is loaded when a name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bilex.recipe.calibration import Calibration, calibrate
    from bilex.recipe.expectation import Expectation
    from bilex.recipe.fitted import Fitted
    from bilex.recipe.fitting import fit
    from bilex.recipe.report import FitReport
    from bilex.recipe.settings import Recipe

__all__ = ["Calibration", "Expectation", "FitReport", "Fitted", "Recipe", "calibrate", "fit"]

_HOMES = {
    "Calibration": "calibration",
    "calibrate": "calibration",
    "Expectation": "expectation",
    "FitReport": "report",
    "Fitted": "fitted",
    "fit": "fitting",
    "Recipe": "settings",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bilex.recipe' has no attribute '{name}'")
    return getattr(importlib.import_module(f"bilex.recipe.{_HOMES[name]}"), name)
