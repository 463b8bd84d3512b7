"""What a user decides about stage C2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.encoders.model import WordEncoder
from bilex.encoders.presets import (
    DEFAULT_ENCODER,
    Mixing,
    TuningPreset,
    TuningSettings,
    lightened,
    prior_mixing,
)


@dataclass(kw_only=True)
class StageC2:
    """Settings of stage C2.

    Args:
        lm: The encoder: a hub name, a model folder, or "e5-small-q4"; or an encoder that is open already,
            which is copied and itself stays as it is.
        mixing: λ; "auto" is for `bilex.fit.fit` and `Translator.fit`, whose held-out trial chooses it;
            None is "auto" there, and the encoder's usual λ in `run_stage_c2`.
        tune: Whether the encoder is tuned; False combines it as it is (the paper's ablation).
        tuning: How it is tuned; None takes the encoder's preset.
        preset: "paper", or "light" or "demo" for the lighter settings of `presets.lightened`; "auto" is
            "light" on a machine without a GPU, unless `tuning` is given, and "paper" elsewhere.
        device: "auto", "cpu" or "cuda".
        random_seed: Added to that of the tuning; not where `tuning` is given.
        cache: A folder for the encodings of vocabularies; None keeps them beside the checkpoint, where there
            is one.
    """

    lm: str | Path | WordEncoder = DEFAULT_ENCODER
    mixing: Mixing | None = None
    tune: bool = True
    tuning: TuningSettings | None = None
    preset: TuningPreset | Literal["auto"] = "auto"
    device: str = "auto"
    random_seed: int = 0
    cache: Path | None = None

    def __post_init__(self) -> None:
        if isinstance(self.mixing, float | int) and not 0 <= self.mixing <= 1:
            raise BilexError(f"λ is {self.mixing}; give a number from 0 to 1, or auto.")
        if isinstance(self.mixing, str) and self.mixing != "auto":
            raise BilexError(f"λ is '{self.mixing}'; give a number from 0 to 1, or auto.")
        if self.preset != "auto":
            lightened(TuningSettings(), self.preset)

    @property
    def preset_in_force(self) -> TuningPreset:
        """`preset`, with "auto" decided."""
        if self.preset != "auto":
            return self.preset
        device = self.lm.device if isinstance(self.lm, WordEncoder) else resolve_device(self.device)
        return "paper" if self.tuning is not None or device.type == "cuda" else "light"

    def mixing_for(self, encoder: WordEncoder) -> float:
        """λ as a number: the one given, or the usual one of an encoder.

        Raises:
            BilexError: It is to be chosen on held-out seeds, which `bilex.fit.fit` does.
        """
        if self.mixing == "auto":
            raise BilexError("λ = auto is chosen on held-out seeds by bilex.fit.fit; give a number here.")
        if self.mixing is not None:
            return float(self.mixing)
        return prior_mixing(encoder.preset, self.preset_in_force)

    @property
    def open_encoder(self) -> WordEncoder | None:
        """The encoder, if it was given open."""
        return self.lm if isinstance(self.lm, WordEncoder) else None

    def open(self, progress: Progress = SILENT) -> WordEncoder:
        """The encoder, fresh; tuning it changes no other."""
        if isinstance(self.lm, WordEncoder):
            return self.lm.copy()
        with progress.task("Opening the language model"):
            return WordEncoder.load(self.lm, device=self.device, progress=progress)

    def settings_for(self, encoder: WordEncoder) -> TuningSettings:
        """The tuning settings in force for an encoder."""
        if self.tuning is not None:
            return self.tuning
        usual = lightened(encoder.preset.tuning, self.preset_in_force)
        return replace(usual, seed=usual.seed + self.random_seed)
