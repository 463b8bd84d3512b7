"""The settings of stage C2: how each encoder reads words and is tuned; and what the stage reports.

The settings are the paper's where it names the encoder; for encoders trained with mean pooling they
are the paper's settings for mBERT with that pooling.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bilex.core.errors import BilexError
from bilex.core.files import read_json
from bilex.core.progress import SILENT, Progress

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

Pooling = Literal["cls", "mean"]
Precision = Literal["auto", "float32", "bfloat16"]
TuningPreset = Literal["paper", "light", "demo"]
Mixing = float | Literal["auto", "prior"]

DEFAULT_ENCODER = "bert-base-multilingual-uncased"
OFFLINE_ENCODER = "e5-small-q4"
READING_FILE = "bilex_encoder.json"
DEFAULT_MIXING: Literal["auto"] = "auto"
# The greatest usual λ of an encoder that was tuned as in the demo (research/trial.md).
DEMO_MIXING = 0.35


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How an encoder reads a word.

    `pooling` is "cls", the last layer's first token, or "mean", the mean over all tokens of the word;
    `max_length` counts the tokens that are kept of a word, special ones included; in `template`, "{}" is the
    word (alone, as in the paper, by default).
    """

    pooling: Pooling = "cls"
    max_length: int = 6
    template: str = "{}"

    def __post_init__(self) -> None:
        if self.pooling not in ("cls", "mean"):
            raise BilexError(f"pooling '{self.pooling}' is not known; use cls or mean.")
        if self.max_length < 3:
            raise BilexError(
                f"a maximum length of {self.max_length} tokens is too short for a word; use 3 or more."
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
        dropout: Inside the encoder while it is tuned; None keeps the encoder's rate.
        precision: Of the products; "auto" takes the fastest of the device. Weights are always float32.
        max_pairs: Tune on at most this many pairs, the first of the dictionary; None for all.
        whole_batch: Whether all words of a batch are negatives of each pair too (the paper: no); such
            results depend on how a batch is divided over memory.
        seed: Random seed of shuffling and dropout.
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
    """How an encoder reads and is tuned, and its usual λ, used where too few seeds could choose it."""

    reading: Reading = field(default_factory=Reading)
    tuning: TuningSettings = field(default_factory=TuningSettings)
    mixing: float = 0.2


_E5 = EncoderPreset(reading=Reading(pooling="mean", max_length=10), mixing=0.4)
PRESETS: dict[str, EncoderPreset] = {
    "bert-base-multilingual-uncased": EncoderPreset(),
    "xlm-mlm-100-1280": EncoderPreset(tuning=TuningSettings(batch_size=50)),
    "google/mt5-small": EncoderPreset(
        reading=Reading(pooling="mean"), tuning=TuningSettings(learning_rate=6e-4, epochs=6)
    ),
    "xlm-roberta-base": EncoderPreset(),
    "sentence-transformers/LaBSE": EncoderPreset(),
    "intfloat/multilingual-e5-small": _E5,
    OFFLINE_ENCODER: _E5,
}


def lightened(settings: TuningSettings, preset: TuningPreset) -> TuningSettings:
    """Tuning settings for machines without a GPU; research/language_model.md measures what they lose.

    "paper" changes nothing; "light" takes minutes on two cores; "demo" takes seconds (1,000 pairs, once, with
    the words of the batch as the only negatives).
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
    """The preset of the encoder called `name`, or of the one stored in `folder`.

    A folder that bilex saved records how words are read; one of sentence-transformers records its pooling;
    any other encoder is read as the paper reads mBERT.
    """
    known = PRESETS.get(name) or PRESETS.get(name.replace("google-bert/", "").replace("FacebookAI/", ""))
    if known is not None or folder is None:
        return known or EncoderPreset()
    own, pooling = folder / READING_FILE, folder / "1_Pooling" / "config.json"
    found = own if own.is_file() else pooling
    if not found.is_file():
        return EncoderPreset()
    stored = read_json(found)
    try:
        if found == pooling:
            mean = bool(stored.get("pooling_mode_mean_tokens"))
            return EncoderPreset(reading=Reading(pooling="mean" if mean else "cls"))
        base = PRESETS.get(str(stored.pop("base", "")), EncoderPreset())
        return replace(base, reading=Reading(**stored))
    except (AttributeError, TypeError) as error:
        raise BilexError(
            f"{found}: does not say how words are read ({error}); save the model again."
        ) from error


@dataclass(frozen=True, repr=False)
class C2:
    """Settings of stage C2, which adds a language model; a fit never changes them.

    Args:
        lm: The language model: a hub name, a model folder, "e5-small-q4" (needs no hub), or an open
            `WordEncoder`, which is copied and stays unchanged.
        mixing: λ, the weight of the language model: a number from 0 to 1, "auto" for the choice of the
            held-out trial, or "prior" for the encoder's usual one.
        tune: Whether the encoder is tuned; False combines it as it is (the paper's ablation).
        tuning: The tuning in every detail; None takes the encoder's preset.
        preset: "paper", or "light" or "demo" for lighter tuning (`lightened`); "auto" is
            "light" on a machine without a GPU, unless `tuning` is given, and "paper" elsewhere.
        device: "auto", "cpu" or "cuda"; with "auto", `Translator.fit` takes the aligner's device.
        random_seed: Added to that of the tuning, unless `tuning` is given; None takes the aligner's.
        cache: A folder for the encodings of vocabularies; None keeps them with the checkpoint, if any.

    Raises:
        BilexError: λ or the preset is invalid.

    Examples:
        >>> C2("e5-small-q4", mixing=0.4)
        C2('e5-small-q4', mixing=0.4)
    """

    lm: str | Path | WordEncoder = DEFAULT_ENCODER
    _: KW_ONLY
    mixing: Mixing = DEFAULT_MIXING
    tune: bool = True
    tuning: TuningSettings | None = None
    preset: TuningPreset | Literal["auto"] = "auto"
    device: str = "auto"
    random_seed: int | None = None
    cache: Path | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.mixing, float | int) and not isinstance(self.mixing, bool)
        if not (number and 0 <= float(self.mixing) <= 1) and self.mixing not in ("auto", "prior"):
            raise BilexError(f"λ is {self.mixing!r}; give a number from 0 to 1, auto or prior.")
        if self.preset != "auto":
            lightened(TuningSettings(), self.preset)

    def __repr__(self) -> str:
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "lm"}
        changed = [f"{name}={value!r}" for name, value in values.items() if value != getattr(C2, name)]
        return f"C2({', '.join([repr(self.open_encoder or str(self.lm)), *changed])})"

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments as plain data; `C2.from_settings` takes them."""
        plain = asdict(replace(self, lm=str(self.lm)))
        return {**plain, "cache": None if self.cache is None else str(self.cache)}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> C2:
        """The settings that `settings` returned."""
        values = dict(settings)
        try:
            if values.get("tuning") is not None:
                values["tuning"] = TuningSettings(**values["tuning"])
            if values.get("cache") is not None:
                values["cache"] = Path(values["cache"])
            return cls(**values)
        except TypeError as error:
            raise BilexError(f"these are not settings of stage C2 ({error}).") from error

    @property
    def open_encoder(self) -> WordEncoder | None:
        """The encoder, if `lm` is an open one."""
        return None if isinstance(self.lm, str | Path) else self.lm

    def open(self, progress: Progress = SILENT) -> WordEncoder:
        """A new copy of the encoder, which may be tuned."""
        if not isinstance(self.lm, str | Path):
            return self.lm.copy()
        from bilex.encoders.model import WordEncoder

        with progress.task("Opening the language model"):
            return WordEncoder.load(self.lm, device=self.device, progress=progress)

    @property
    def resolved_preset(self) -> TuningPreset:
        """`preset`, with "auto" resolved."""
        if self.preset != "auto":
            return self.preset
        from bilex.core.device import resolve_device

        device = self.open_encoder.device if self.open_encoder else resolve_device(self.device)
        return "paper" if self.tuning is not None or device.type == "cuda" else "light"

    def settings_for(self, encoder: WordEncoder) -> TuningSettings:
        """The tuning settings of an encoder."""
        if self.tuning is not None:
            return self.tuning
        usual = lightened(encoder.preset.tuning, self.resolved_preset)
        return replace(usual, seed=usual.seed + (self.random_seed or 0))

    def mixing_for(self, encoder: WordEncoder) -> float:
        """λ as a number: the one given, or the usual one of an encoder; "auto" is an error here."""
        if self.mixing == "auto":
            raise BilexError(
                "λ = auto is chosen on held-out seeds by Translator.fit; give a number or prior here."
            )
        if self.mixing != "prior":
            return float(self.mixing)
        usual = encoder.preset.mixing
        return min(usual, DEMO_MIXING) if self.resolved_preset == "demo" else usual


@dataclass(kw_only=True)
class StageReport:
    """How an encoder was tuned and combined with an aligner's space.

    `lm` is the language model as the user named it, `aligner` the method whose space it was combined with,
    `mixing` λ, `losses` the mean loss of each epoch. Words that the tokenizer turns into nothing are
    unreadable, and so are their pairs, which are left out.
    """

    lm: str
    encoder: str
    preset: str
    tuned: bool
    aligner: str = ""
    mixing: float = 0.0
    pairs: int = 0
    seed_pairs: int = 0
    induced_pairs: int = 0
    unreadable_words: int = 0
    unreadable_pairs: int = 0
    tuning: TuningSettings | None = None
    arithmetic: str | None = None
    losses: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tokenise_seconds: float = 0.0
    tune_seconds: float = 0.0
    encode_seconds: float = 0.0
    combine_seconds: float = 0.0
    seconds: float = 0.0
