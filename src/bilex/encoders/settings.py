"""The settings of stage C2."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

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


@dataclass(frozen=True, repr=False)
class C2:
    """Settings of stage C2, which adds a language model; a fit never changes them.

    Args:
        lm: The language model: a hub name, a model folder, "e5-small-q4" (needs no hub), or an open
            `WordEncoder`, which is copied and itself stays as it is.
        mixing: λ, the weight of the language model: a number from 0 to 1, "auto" for the choice of the
            held-out trial, or "prior" for the encoder's usual one.
        tune: Whether the encoder is tuned; False combines it as it is (the paper's ablation).
        tuning: The tuning in every detail; None takes the encoder's preset.
        preset: "paper", or "light" or "demo" for the lighter settings of `presets.lightened`; "auto" is
            "light" on a machine without a GPU, unless `tuning` is given, and "paper" elsewhere.
        device: "auto", "cpu" or "cuda"; with "auto", `Translator.fit` takes the aligner's device.
        random_seed: Added to that of the tuning, unless `tuning` is given; None takes the aligner's.
        cache: A folder for the encodings of vocabularies; None keeps them beside the checkpoint, if any.

    Raises:
        BilexError: λ or the preset makes no sense.

    Examples:
        >>> C2("e5-small-q4", mixing=0.4)
        C2('e5-small-q4', mixing=0.4)
    """

    lm: str | Path | WordEncoder = DEFAULT_ENCODER
    mixing: Mixing = field(default="auto", kw_only=True)
    tune: bool = field(default=True, kw_only=True)
    tuning: TuningSettings | None = field(default=None, kw_only=True)
    preset: TuningPreset | Literal["auto"] = field(default="auto", kw_only=True)
    device: str = field(default="auto", kw_only=True)
    random_seed: int | None = field(default=None, kw_only=True)
    cache: Path | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        number = isinstance(self.mixing, float | int) and not isinstance(self.mixing, bool)
        if not (number and 0 <= float(self.mixing) <= 1) and self.mixing not in ("auto", "prior"):
            raise BilexError(f"λ is {self.mixing!r}; give a number from 0 to 1, auto or prior.")
        if self.preset != "auto":
            lightened(TuningSettings(), self.preset)

    def __repr__(self) -> str:
        named = [part for part in fields(self) if part.name != "lm"]
        changed = [
            f"{part.name}={getattr(self, part.name)!r}"
            for part in named
            if getattr(self, part.name) != part.default
        ]
        return f"C2({', '.join([repr(self.lm if self.open_encoder else str(self.lm)), *changed])})"

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments as plain data; `C2.from_settings` takes them."""
        encoder = self.open_encoder
        plain = asdict(self if encoder is None else replace(self, lm=encoder.name))
        return {**plain, "lm": str(plain["lm"]), "cache": None if self.cache is None else str(self.cache)}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> C2:
        """What `settings` gave."""
        values = dict(settings)
        try:
            if values.get("tuning") is not None:
                values["tuning"] = TuningSettings(**values["tuning"])
            if values.get("cache") is not None:
                values["cache"] = Path(values["cache"])
            return cls(**values)
        except TypeError as error:
            raise BilexError(f"these are no settings of stage C2 ({error}).") from error

    @property
    def preset_in_force(self) -> TuningPreset:
        """`preset`, with "auto" decided."""
        if self.preset != "auto":
            return self.preset
        device = self.lm.device if isinstance(self.lm, WordEncoder) else resolve_device(self.device)
        return "paper" if self.tuning is not None or device.type == "cuda" else "light"

    def mixing_for(self, encoder: WordEncoder) -> float:
        """λ as a number: the one given, or the usual one of an encoder; "auto" is an error here."""
        if self.mixing == "auto":
            raise BilexError(
                "λ = auto is chosen on held-out seeds by Translator.fit; give a number or prior here."
            )
        if self.mixing == "prior":
            return prior_mixing(encoder.preset, self.preset_in_force)
        return float(self.mixing)

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
        return replace(usual, seed=usual.seed + (self.random_seed or 0))
