"""From two vocabularies and seed pairs to a translator with confidences."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import bilex
from bilex import arithmetic
from bilex.aligners.base import Aligner
from bilex.aligners.maps import Linear, Map, Unit
from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.machine import processor
from bilex.progress import SILENT, Progress
from bilex.space import Space
from bilex.translator.calibration import FEWEST_WORDS, Calibration, calibrate
from bilex.translator.core import Translator
from bilex.translator.expectation import Expectation, from_calibration, from_few_seeds
from bilex.translator.subwords import FromSubwords
from bilex.translator.unknown import OutOfVocabulary, Side
from bilex.vectors import Subwords, WordVectors

if TYPE_CHECKING:
    from bilex.encoders.stage import StageC2, StageResult

CALIBRATION_VOCABULARY = 20_000
_HELD_OUT_AT_LEAST = 200
_HELD_OUT_SHARE = 5
_FEWEST_TO_PREDICT = 3
_FEW_SEEDS_VOCABULARY = 5_000


@dataclass(eq=False)
class _Made:
    """A space, how to get into it, and what is to be remembered of its making."""

    space: Space
    maps: dict[Side, Map]
    unknown: list[OutOfVocabulary]
    stage: StageResult | None = None
    remembered: dict[str, Any] = field(default_factory=dict)


def fit_translator(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    *,
    stage: StageC2 | None,
    calibrated: bool,
    held_out: float,
    lowercase: bool,
    languages: tuple[str | None, str | None],
    progress: Progress,
    checkpoint: Path | None,
) -> Translator:
    """Fit the aligner on all seeds, map both vocabularies, and learn confidences on held-out seeds.

    The arguments are those of `Translator.fit`.
    """
    if not 0 < held_out < 1:
        raise BilexError(f"a share of {held_out} of the seeds cannot be held out; give one between 0 and 1.")
    started = time.monotonic()
    state = checkpoint / "aligner" if checkpoint else None
    aligner.fit(source, target, lexicon, progress=progress, checkpoint=state)
    fit_seconds = time.monotonic() - started
    if stage is None:
        made = _static_space(aligner, source, target)
    else:
        state = checkpoint / "encoder" if checkpoint else None
        made = _combined_space(aligner, source, target, lexicon, stage, progress, state)
    with progress.task("Measuring neighbourhoods") as task:
        made.space.neighbourhoods()
        task.advance()
    calibration = Calibration(note="not calibrated: it was switched off")
    if calibrated:
        calibration = _calibration(aligner, source, target, lexicon, stage, made, held_out, progress)
    made.remembered["expectation"] = _expectation(
        calibration, aligner, source, target, lexicon, progress, calibrated
    ).as_dict()
    made.remembered.update(
        {f"{side}_language": code for side, code in zip(("source", "target"), languages, strict=True)}
    )
    seeds = lexicon if lexicon is not None else Lexicon([], "no seeds")
    return Translator(
        made.space,
        made.maps["source"],
        made.maps["target"],
        calibration,
        made.unknown,
        seeds,
        {**describe(aligner, source, target, seeds, fit_seconds), **made.remembered},
        lowercase,
    )


def _static_space(aligner: Aligner, source: WordVectors, target: WordVectors) -> _Made:
    """The aligner's space; subwords, where a language has them, read unknown words."""
    maps: dict[Side, Map] = {"source": aligner.source_map_, "target": aligner.target_map_}
    subwords = _subwords(source, target, maps)
    return _Made(Space.from_aligner(aligner, source, target), maps, [subwords] if subwords else [])


def _combined_space(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: StageC2,
    progress: Progress,
    checkpoint: Path | None,
) -> _Made:
    """The space of stage C2, in which the encoder reads unknown words.

    The maps take static vectors into it; they know nothing of the encoder's part.
    """
    from bilex.encoders.stage import run_stage_c2
    from bilex.translator.encoder import FromEncoder

    result = run_stage_c2(aligner, source, target, lexicon, stage, progress=progress, checkpoint=checkpoint)
    onward = [Unit(), Linear(result.combination.static_map), Unit()]
    maps: dict[Side, Map] = {
        "source": Map([*aligner.source_map_.steps, *onward]),
        "target": Map([*aligner.target_map_.steps, *onward]),
    }
    reader = FromEncoder(
        lambda: result.encoder, result.combination, result.save_encoder, _subwords(source, target, maps)
    )
    space = Space(result.source, result.target, "cosine", aligner.device)
    remembered = {"language_model": {"lm": str(stage.lm), "preset": stage.preset_in_force, **result.report}}
    return _Made(space, maps, [reader], result, remembered)


def _subwords(source: WordVectors, target: WordVectors, maps: dict[Side, Map]) -> FromSubwords | None:
    """The n-grams of fastText as a source of vectors for unknown words, where a language has them."""
    given: dict[Side, Subwords | None] = {"source": source.subwords, "target": target.subwords}
    subwords = {side: ngrams for side, ngrams in given.items() if ngrams is not None}
    return FromSubwords(subwords, maps) if subwords else None


def _calibration(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: StageC2 | None,
    made: _Made,
    share: float,
    progress: Progress,
) -> Calibration:
    """Confidences from a second, smaller fit without some seeds, or from the trial that chose λ."""
    trial = made.stage.trial if made.stage else None
    if trial is not None:
        return calibrate(
            Space(trial.source, trial.target, "cosine", aligner.device), trial.held_out, aligner.seed
        )
    fixed = None
    if stage is not None and made.stage is not None:
        mixing = made.stage.combination.mixing
        fixed = replace(stage, mixing=mixing, preset=stage.preset_in_force, cache=None)
    refit = refitter(aligner, source, target, fixed, progress)
    return calibrate_held_out(refit, source, target, lexicon, share, aligner.seed, progress)


def _expectation(
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
    vocabulary: int = CALIBRATION_VOCABULARY,
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
        pairs = [*learned.pairs, *held_out.pairs]
        small_source = _frequent_and(source, {a for a, _ in pairs}, vocabulary)
        small_target = _frequent_and(target, {b for _, b in pairs}, vocabulary)
        again.fit(small_source, small_target, learned, progress=progress)
        if stage is None:
            return Space.from_aligner(again, source, target)
        return _combined_space(again, small_source, small_target, learned, stage, progress, None).space

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


def describe(
    aligner: Aligner, source: WordVectors, target: WordVectors, seeds: Lexicon, seconds: float
) -> dict[str, Any]:
    """What a model should remember about how it was made."""
    return {
        "method": aligner.name,
        "method_summary": aligner.summary,
        "settings": aligner.settings(),
        "report": aligner.report_,
        "fit_seconds": round(seconds, 2),
        "source_file": source.report.source if source.report else None,
        "target_file": target.report.source if target.report else None,
        "source_dim": source.dim,
        "target_dim": target.dim,
        "source_preprocessing": list(source.preprocessing),
        "target_preprocessing": list(target.preprocessing),
        "seeds": seeds.name,
        "seed_pairs": len(seeds),
        "seed_pairs_covered": len(seeds.index(source.key_to_index, target.key_to_index)),
        "bilex_version": bilex.__version__,
        "python_version": platform.python_version(),
        "processor": processor().name,
        "arithmetic": arithmetic.used(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _frequent_and(words: WordVectors, extra: set[str], frequent: int) -> WordVectors:
    """The most frequent words and some others, in order of frequency."""
    beyond = (words.key_to_index[word] for word in extra if word in words)
    chosen = sorted({*range(min(frequent, len(words))), *beyond})
    if len(chosen) == len(words):
        return words
    return WordVectors(
        [words.index_to_key[row] for row in chosen],
        np.asarray(words.vectors[np.array(chosen)]),
        words.preprocessing,
    )
