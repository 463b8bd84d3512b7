"""Words to vectors with a multilingual language model, and tuning it on pairs and negatives (stage C2).

Importing this package is light: torch and transformers are loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.lazy import lazy_exports

if TYPE_CHECKING:
    from bilex.encoders.combine import Combination
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.settings import C2, PRESETS, EncoderPreset, Reading, TuningSettings
    from bilex.encoders.stage import StageResult, run_stage_c2

__all__ = [
    "C2",
    "PRESETS",
    "Combination",
    "EncoderPreset",
    "Reading",
    "StageResult",
    "TuningSettings",
    "WordEncoder",
    "run_stage_c2",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Combination": "bilex.encoders.combine",
        "WordEncoder": "bilex.encoders.model",
        "PRESETS": "bilex.encoders.settings",
        "EncoderPreset": "bilex.encoders.settings",
        "Reading": "bilex.encoders.settings",
        "TuningSettings": "bilex.encoders.settings",
        "C2": "bilex.encoders.settings",
        "StageResult": "bilex.encoders.stage",
        "run_stage_c2": "bilex.encoders.stage",
    },
)
