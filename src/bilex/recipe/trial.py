"""Confidences from a second, smaller fit that has not seen some of the seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from bilex.aligners.base import Aligner
from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.progress import SILENT, Progress
from bilex.recipe.calibration import FEWEST_WORDS, Calibration, calibrate
from bilex.recipe.expectation import Expectation, from_calibration, from_few_seeds
from bilex.recipe.small import small_vocabularies
from bilex.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.settings import StageC2
    from bilex.encoders.stage import StageResult

_VOCABULARY = 20_000
_HELD_OUT_AT_LEAST = 200
_HELD_OUT_SHARE = 5
_FEWEST_TO_PREDICT = 3
_FEW_SEEDS_VOCABULARY = 5_000


def trial_calibration(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: StageC2 | None,
    made: StageResult | None,
    share: float,
    progress: Progress,
) -> Calibration:
    """Confidences from a second, smaller fit without some seeds, or from the trial that chose λ."""
    trial = made.trial if made else None
    if trial is not None:
        return calibrate(
            Space(trial.source, trial.target, "cosine", aligner.device), trial.held_out, aligner.seed
        )
    fixed = None
    if stage is not None and made is not None:
        fixed = replace(stage, mixing=made.combination.mixing, preset=stage.preset_in_force, cache=None)
    refit = refitter(aligner, source, target, fixed, progress)
    return calibrate_held_out(refit, source, target, lexicon, share, aligner.seed, progress)


def expectation_of(
    calibration: Calibration,
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    progress: Progress,
    measured: bool,
) -> Expectation:
    """What held-out seeds say; where they are too few for confidences, what the seeds say of each other."""
    found = from_calibration(calibration)
    if found.measured or not measured or lexicon is None:
        return found
    usable = lexicon.covered(source.key_to_index, target.key_to_index)
    if len(usable.golds()) < _FEWEST_TO_PREDICT:
        return found
    refit = refitter(aligner, source, target, None, SILENT, _FEW_SEEDS_VOCABULARY)
    return from_few_seeds(refit, usable, aligner.seed, progress)


def refitter(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    stage: StageC2 | None,
    progress: Progress,
    vocabulary: int = _VOCABULARY,
) -> Callable[[Lexicon, Lexicon], Space]:
    """How to make, with the same method, a space that has not seen some pairs.

    To be cheap the method learns on the most frequent words of each language, 20,000 unless told otherwise,
    and those of the seeds; its maps are then applied to the whole vocabularies. For methods that use nothing
    but the seeds' vectors (Procrustes, the advanced mapping) that changes nothing. With stage C2 the space
    itself stays that small, since encoding every word a second time would cost too much.

    Returns:
        A function from the pairs to learn from and the pairs held out to a space.
    """

    def make(learned: Lexicon, held_out: Lexicon) -> Space:
        again = aligner.again()
        both = Lexicon([*learned.pairs, *held_out.pairs])
        small = small_vocabularies(source, target, both, vocabulary)
        again.fit(*small, learned, progress=progress)
        if stage is None:
            return Space.from_aligner(again, source, target)
        from bilex.encoders.stage import run_stage_c2

        result = run_stage_c2(again, *small, learned, stage, progress=progress)
        return Space(result.source, result.target, "cosine", aligner.device)

    return make


def calibrate_held_out(
    make_space: Callable[[Lexicon, Lexicon], Space],
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    share: float,
    seed: int,
    progress: Progress,
) -> Calibration:
    """Learn confidences on seed pairs that a second, otherwise equal space has not seen.

    Args:
        make_space: From the pairs to learn from and the pairs held out to a space.
        source: The source vocabulary.
        target: The target vocabulary.
        lexicon: All seed pairs.
        share: The share of source words to hold out; at least 200 words, but never more than a fifth.
        seed: Fixes the draw.
        progress: Who is told how far the work is.
    """
    usable = lexicon.covered(source.key_to_index, target.key_to_index) if lexicon is not None else Lexicon([])
    words = len(usable.golds())
    count = max(round(share * words), min(_HELD_OUT_AT_LEAST, words // _HELD_OUT_SHARE))
    if count < FEWEST_WORDS:
        note = (
            f"not calibrated: confidences need {FEWEST_WORDS * _HELD_OUT_SHARE} seed words that are in the "
            f"vectors, and there are {words}"
        )
        progress.say(f"Confidences: {note}.")
        return Calibration(note=note)
    learned, held_out = usable.split(count, seed)
    progress.say(f"Confidences: the method is fitted once more without {count} held-out seed words.")
    try:
        return calibrate(make_space(learned, held_out), held_out, seed)
    except BilexError as error:
        note = f"not calibrated: the method cannot learn without the held-out pairs ({error})"
        progress.say(f"Confidences: {note}.")
        return Calibration(note=note)
