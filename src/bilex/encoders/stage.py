"""Stage C2 from end to end: tune an encoder in an aligner's space, encode, combine."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bilex.aligners.base import Aligner, Pairs
from bilex.encoders.card import card_text
from bilex.encoders.combine import Both, Combination, aligned_views, unit_rows
from bilex.encoders.encodings import encode_cached
from bilex.encoders.mixing import MixingChoice, choose_mixing, split_seeds
from bilex.encoders.model import WordEncoder
from bilex.encoders.pairs import ENOUGH_SEEDS, TrainingPairs, training_pairs
from bilex.encoders.presets import DEFAULT_MIXING, LIGHT_MIXING, TuningSettings
from bilex.encoders.processes import join_processes
from bilex.encoders.settings import StageC2
from bilex.encoders.tokens import TokenTable
from bilex.encoders.tuning import Pace, Tuner
from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.progress import SILENT, Progress, duration
from bilex.vectors import WordVectors

__all__ = ["StageC2", "StageResult", "Trial", "run_stage_c2"]

FEWEST_PAIRS = 2
_TRIAL_VOCABULARY = 20_000
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
        target: The target vocabulary likewise.
        report: Pairs, losses, λ, seconds, warnings.
        trial: The combined vocabularies and held-out pairs of the run that chose λ, where there was one.
    """

    encoder: WordEncoder
    combination: Combination
    static: Both
    encoded: Both
    source: WordVectors
    target: WordVectors
    report: dict[str, Any] = field(default_factory=dict)
    trial: Trial | None = None

    def mixed(self, mixing: float) -> tuple[WordVectors, WordVectors]:
        """Both vocabularies with another λ; nothing is tuned or encoded again."""
        words = (self.source.index_to_key, self.target.index_to_key)
        return self.combination.with_mixing(mixing).vocabularies(words, self.static, self.encoded)

    def save_encoder(self, folder: str | Path) -> None:
        """Write the tuned encoder, with its card, as a Hugging Face model folder."""
        self.encoder.save(folder, card_text(self.encoder, self.report))


@dataclass(eq=False)
class Trial:
    """A run without some of the seeds: what λ was chosen on, and confidences can be learned on."""

    source: WordVectors
    target: WordVectors
    held_out: Lexicon
    choice: MixingChoice


def run_stage_c2(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: StageC2 | None = None,
    *,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
) -> StageResult:
    """Tune an encoder in the space of a fitted aligner, and combine the two (C2(Mod) for any Mod).

    Args:
        aligner: A fitted aligner of any method.
        source: Source vectors as the aligner was given them.
        target: Target vectors likewise.
        lexicon: The seed pairs; None for an aligner without seeds.
        stage: The settings.
        progress: Who is told how far the work is.
        checkpoint: A folder where tuning keeps its state, to go on after an interruption, and where the
            encodings are kept: a second run with another λ neither tunes nor encodes again.

    Returns:
        The tuned encoder and both vocabularies in the combined space.

    Raises:
        BilexError: The encoder cannot be had, or there are too few pairs.
    """
    stage = stage or StageC2()
    started = time.monotonic()
    join_processes()
    encoder = stage.open(progress)
    settings = stage.settings_for(encoder)
    trial = None
    trial_started = time.monotonic()
    if stage.chooses:
        trial = _trial(aligner, source, target, lexicon, stage, settings, progress)
    trial_seconds = time.monotonic() - trial_started
    mixing = _mixing(stage, encoder, trial)
    run = _Run(source, target, aligned_views(aligner, source, target), encoder, stage, settings, progress)
    seeds = _seeds(lexicon, source, target)
    result = run.complete(seeds, _rejected(lexicon, source, target), mixing, checkpoint)
    result.trial = trial
    if trial is not None:
        result.report["mixing_scores"] = trial.choice.scores
    result.report["aligner"] = aligner.name
    result.report["trial_seconds"] = round(trial_seconds, 2)
    result.report["seconds"] = round(time.monotonic() - started, 2)
    return result


def _mixing(stage: StageC2, encoder: WordEncoder, trial: Trial | None) -> float:
    if trial is not None:
        return trial.choice.mixing
    given = DEFAULT_MIXING if stage.mixing is None and stage.preset_in_force == "paper" else stage.mixing
    if isinstance(given, float | int):
        return float(given)
    if stage.preset_in_force != "paper":
        return min(encoder.preset.mixing, LIGHT_MIXING)
    return encoder.preset.mixing


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
        stage: StageC2,
        settings: TuningSettings,
        progress: Progress,
    ) -> None:
        self.source, self.target = source, target
        self.static = static
        self.encoder = encoder
        self.stage = stage
        self.settings = settings
        self.progress = progress
        self.report: dict[str, Any] = {"encoder": encoder.name, "tuned": stage.tune}

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
        self.report["tokenise_seconds"] = round(time.monotonic() - started, 2)
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
        self.report["encode_seconds"] = round(time.monotonic() - started, 2)
        started = time.monotonic()
        combination = Combination.fit(self.static, encoded, pairs.positives, mixing)
        source, target = combination.vocabularies(words, self.static, encoded)
        self.report["combine_seconds"] = round(time.monotonic() - started, 2)
        self.report.update(
            pairs=len(pairs), seed_pairs=pairs.seeds, induced_pairs=len(pairs) - pairs.seeds, mixing=mixing
        )
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
        self.report.update(
            tuning=asdict(self.settings),
            arithmetic=str(tuner.dtype).removeprefix("torch."),
            losses=done.losses,
            warnings=done.warnings,
            unreadable_pairs=done.dropped,
            replayed_updates=done.replayed,
            tune_seconds=round(time.monotonic() - started, 2),
        )

    def _lightened_unasked(self) -> bool:
        return self.stage.preset == "auto" and self.stage.preset_in_force == "light"

    def _tell_light(self, pairs: TrainingPairs, tokens: list[TokenTable], pace: Pace) -> None:
        """Say that and how the tuning is light, and what is left to wait for."""
        words = sum(int(table.lengths.sum()) for table in tokens)
        self.progress.say(
            f"No GPU here, so the light tuning of {self.encoder.name} is taken ({len(pairs):,} pairs, "
            f"{self.settings.negatives} negatives a side, {self.settings.epochs} epochs): about "
            f"{duration(pace.seconds)}, and {duration(pace.a_token * words * _FORWARD_SHARE)} to encode all "
            "words; --tuning paper is the paper's."
        )

    def _tell_unreadable(self, words: tuple[list[str], list[str]], tokens: list[TokenTable]) -> None:
        empty = [
            side[row]
            for side, table in zip(words, tokens, strict=True)
            for row in np.flatnonzero(table.lengths == 0)
        ]
        self.report["unreadable_words"] = len(empty)
        if empty:
            self.progress.say(
                f"The tokenizer of {self.encoder.name} turns {len(empty)} words into nothing (the first is "
                f"'{empty[0]}'): they keep their static vectors alone."
            )


def _trial(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: StageC2,
    settings: TuningSettings,
    progress: Progress,
) -> Trial | None:
    """Fit aligner and encoder without a fifth of the seed words, and choose λ on those.

    To be cheap the trial knows the 20,000 most frequent words of each language and those of the seeds.
    """
    covered = (
        lexicon.covered(source.key_to_index, target.key_to_index) if lexicon is not None else Lexicon([])
    )
    split = split_seeds(covered, settings.seed)
    if split is None:
        progress.say(
            f"λ: {len(covered)} seed pairs are too few to hold some out, so the encoder's usual λ is taken."
        )
        return None
    learned, held_out = split
    progress.say(f"λ: both stages are fitted once more without {len(held_out)} held-out seed pairs.")
    small_source = _frequent_and(source, {a for a, _ in covered.pairs})
    small_target = _frequent_and(target, {b for _, b in covered.pairs})
    again = aligner.again()
    again.fit(small_source, small_target, learned, progress=progress)
    if len(covered) >= ENOUGH_SEEDS:
        settings = replace(settings, induced=0)
    encoder = stage.open(progress)
    static = aligned_views(again, small_source, small_target)
    unannounced = replace(stage, cache=None, preset=stage.preset_in_force)
    run = _Run(small_source, small_target, static, encoder, unannounced, settings, progress)
    words = (small_source, small_target)
    result = run.complete(_seeds(learned, *words), _rejected(lexicon, *words), 0.5, None)
    choice = choose_mixing(
        result.combination,
        result.static,
        result.encoded,
        _seeds(held_out, small_source, small_target),
        device=stage.device,
        progress=progress,
    )
    progress.say(f"λ = {choice.mixing} translates the held-out words best.")
    return Trial(*result.mixed(choice.mixing), held_out, choice)


def _frequent_and(words: WordVectors, wanted: set[str]) -> WordVectors:
    """The most frequent words and those of `wanted`, in order of frequency."""
    rows = np.array(
        [i for i, word in enumerate(words.index_to_key) if i < _TRIAL_VOCABULARY or word in wanted], np.int64
    )
    if len(rows) == len(words):
        return words
    return WordVectors(
        [words.index_to_key[i] for i in rows], np.asarray(words.vectors[rows]), words.preprocessing
    )
