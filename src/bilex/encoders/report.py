"""What stage C2 says about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bilex.core.typed_json import as_json
from bilex.encoders.presets import TuningSettings


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
        replayed_updates: Updates that a GPU replayed as a whole.
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
    replayed_updates: int = 0
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
