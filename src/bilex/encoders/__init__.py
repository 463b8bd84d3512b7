"""Words to vectors with a multilingual language model, and tuning it on pairs and negatives (stage C2).

Importing this package is light: torch and transformers are loaded when a name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bilex.encoders.combine import Combination
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.presets import PRESETS, EncoderPreset, Reading, TuningSettings
    from bilex.encoders.settings import StageC2
    from bilex.encoders.stage import StageResult, run_stage_c2

__all__ = [
    "PRESETS",
    "Combination",
    "EncoderPreset",
    "Reading",
    "StageC2",
    "StageResult",
    "TuningSettings",
    "WordEncoder",
    "run_stage_c2",
]

_HOMES = {
    "Combination": "combine",
    "WordEncoder": "model",
    "PRESETS": "presets",
    "EncoderPreset": "presets",
    "Reading": "presets",
    "TuningSettings": "presets",
    "StageC2": "settings",
    "StageResult": "stage",
    "run_stage_c2": "stage",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bilex.encoders' has no attribute '{name}'")
    return getattr(importlib.import_module(f"bilex.encoders.{_HOMES[name]}"), name)
