"""From vectors of several languages and dictionaries of some pairs to a model with confidences."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.many.core import ManyLanguages
from bilex.many.jointly import FREQUENT, ROUNDS, fit_jointly
from bilex.many.mapping import Two, check_connected
from bilex.many.provenance import ManyProvenance
from bilex.progress import SILENT, Progress
from bilex.recipe.calibration import FEWEST_WORDS, Calibration, calibrate
from bilex.space import Space, map_words
from bilex.vectors import WordVectors

SUMMARY = "all languages aligned together: joint advanced mapping and mutual pairs of every two"
_HELD_OUT_SHARE = 0.1
_HELD_OUT_AT_LEAST = 200
_NEVER_MORE_THAN = 5
Word = tuple[str, str]


def align_languages(
    vocabularies: Mapping[str, WordVectors],
    seeds: Mapping[Two, Lexicon],
    *,
    rounds: int = ROUNDS,
    frequent: int = FREQUENT,
    calibrated: bool = True,
    lowercase: bool = True,
    device: str = "auto",
    seed: int = 0,
    progress: Progress = SILENT,
) -> ManyLanguages:
    """Align several languages together.

    Args:
        vocabularies: The vectors of each language, by its code, as they came from their files.
        seeds: Word pairs by two languages, the first language's word first; the pairs connect all languages.
        rounds: How often new pairs are found and the maps are learned again.
        frequent: How many of the most frequent words of each language look for new pairs.
        calibrated: Whether to learn confidences on held-out seeds, which takes a second fit.
        lowercase: Whether the vocabularies were lower-cased when they were read.
        device: Where searches run.
        seed: Fixes which seeds are held out.
        progress: Shows how far the work is.

    Raises:
        BilexError: The seeds do not connect all languages.
    """
    usable = {
        (a, b): lexicon.covered(vocabularies[a].key_to_index, vocabularies[b].key_to_index)
        for (a, b), lexicon in seeds.items()
    }
    check_connected(list(vocabularies), [two for two, lexicon in usable.items() if len(lexicon)])
    started = time.monotonic()
    options: dict[str, Any] = {"rounds": rounds, "frequent": frequent, "device": device, "progress": progress}
    fit = fit_jointly(vocabularies, usable, **options)
    seconds = time.monotonic() - started
    many = ManyLanguages(
        {code: map_words(words, fit.maps[code]) for code, words in vocabularies.items()},
        fit.maps,
        dict(seeds),
        {},
        {code: words.subwords for code, words in vocabularies.items() if words.subwords is not None},
        ManyProvenance(
            method="joint",
            method_summary=SUMMARY,
            settings={"rounds": rounds, "frequent": frequent, "seed": seed},
            report=fit.report,
            fit_seconds=round(seconds, 2),
            files={
                code: words.report.source if words.report else None for code, words in vocabularies.items()
            },
            dimensions={code: words.dim for code, words in vocabularies.items()},
        ),
        lowercase,
        device,
    )
    if calibrated:
        many.calibrations.update(_calibrations(vocabularies, usable, options, seed))
    return many


def _calibrations(
    vocabularies: Mapping[str, WordVectors], seeds: Mapping[Two, Lexicon], options: dict[str, Any], seed: int
) -> dict[Two, Calibration]:
    """Confidences from a second fit of all languages that has not seen some words of each dictionary."""
    learned, held_out = split_together(seeds, seed)
    options["progress"].say("Confidences: all languages are aligned once more without held-out seed words.")
    try:
        fit = fit_jointly(vocabularies, learned, **options)
    except BilexError as error:
        note = f"not calibrated: the languages cannot be aligned without the held-out pairs ({error})"
        return {two: Calibration(note=note) for two in seeds}
    mapped = {code: map_words(words, fit.maps[code]) for code, words in vocabularies.items()}
    return {
        (a, b): calibrate(Space(mapped[a], mapped[b], "cosine", options["device"]), pairs, seed)
        for (a, b), pairs in held_out.items()
    }


def split_together(
    seeds: Mapping[Two, Lexicon], seed: int = 0
) -> tuple[dict[Two, Lexicon], dict[Two, Lexicon]]:
    """Cut the dictionaries of several languages in two lists each, so that no held-out word is learned from.

    Dictionaries of different languages often translate the same words, so that a pair that is held out of one
    could be found through two others. Words are drawn with all their translations in all languages: a pair is
    held out if both its words were drawn, learned from if neither was, and in neither list otherwise.

    Args:
        seeds: The dictionaries.
        seed: Fixes the draw.

    Returns:
        The dictionaries to learn from, and those held out; of each a tenth of the source words, at least 200
        but never more than a fifth.
    """
    translations: dict[Word, set[Word]] = {}
    for (a, b), lexicon in seeds.items():
        for source, target in lexicon.pairs:
            translations.setdefault((a, source), set()).add((b, target))
            translations.setdefault((b, target), set()).add((a, source))
    drawn: set[Word] = set()
    dice = random.Random(seed)
    for (a, b), lexicon in seeds.items():
        golds = lexicon.golds()
        few = min(_HELD_OUT_AT_LEAST, len(golds) // _NEVER_MORE_THAN)
        wanted = max(round(_HELD_OUT_SHARE * len(golds)), few)
        if wanted < FEWEST_WORDS:
            continue
        held = {word for word in golds if (a, word) in drawn and any((b, t) in drawn for t in golds[word])}
        others = sorted(set(golds) - held)
        for word in dice.sample(others, max(0, wanted - len(held))):
            drawn.add((a, word))
            drawn.update(translations[a, word])
    learned, held_out = {}, {}
    for (a, b), lexicon in seeds.items():
        ends = [((a, source) in drawn, (b, target) in drawn) for source, target in lexicon.pairs]
        pairs = list(zip(lexicon.pairs, ends, strict=True))
        learned[a, b] = Lexicon(
            [pair for pair, end in pairs if not any(end)], lexicon.name, rejected=lexicon.rejected
        )
        held_out[a, b] = Lexicon([pair for pair, end in pairs if all(end)], lexicon.name)
    return learned, held_out
