"""What is known about each encoder: how its words are read, and how it is tuned.

The settings are the paper's where it names the encoder; for encoders trained with mean pooling they
are the paper's settings for mBERT with that pooling.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bilex.core.errors import BilexError
from bilex.core.files import read_json

Pooling = Literal["cls", "mean"]
Precision = Literal["auto", "float32", "bfloat16"]
TuningPreset = Literal["paper", "light", "demo"]
Mixing = float | Literal["auto", "prior"]

DEFAULT_ENCODER = "bert-base-multilingual-uncased"
OFFLINE_ENCODER = "e5-small-q4"
READING_FILE = "bilex_encoder.json"

# λ where the user names none: "auto", the choice of the held-out trial (`bilex.fit`), or a number.
DEFAULT_MIXING: Literal["auto"] = "auto"
# The greatest usual λ of a lightly tuned encoder, best on held-out seeds (docs/guide/language-model.md).
LIGHT_MIXING = 0.3


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How an encoder reads a word.

    Args:
        pooling: "cls", the last layer's first token; or "mean", the mean over all tokens of the word.
        max_length: Tokens that are kept of a word, the special ones included.
        template: What the encoder is given; "{}" is the word itself, raw as in the paper.
    """

    pooling: Pooling = "cls"
    max_length: int = 6
    template: str = "{}"

    def __post_init__(self) -> None:
        if self.pooling not in ("cls", "mean"):
            raise BilexError(f"pooling '{self.pooling}' is not known; use cls or mean.")
        if self.max_length < 3:
            raise BilexError(
                f"a maximum length of {self.max_length} tokens leaves no room for a word; use 3 or more."
            )
        if self.template.count("{}") != 1:
            raise BilexError(f"template '{self.template}' must contain {{}} once, where the word goes.")


@dataclass(frozen=True, kw_only=True)
class TuningSettings:
    """How an encoder is tuned on word pairs (stage C2).

    Args:
        negatives: Hard negatives per side and pair (N_neg); 0 leaves those of the batch, with `whole_batch`.
        frequent: Negatives are taken from this many most frequent words of a language.
        induced: How many induced pairs join a small dictionary (N_aug).
        temperature: The τ of the loss.
        learning_rate: AdamW's, constant.
        weight_decay: AdamW's, on all parameters.
        epochs: Passes over the pairs.
        batch_size: Pairs per update.
        dropout: Inside the encoder while it is tuned; None leaves the encoder's own.
        precision: "auto" computes in what is fastest where it runs; the weights themselves always stay
            float32, and float16 is never used.
        max_pairs: Tune on at most so many pairs, the first of the dictionary; None for all.
        whole_batch: Whether all words of a batch are negatives of each pair besides its own (the paper:
            no); such results depend on how a batch is divided over memory and GPUs.
        seed: Of shuffling and dropout.
    """

    negatives: int = 28
    frequent: int = 60_000
    induced: int = 4_000
    temperature: float = 0.1
    learning_rate: float = 2e-5
    weight_decay: float = 0.01
    epochs: int = 5
    batch_size: int = 100
    dropout: float | None = 0.1
    precision: Precision = "auto"
    max_pairs: int | None = None
    whole_batch: bool = False
    seed: int = 33

    def __post_init__(self) -> None:
        for name, least in (("negatives", 0 if self.whole_batch else 1), ("epochs", 1), ("batch_size", 1)):
            if getattr(self, name) < least:
                raise BilexError(f"{name} is {getattr(self, name)}; stage C2 needs at least {least}.")
        if self.precision not in ("auto", "float32", "bfloat16"):
            raise BilexError(f"precision '{self.precision}' is not known; use auto, float32 or bfloat16.")


@dataclass(frozen=True, kw_only=True)
class EncoderPreset:
    """Everything that is known about one encoder.

    Args:
        reading: How it reads a word.
        tuning: How it is tuned.
        mixing: The λ of the combination, the weight of the encoder against the static vectors, where none is
            given and there are too few seeds to choose it.
    """

    reading: Reading = field(default_factory=Reading)
    tuning: TuningSettings = field(default_factory=TuningSettings)
    mixing: float = 0.2


_MEAN = Reading(pooling="mean")
_E5 = Reading(pooling="mean", max_length=10)
PRESETS: dict[str, EncoderPreset] = {
    "bert-base-multilingual-uncased": EncoderPreset(),
    "xlm-mlm-100-1280": EncoderPreset(tuning=TuningSettings(batch_size=50)),
    "google/mt5-small": EncoderPreset(reading=_MEAN, tuning=TuningSettings(learning_rate=6e-4, epochs=6)),
    "xlm-roberta-base": EncoderPreset(),
    "sentence-transformers/LaBSE": EncoderPreset(),
    "intfloat/multilingual-e5-small": EncoderPreset(reading=_E5, mixing=0.4),
    OFFLINE_ENCODER: EncoderPreset(reading=_E5, mixing=0.4),
}


def prior_mixing(preset: EncoderPreset, tuning: TuningPreset) -> float:
    """The usual λ of an encoder where no held-out seeds say otherwise; a lighter tuning gives it less."""
    return preset.mixing if tuning == "paper" else min(preset.mixing, LIGHT_MIXING)


def lightened(settings: TuningSettings, preset: TuningPreset) -> TuningSettings:
    """Tuning settings for machines without a GPU.

    What the lighter ones lose against the paper's is measured in docs/guide/language-model.md.

    Args:
        settings: The encoder's own settings.
        preset: "paper" leaves them as they are; "light" takes minutes on two cores (fewer negatives, epochs
            and pairs, smaller batches with a greater learning rate); "demo" takes seconds (1,000 pairs, once,
            with no negatives but each other).

    Raises:
        BilexError: The preset is not known.
    """
    if preset == "paper":
        return settings
    if preset not in ("light", "demo"):
        raise BilexError(f"preset '{preset}' is not known; use paper, light or demo.")
    light = replace(
        settings,
        negatives=min(settings.negatives, 8),
        epochs=min(settings.epochs, 2),
        batch_size=min(settings.batch_size, 50),
        learning_rate=2 * settings.learning_rate,
        max_pairs=5_000,
    )
    if preset == "light":
        return light
    return replace(
        light,
        negatives=0,
        epochs=1,
        learning_rate=4 * settings.learning_rate,
        dropout=0.0,
        max_pairs=1_000,
        whole_batch=True,
    )


def preset_for(name: str, folder: Path | None = None) -> EncoderPreset:
    """What is known about the encoder called `name`, or stored in `folder`.

    A folder that bilex saved says itself how its words are read; one of sentence-transformers says
    its pooling; any other encoder is read as the paper reads mBERT.
    """
    known = PRESETS.get(name) or PRESETS.get(name.replace("google-bert/", "").replace("FacebookAI/", ""))
    if known is not None:
        return known
    if folder is None:
        return EncoderPreset()
    own = folder / READING_FILE
    if own.is_file():
        stored = _read(own)
        base = PRESETS.get(str(stored.pop("base", "")), EncoderPreset())
        try:
            return replace(base, reading=Reading(**stored))
        except TypeError as error:
            raise BilexError(
                f"{own}: does not say how words are read ({error}); save the model again."
            ) from error
    pooling = folder / "1_Pooling" / "config.json"
    if pooling.is_file():
        wants_mean = bool(_read(pooling).get("pooling_mode_mean_tokens"))
        return EncoderPreset(reading=Reading(pooling="mean" if wants_mean else "cls"))
    return EncoderPreset()


def _read(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise BilexError(f"{path}: is no configuration; fetch the model folder again.")
    return content
