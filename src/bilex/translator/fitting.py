"""From two vocabularies and seed pairs to a translator with confidences."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

import bilex
from bilex.aligners.base import Aligner
from bilex.aligners.maps import Map
from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.progress import Progress
from bilex.space import Space
from bilex.translator.calibration import FEWEST_WORDS, Calibration, calibrate
from bilex.translator.core import Translator
from bilex.translator.subwords import FromSubwords
from bilex.translator.unknown import OutOfVocabulary, Side
from bilex.vectors import Subwords, WordVectors

CALIBRATION_VOCABULARY = 20_000
_HELD_OUT_AT_LEAST = 200
_HELD_OUT_SHARE = 5


def fit_translator(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    *,
    calibrated: bool,
    held_out: float,
    lowercase: bool,
    progress: Progress,
    checkpoint: Path | None,
) -> Translator:
    """Fit the aligner on all seeds, map both vocabularies, and learn confidences on held-out seeds.

    The arguments are those of `Translator.fit`.
    """
    started = time.monotonic()
    aligner.fit(source, target, lexicon, progress=progress, checkpoint=checkpoint)
    fit_seconds = time.monotonic() - started
    with progress.task("map and measure neighbourhoods", 2) as task:
        space = Space.from_aligner(aligner, source, target)
        task.advance()
        space.neighbourhoods()
        task.advance()
    calibration = Calibration(note="not calibrated: it was switched off")
    if calibrated:
        refit = aligner_without(aligner, source, target, progress)
        calibration = calibrate_held_out(refit, source, target, lexicon, held_out, aligner.seed, progress)
    seeds = lexicon if lexicon is not None else Lexicon([], "no seeds")
    return Translator(
        space,
        aligner.source_map_,
        aligner.target_map_,
        calibration,
        _subword_sources(aligner, source, target),
        seeds,
        describe(aligner, source, target, seeds, fit_seconds),
        lowercase,
    )


def aligner_without(
    aligner: Aligner, source: WordVectors, target: WordVectors, progress: Progress
) -> Callable[[Lexicon, Lexicon], Space]:
    """How to make, with the same method, a space that has not seen some pairs.

    To be cheap the method learns on the 20,000 most frequent words of each language and those of the
    seeds; its maps are then applied to the whole vocabularies. For methods that use nothing but the
    seeds' vectors (Procrustes, the advanced mapping) that changes nothing.

    Returns:
        A function from the pairs to learn from and the pairs held out to a space.
    """

    def make(learned: Lexicon, held_out: Lexicon) -> Space:
        again = type(aligner)(**aligner.settings())
        pairs = [*learned.pairs, *held_out.pairs]
        small_source = _frequent_and(source, {a for a, _ in pairs})
        small_target = _frequent_and(target, {b for _, b in pairs})
        again.fit(small_source, small_target, learned, progress=progress)
        return Space.from_aligner(again, source, target)

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
        share: The share of source words to hold out; at least 200 words or a fifth, whichever is less.
        seed: Fixes the draw.
        progress: Who is told how far the work is.
    """
    if not 0 < share < 1:
        raise BilexError(f"a share of {share} of the seeds cannot be held out; give one between 0 and 1.")
    usable = lexicon.covered(source.key_to_index, target.key_to_index) if lexicon is not None else Lexicon([])
    words = len(usable.golds())
    count = max(round(share * words), min(_HELD_OUT_AT_LEAST, words // _HELD_OUT_SHARE))
    if count < FEWEST_WORDS:
        note = (
            f"not calibrated: {words} seed words are too few to hold {FEWEST_WORDS} of them out; "
            f"{FEWEST_WORDS * _HELD_OUT_SHARE} would do"
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
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _frequent_and(words: WordVectors, extra: set[str]) -> WordVectors:
    """The most frequent words and some others, in order of frequency."""
    beyond = (words.key_to_index[word] for word in extra if word in words)
    chosen = sorted({*range(min(CALIBRATION_VOCABULARY, len(words))), *beyond})
    if len(chosen) == len(words):
        return words
    return WordVectors(
        [words.index_to_key[row] for row in chosen],
        np.asarray(words.vectors[np.array(chosen)]),
        words.preprocessing,
    )


def _subword_sources(aligner: Aligner, source: WordVectors, target: WordVectors) -> list[OutOfVocabulary]:
    """The n-grams of fastText as a source of vectors for unknown words, where a language has them."""
    given: dict[Side, Subwords | None] = {"source": source.subwords, "target": target.subwords}
    subwords = {side: ngrams for side, ngrams in given.items() if ngrams is not None}
    maps: dict[Side, Map] = {"source": aligner.source_map_, "target": aligner.target_map_}
    return [FromSubwords(subwords, maps)] if subwords else []
