"""From vectors of several languages and dictionaries of some pairs to a model with confidences."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bilex.aligners.c1 import C1
from bilex.aligners.checkpoint import Checkpoint
from bilex.core.locks import exclusive_lock
from bilex.core.progress import SILENT, Progress
from bilex.lexicon import Lexicon
from bilex.model.many.core import ManyLanguages
from bilex.model.many.jointly import FREQUENT, fit_jointly, identity_of
from bilex.model.many.mapping import Two, check_connected
from bilex.model.many.trial import JointDecisions, decide
from bilex.model.provenance import ManyProvenance
from bilex.model.space import map_words
from bilex.vectors import WordVectors

SUMMARY = "all languages aligned together: C1 with one map a language, from the pairs of every two"


def align_languages(
    vocabularies: Mapping[str, WordVectors],
    seeds: Mapping[Two, Lexicon],
    c1: C1 | None = None,
    *,
    frequent: int = FREQUENT,
    calibrated: bool = True,
    lowercase: bool = True,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
) -> ManyLanguages:
    """Align several languages together.

    Args:
        vocabularies: The vectors of each language, by its code, as they came from their files.
        seeds: Word pairs by two languages, the first language's word first; the pairs connect all languages.
        c1: The settings of C1, for every two languages alike, with the device and the random seed; it is not
            fitted. None for the defaults, which leave the form to held-out seeds.
        frequent: How many of the most frequent words of each language take part in the fit; the maps hold for
            all words.
        calibrated: Whether to learn confidences on held-out seeds, in the trial that also chooses the form.
        lowercase: Whether the vocabularies were lower-cased when they were read.
        progress: Shows how far the work is.
        checkpoint: A folder where the state is kept; a run that was interrupted goes on from there.

    Raises:
        BilexError: The seeds do not connect all languages, or a setting makes no sense.
    """
    asked = c1 if c1 is not None else C1()
    usable = {
        (a, b): lexicon.covered(vocabularies[a].key_to_index, vocabularies[b].key_to_index)
        for (a, b), lexicon in seeds.items()
    }
    usable = {two: lexicon for two, lexicon in usable.items() if len(lexicon) or lexicon.rejected}
    check_connected(list(vocabularies), [two for two, lexicon in usable.items() if len(lexicon)])
    started = time.monotonic()
    options: dict[str, Any] = {"frequent": frequent, "progress": progress}
    with exclusive_lock(checkpoint):
        decisions = _decisions(vocabularies, usable, asked, calibrated, options, checkpoint)
        chosen = C1(**{**asked.settings(), **decisions.settings})
        rounds = None if checkpoint is None else checkpoint / "rounds"
        fit = fit_jointly(vocabularies, usable, chosen, checkpoint=rounds, **options)
    seconds = time.monotonic() - started
    changed = {name: value for name, value in chosen.settings().items() if name not in ("device", "start")}
    return ManyLanguages(
        {code: map_words(words, fit.maps[code]) for code, words in vocabularies.items()},
        fit.maps,
        dict(seeds),
        decisions.calibrations,
        {code: words.subwords for code, words in vocabularies.items() if words.subwords is not None},
        ManyProvenance(
            method="joint",
            method_summary=SUMMARY,
            settings={**changed, "frequent_words": frequent},
            report=replace(fit.report, trial=decisions.report),
            fit_seconds=round(seconds, 2),
            files={
                code: words.report.source if words.report else None for code, words in vocabularies.items()
            },
            dimensions={code: words.dim for code, words in vocabularies.items()},
        ),
        lowercase,
        asked.device,
    )


def _decisions(
    vocabularies: Mapping[str, WordVectors],
    seeds: Mapping[Two, Lexicon],
    c1: C1,
    calibrated: bool,
    options: dict[str, Any],
    checkpoint: Path | None,
) -> JointDecisions:
    """What the trial decides, or has decided before the run was interrupted."""
    if checkpoint is None:
        return decide(vocabularies, seeds, c1, calibrated=calibrated, **options)
    decided_by = {**c1.settings(), "frequent_words": options["frequent"], "calibrated": calibrated}
    identity = identity_of(decided_by, vocabularies, seeds)
    state = Checkpoint(checkpoint / "trial", identity, options["progress"])
    kept = state.load(of_another="ignore")
    if kept is not None:
        return JointDecisions.from_dict(kept.state)
    decisions = decide(vocabularies, seeds, c1, calibrated=calibrated, **options)
    state.save({}, **decisions.as_dict())
    return decisions
