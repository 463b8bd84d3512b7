"""Stage C2 from end to end: tune an encoder in an aligner's space, encode, combine."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bilex.aligners.base import Aligner, Pairs
from bilex.core.errors import BilexError
from bilex.core.locks import exclusive_lock
from bilex.core.progress import SILENT, Progress, duration
from bilex.encoders.combine import Both, Combination, aligned_views, unit_rows
from bilex.encoders.model import WordEncoder, encode_cached
from bilex.encoders.pairs import TrainingPairs, training_pairs
from bilex.encoders.presets import TuningSettings
from bilex.encoders.report import StageReport
from bilex.encoders.settings import C2
from bilex.encoders.tokens import TokenTable
from bilex.encoders.tuning import Pace, Tuner
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

__all__ = ["C2", "StageReport", "StageResult", "run_stage_c2"]

FEWEST_PAIRS = 2
_FORWARD_SHARE = 1 / 3  # of the products of an update


@dataclass(eq=False)
class StageResult:
    """What stage C2 yields.

    Args:
        encoder: The tuned encoder.
        combination: How static vectors and the encoder's become one.
        static: Source and target vectors in the aligner's space, unit rows.
        encoded: Source and target vectors of the encoder, unit rows.
        source: The source vocabulary with its combined vectors.
        target: The target vocabulary.
        report: Pairs, losses, λ, seconds, warnings.
    """

    encoder: WordEncoder
    combination: Combination
    static: Both
    encoded: Both
    source: WordVectors
    target: WordVectors
    report: StageReport

    def mixed(self, mixing: float) -> tuple[WordVectors, WordVectors]:
        """Both vocabularies with another λ; nothing is tuned or encoded again."""
        words = (self.source.index_to_key, self.target.index_to_key)
        return self.combination.with_mixing(mixing).vocabularies(words, self.static, self.encoded)

    def save_encoder(self, folder: str | Path) -> None:
        """Write the tuned encoder, with its card, as a Hugging Face model folder."""
        self.encoder.save(folder, card_text(self.encoder, self.report))


def run_stage_c2(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: C2 | None = None,
    *,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
) -> StageResult:
    """Tune an encoder in the space of a fitted aligner, and combine the two (C2(Mod) for any Mod).

    Args:
        aligner: A fitted aligner of any method.
        source: Source vectors as the aligner was given them.
        target: Target vectors.
        lexicon: The seed pairs; None for an aligner without seeds.
        stage: The settings.
        progress: Receives how far the work is.
        checkpoint: A folder where tuning keeps its state, to go on after an interruption, and where the
            encodings are kept: a second run with another λ neither tunes nor encodes again.

    Returns:
        The tuned encoder and both vocabularies in the combined space.

    Raises:
        BilexError: The encoder cannot be had, or there are too few pairs.
    """
    with exclusive_lock(checkpoint):
        return _run_stage_c2(aligner, source, target, lexicon, stage or C2(), progress, checkpoint)


def _run_stage_c2(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: C2,
    progress: Progress,
    checkpoint: Path | None,
) -> StageResult:
    started = time.monotonic()
    encoder = stage.open(progress)
    mixing = stage.mixing_for(encoder)
    static = aligned_views(aligner, source, target)
    run = _Run(source, target, static, encoder, stage, stage.settings_for(encoder), progress)
    seeds = _seeds(lexicon, source, target)
    result = run.complete(seeds, _rejected(lexicon, source, target), mixing, checkpoint)
    result.report.aligner = aligner.name
    result.report.seconds = round(time.monotonic() - started, 2)
    return result


def _seeds(lexicon: Lexicon | None, source: WordVectors, target: WordVectors) -> Pairs:
    if lexicon is None:
        return np.zeros((0, 2), np.int64)
    return lexicon.index(source.key_to_index, target.key_to_index)


def _rejected(lexicon: Lexicon | None, source: WordVectors, target: WordVectors) -> Pairs:
    if lexicon is None:
        return np.zeros((0, 2), np.int64)
    return lexicon.rejected_index(source.key_to_index, target.key_to_index)


class _Run:
    """One pass of tuning, encoding and combining over given vocabularies."""

    def __init__(
        self,
        source: WordVectors,
        target: WordVectors,
        static: Both,
        encoder: WordEncoder,
        stage: C2,
        settings: TuningSettings,
        progress: Progress,
    ) -> None:
        self.source, self.target = source, target
        self.static = static
        self.encoder = encoder
        self.stage = stage
        self.settings = settings
        self.progress = progress
        self.report = StageReport(
            lm=str(stage.lm), encoder=encoder.name, preset=stage.preset_in_force, tuned=stage.tune
        )

    def complete(self, seeds: Pairs, rejected: Pairs, mixing: float, checkpoint: Path | None) -> StageResult:
        """Tune on the seeds (and what they induce), encode everything, combine with λ = `mixing`."""
        pairs = training_pairs(*self.static, seeds, self.settings, self.stage.device, rejected)
        if len(pairs) < FEWEST_PAIRS:
            raise BilexError(
                f"stage C2 has {len(pairs)} word pairs with both words in the vectors and needs at least "
                f"{FEWEST_PAIRS}; give a larger dictionary with --seeds."
            )
        words = (self.source.index_to_key, self.target.index_to_key)
        started = time.monotonic()
        tokens = [self.encoder.tokenise(side) for side in words]
        self._tell_unreadable(words, tokens)
        self.report.tokenise_seconds = round(time.monotonic() - started, 2)
        if self.stage.tune:
            self._tune(tokens, pairs, checkpoint / "tuning" if checkpoint else None)
        started = time.monotonic()
        raw = encode_cached(
            self.encoder,
            list(zip(words, tokens, strict=True)),
            self.stage.cache or (checkpoint / "encodings" if checkpoint else None),
            precision=self.settings.precision,
            progress=self.progress,
        )
        encoded = (unit_rows(raw[0]), unit_rows(raw[1]))
        self.report.encode_seconds = round(time.monotonic() - started, 2)
        started = time.monotonic()
        combination = Combination.fit(self.static, encoded, pairs.positives, mixing)
        source, target = combination.vocabularies(words, self.static, encoded)
        self.report.combine_seconds = round(time.monotonic() - started, 2)
        self.report.pairs = len(pairs)
        self.report.seed_pairs, self.report.induced_pairs = pairs.seeds, len(pairs) - pairs.seeds
        self.report.mixing = mixing
        return StageResult(self.encoder, combination, self.static, encoded, source, target, self.report)

    def _tune(self, tokens: list[TokenTable], pairs: TrainingPairs, checkpoint: Path | None) -> None:
        started = time.monotonic()
        tuner = Tuner(
            self.encoder,
            tokens[0],
            tokens[1],
            pairs,
            self.settings,
            progress=self.progress,
            checkpoint=checkpoint,
            on_pace=partial(self._tell_light, pairs, tokens) if self._lightened_unasked() else None,
        )
        done = tuner.run()
        report = self.report
        report.tuning = self.settings
        report.arithmetic = str(tuner.dtype).removeprefix("torch.")
        report.losses, report.warnings = done.losses, done.warnings
        report.unreadable_pairs, report.replayed_updates = done.dropped, done.replayed
        report.tune_seconds = round(time.monotonic() - started, 2)

    def _lightened_unasked(self) -> bool:
        return self.stage.preset == "auto" and self.stage.preset_in_force == "light"

    def _tell_light(self, pairs: TrainingPairs, tokens: list[TokenTable], pace: Pace) -> None:
        """Say that and how the tuning is light, and what is left to wait for."""
        words = sum(int(table.lengths.sum()) for table in tokens)
        self.progress.say(
            f"No GPU here, so the light tuning of {self.encoder.name} is taken ({len(pairs):,} pairs, "
            f"{self.settings.negatives} negatives per side, {self.settings.epochs} epochs): about "
            f"{duration(pace.seconds)}, and {duration(pace.a_token * words * _FORWARD_SHARE)} to encode all "
            "words; --tuning paper is the paper's."
        )

    def _tell_unreadable(self, words: tuple[list[str], list[str]], tokens: list[TokenTable]) -> None:
        empty = [
            side[row]
            for side, table in zip(words, tokens, strict=True)
            for row in np.flatnonzero(table.lengths == 0)
        ]
        self.report.unreadable_words = len(empty)
        if empty:
            self.progress.say(
                f"The tokenizer of {self.encoder.name} turns {len(empty)} words into nothing (the first is "
                f"'{empty[0]}'): they keep their static vectors alone."
            )


def card_text(encoder: WordEncoder, report: StageReport) -> str:
    """The README.md of a tuned encoder: what it is, how it was made, how it is used.

    Args:
        encoder: The tuned encoder.
        report: The report of its stage C2 run.
    """
    reading = encoder.preset.reading
    tuning = asdict(report.tuning) if report.tuning else {}
    losses = ", ".join(f"{loss:.4f}" for loss in report.losses)
    if losses:
        losses += f", computed in {report.arithmetic}"
    pooled = "the first token" if reading.pooling == "cls" else "the mean over all tokens"
    settings = "\n".join(f"| {name} | {value} |" for name, value in tuning.items())
    return f"""---
base_model: {encoder.name}
library_name: transformers
tags: [bilingual-lexicon-induction, word-translation]
---
# {encoder.name}, tuned for word translation

A language model tuned by bilex (stage C2 of Li et al., ACL 2022) on {report.pairs} word pairs,
{report.induced_pairs} of them induced, with hard negatives from the space of the aligner
`{report.aligner or "none"}`.

A word's vector is {pooled} in the last layer, from at most {reading.max_length} tokens, special ones
included, of the text `{reading.template.replace("{}", "word")}`.

Mean loss of each epoch: {losses or "not tuned"}.

| setting | value |
|---|---|
{settings}

```python
from bilex.encoders import WordEncoder
vectors = WordEncoder.load("THIS FOLDER").encode(["house", "talo"])
```
"""
