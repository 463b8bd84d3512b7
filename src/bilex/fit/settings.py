"""A recipe: all that decides a fit beside the data, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from bilex.core.errors import BilexError, nearest_name
from bilex.encoders.presets import Mixing, TuningPreset, TuningSettings, lightened

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.settings import StageC2

DEFAULT_METHOD = "c1"
_NOT_SETTINGS = ("device", "seed")  # of an aligner: a recipe has its own


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to make of two vocabularies and seed pairs.

    Args:
        method: The aligner, by name (`bilex methods`).
        settings: Settings of the aligner that differ from its defaults; for c1, "preset" is "auto", "paper",
            "best" or "quick", and "auto" leaves the form to the held-out trial.
        lm: The language model of stage C2: a hub name, a model folder or "e5-small-q4"; None for none.
        tune: Whether the language model is tuned; False combines it as it is.
        tuning: "paper", "light", "demo", or "auto", which is "light" without a GPU and "paper" with one.
        tuning_settings: The tuning in every detail, in the place of a preset.
        mixing: λ, the weight of the language model: a number from 0 to 1, "auto" for the trial's choice, or
            "prior" for the encoder's usual one.
        choose_form: Whether the trial may choose the form of an aligner that leaves it open; False fits the
            aligner as its settings say.
        calibrate: Whether confidences are learned in the trial.
        held_out: The share of the seeds' source words that the trial holds out; it takes more where that
            would be fewer than 200 words, but never more than a fifth.
        random_seed: Fixes all that is random.
        device: "auto", "cpu" or "cuda".

    Raises:
        BilexError: A value makes no sense.

    Examples:
        >>> recipe = Recipe(method="c1", settings={"preset": "paper"}, lm="e5-small-q4", mixing=0.4)
        >>> Recipe.from_json(recipe.to_json()) == recipe
        True
    """

    method: str = DEFAULT_METHOD
    settings: Mapping[str, Any] = field(default_factory=dict)
    lm: str | None = None
    tune: bool = True
    tuning: TuningPreset | Literal["auto"] = "auto"
    tuning_settings: TuningSettings | None = None
    mixing: Mixing | Literal["prior"] = "auto"
    choose_form: bool = True
    calibrate: bool = True
    held_out: float = 0.1
    random_seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        number = isinstance(self.mixing, float | int) and not isinstance(self.mixing, bool)
        if not (number and 0 <= float(self.mixing) <= 1) and self.mixing not in ("auto", "prior"):
            raise BilexError(f"λ is {self.mixing!r}; give a number from 0 to 1, auto or prior.")
        if not 0 < self.held_out < 1:
            raise BilexError(
                f"a share of {self.held_out} of the seeds cannot be held out; give one between 0 and 1."
            )
        if self.tuning != "auto":
            lightened(TuningSettings(), self.tuning)

    @classmethod
    def of(
        cls,
        aligner: Aligner,
        stage: StageC2 | None = None,
        *,
        calibrate: bool = True,
        held_out: float = 0.1,
    ) -> Recipe:
        """The recipe of an aligner and settings of stage C2 that were made by hand.

        Args:
            aligner: The method with its settings.
            stage: Settings of stage C2; None for none.
            calibrate: Whether confidences are learned.
            held_out: The share of the seeds that the trial holds out.
        """
        defaults = aligner.settings_fields()
        changed = {
            name: value
            for name, value in aligner.settings().items()
            if name not in _NOT_SETTINGS and value != defaults[name]
        }
        recipe = cls(
            method=aligner.name,
            settings=changed,
            calibrate=calibrate,
            held_out=held_out,
            random_seed=aligner.seed,
            device=aligner.device,
        )
        if stage is None:
            return recipe
        return replace(
            recipe,
            lm=str(stage.lm),
            tune=stage.tune,
            tuning=stage.preset,
            tuning_settings=stage.tuning,
            mixing="auto" if stage.mixing is None else stage.mixing,
        )

    def aligner(self) -> Aligner:
        """The aligner, not fitted yet.

        Raises:
            BilexError: The method or one of its settings is not known.
        """
        from bilex.aligners import get_method

        method = get_method(self.method)
        known = method.settings_fields()
        for name in self.settings:
            if name not in known:
                raise BilexError(
                    f"method '{self.method}' has no setting '{name}'; it has {', '.join(known)}."
                    f"{nearest_name(name, known)}"
                )
        return method(**{"device": self.device, "seed": self.random_seed, **self.settings})

    def stage(self, encoder: WordEncoder | None = None) -> StageC2 | None:
        """The settings of stage C2; None without a language model.

        Args:
            encoder: The language model, where it is open already.
        """
        if self.lm is None and encoder is None:
            return None
        from bilex.encoders.settings import StageC2

        return StageC2(
            lm=encoder if encoder is not None else str(self.lm),
            mixing=None if self.mixing == "prior" else self.mixing,
            tune=self.tune,
            tuning=self.tuning_settings,
            preset=self.tuning,
            device=self.device,
            random_seed=self.random_seed,
        )

    def as_dict(self) -> dict[str, Any]:
        """The recipe for JSON."""
        return {**asdict(self), "settings": dict(self.settings)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Recipe:
        """What `as_dict` gave.

        Raises:
            BilexError: It is no recipe, or one of a newer version.
        """
        known = {part.name for part in fields(cls)}
        unknown = sorted(set(stored) - known)
        if unknown:
            raise BilexError(
                f"a recipe has no entry '{unknown[0]}'; it has {', '.join(sorted(known))}."
                f"{nearest_name(unknown[0], known)}"
            )
        values = dict(stored)
        try:
            if values.get("tuning_settings") is not None:
                values["tuning_settings"] = TuningSettings(**values["tuning_settings"])
            return cls(**values)
        except TypeError as error:
            raise BilexError(f"this is no recipe ({error}); write it with Recipe.to_json.") from error

    def to_json(self) -> str:
        """The recipe as a JSON text."""
        return json.dumps(self.as_dict(), ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """What `to_json` gave.

        Raises:
            BilexError: It is no recipe.
        """
        try:
            stored = json.loads(text)
        except ValueError as error:
            raise BilexError(f"this is no recipe: it is no JSON ({error}).") from error
        if not isinstance(stored, dict):
            raise BilexError("this is no recipe: a recipe is a JSON object.")
        return cls.from_dict(stored)
