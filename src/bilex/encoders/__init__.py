"""Words to vectors with a multilingual language model, and tuning it on pairs and negatives (stage C2).

`settings` has C2 and its presets, `opening` the sources of encoders, `model` the encoder, `tuning` the
contrastive tuning, `stage` all of it in order and the combination with static vectors. Importing this package
is light: torch and transformers are loaded when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilex.core.lazy import lazy_exports

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.settings import C2, PRESETS, EncoderPreset, Reading, TuningSettings
    from bilex.encoders.stage import Combination, StageResult, run_stage_c2

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

_SETTINGS = dict.fromkeys(
    ("C2", "PRESETS", "EncoderPreset", "Reading", "TuningSettings"), "bilex.encoders.settings"
)
_STAGE = dict.fromkeys(("Combination", "StageResult", "run_stage_c2"), "bilex.encoders.stage")
__getattr__, __dir__ = lazy_exports(__name__, {"WordEncoder": "bilex.encoders.model", **_SETTINGS, **_STAGE})
