"""The settings of stage C2: how each encoder reads words and is tuned; and what the stage reports.

The settings are the paper's where it names the encoder; for encoders trained with mean pooling they
are the paper's settings for mBERT with that pooling.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bilex.core.errors import BilexError
from bilex.core.files import read_json
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import as_json

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder

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
    """How an encoder reads and is tuned, and its λ where none is given and few seeds could choose it."""

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


def lightened(settings: TuningSettings, preset: TuningPreset) -> TuningSettings:
    """Tuning settings for machines without a GPU; research/language_model.md measures what they lose.

    "paper" leaves them as they are; "light" takes minutes on two cores (fewer negatives, epochs and pairs,
    smaller batches with a greater learning rate); "demo" takes seconds (1,000 pairs, once, with no negatives
    but each other).
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
    if known is not None or folder is None:
        return known or EncoderPreset()
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
        raise BilexError(f"{path}: is not a configuration; fetch the model folder again.")
    return content


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
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "lm"}
        changed = [f"{name}={value!r}" for name, value in values.items() if value != getattr(C2, name)]
        return f"C2({', '.join([repr(self.open_encoder or str(self.lm)), *changed])})"

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments as plain data; `C2.from_settings` takes them."""
        plain = asdict(replace(self, lm=str(self.lm)))
        return {**plain, "cache": None if self.cache is None else str(self.cache)}

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
            raise BilexError(f"these are not settings of stage C2 ({error}).") from error

    @property
    def preset_in_force(self) -> TuningPreset:
        """`preset`, with "auto" decided."""
        if self.preset != "auto":
            return self.preset
        from bilex.core.device import resolve_device

        device = self.open_encoder.device if self.open_encoder else resolve_device(self.device)
        return "paper" if self.tuning is not None or device.type == "cuda" else "light"

    def mixing_for(self, encoder: WordEncoder) -> float:
        """λ as a number: the one given, or the usual one of an encoder; "auto" is an error here."""
        if self.mixing == "auto":
            raise BilexError(
                "λ = auto is chosen on held-out seeds by Translator.fit; give a number or prior here."
            )
        if self.mixing != "prior":
            return float(self.mixing)
        usual = encoder.preset.mixing
        return usual if self.preset_in_force == "paper" else min(usual, LIGHT_MIXING)

    @property
    def open_encoder(self) -> WordEncoder | None:
        """The encoder, if it was given open."""
        return None if isinstance(self.lm, str | Path) else self.lm

    def open(self, progress: Progress = SILENT) -> WordEncoder:
        """The encoder, fresh; tuning it changes no other."""
        if not isinstance(self.lm, str | Path):
            return self.lm.copy()
        from bilex.encoders.model import WordEncoder

        with progress.task("Opening the language model"):
            return WordEncoder.load(self.lm, device=self.device, progress=progress)

    def settings_for(self, encoder: WordEncoder) -> TuningSettings:
        """The tuning settings in force for an encoder."""
        if self.tuning is not None:
            return self.tuning
        usual = lightened(encoder.preset.tuning, self.preset_in_force)
        return replace(usual, seed=usual.seed + (self.random_seed or 0))


@dataclass(kw_only=True)
class StageReport:
    """How an encoder was tuned and combined with an aligner's space.

    Attributes:
        lm: The language model as it was asked for.
        encoder: What it is called.
        preset: How it was tuned: "paper", "light" or "demo".
        tuned: Whether it was tuned at all.
        aligner: The method whose space it was combined with.
        mixing: λ, the weight of the encoder.
        pairs: Word pairs that it was tuned on.
        seed_pairs: Of these, seeds.
        induced_pairs: Of these, pairs found in the aligner's space.
        unreadable_words: Words that its tokenizer turns into nothing.
        unreadable_pairs: Pairs left out because of such words.
        tuning: The settings of the tuning; None if there was none.
        arithmetic: In which precision it was tuned.
        losses: The mean loss of each epoch.
        warnings: Sentences about anything unusual.

    `seconds` is the time for all, `tokenise_seconds` and so on that for the parts.
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

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return as_json(self)
