"""From a recipe, two vocabularies and seed pairs to a fitted result."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bilex.aligners.base import Aligner
from bilex.aligners.remembering import remembering
from bilex.core.files import check_writable
from bilex.core.progress import SILENT, Progress
from bilex.fit.decisions import Decisions
from bilex.fit.expectation import from_calibration
from bilex.fit.few_seeds import expectation_of
from bilex.fit.fitted import Fitted
from bilex.fit.report import FitReport
from bilex.fit.settings import Recipe
from bilex.fit.trial import decide
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.settings import StageC2

_ALIGNER, _ENCODER, _TRIAL = "aligner", "encoder", "trial"  # the parts of a checkpoint


@remembering()
def fit(
    recipe: Recipe,
    source: WordVectors,
    target: WordVectors,
    seeds: Lexicon | None = None,
    *,
    rejected: Iterable[tuple[str, str]] = (),
    aligner: Aligner | None = None,
    aligned: Fitted | None = None,
    encoder: WordEncoder | None = None,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
    encodings: Path | None = None,
    measure: bool = True,
) -> Fitted:
    """Make what a recipe asks for.

    Args:
        recipe: What to make.
        source: Source vectors, most frequent words first.
        target: Target vectors likewise.
        seeds: Seed pairs, source word first, with pairs that were rejected; None where the method needs none.
        rejected: More pairs that are no translations.
        aligner: The recipe's aligner, where it is made already; it is fitted in place.
        aligned: An earlier fit of this method to the same data: its aligner is taken as it is, and the work
            begins with stage C2, so that several language models share one fit.
        encoder: The recipe's language model, where it is open already; it is copied and stays as it is.
        progress: Receives how far the work is.
        checkpoint: A folder where the state is kept; a run that was interrupted goes on from there.
        encodings: A folder for the encodings of vocabularies, which several fits may share; None keeps them
            in the checkpoint, if there is one.
        measure: Whether the neighbourhoods of all words (the terms of CSLS) are measured at once; False
            leaves that to the first search.

    Returns:
        The maps, the combination with a language model, confidences, and a report.

    Raises:
        BilexError: The data cannot serve this recipe, or the checkpoint cannot be written.
    """
    resumed = False
    if checkpoint is not None:
        check_writable(checkpoint / _ALIGNER)
        resumed = any((checkpoint / part).exists() for part in (_ALIGNER, _ENCODER))
    if aligned is not None:
        recipe, aligner = replace(recipe, choose_form=False), aligned.aligner
    lexicon = _with_rejected(seeds, rejected)
    if lexicon is not None:
        lexicon = lexicon.as_units(source.key_to_index, target.key_to_index)
    aligner = aligner if aligner is not None else recipe.aligner()
    stage = _opened_stage(recipe, encoder, progress)
    decisions = _decisions(recipe, aligner, source, target, lexicon, stage, progress, checkpoint)
    if aligned is None:
        for name, value in decisions.settings.items():
            setattr(aligner, name, value)
        state = checkpoint / _ALIGNER if checkpoint else None
        started = time.monotonic()
        aligner.fit(source, target, lexicon, progress=progress, checkpoint=state)
        seconds = time.monotonic() - started
    else:
        seconds = aligned.report.fit_seconds
    combined = None
    if stage is None:
        space = Space.from_aligner(aligner, source, target)
    else:
        from bilex.encoders.stage import run_stage_c2

        stage = replace(stage, mixing=decisions.mixing, cache=encodings)
        state = checkpoint / _ENCODER if checkpoint else None
        combined = run_stage_c2(aligner, source, target, lexicon, stage, progress=progress, checkpoint=state)
        combined.report.lm = recipe.lm or combined.report.lm
        space = Space(combined.source, combined.target, "cosine", aligner.device)
    if measure:
        with progress.task("Measuring neighbourhoods") as task:
            space.neighbourhoods()
            task.advance()
    expectation = from_calibration(decisions.calibration)
    if recipe.calibrate and not expectation.measured:
        expectation = expectation_of(expectation, aligner, source, target, lexicon, progress)
    known = lexicon if lexicon is not None else Lexicon([], "no seeds")
    report = FitReport.of(
        aligner,
        source,
        target,
        known,
        seconds,
        expectation,
        decisions.report,
        combined.report if combined else None,
        resumed=resumed,
    )
    return Fitted(recipe, aligner, space, combined, decisions.calibration, report, known)


def _opened_stage(recipe: Recipe, encoder: WordEncoder | None, progress: Progress) -> StageC2 | None:
    """The settings of stage C2 with the language model open, so that it is read once; None without one."""
    stage = recipe.stage(encoder)
    if stage is None or encoder is not None:
        return stage
    return replace(stage, lm=stage.open(progress))


def _decisions(
    recipe: Recipe,
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    stage: StageC2 | None,
    progress: Progress,
    checkpoint: Path | None,
) -> Decisions:
    """What the trial decides, or has decided before the run was interrupted."""
    if checkpoint is None:
        return decide(recipe, aligner, source, target, lexicon, stage=stage, progress=progress)
    from bilex.aligners.checkpoint import Checkpoint

    pairs = np.zeros((0, 2), np.int64)
    if lexicon is not None:
        places = source.key_to_index, target.key_to_index
        pairs = np.concatenate([lexicon.index(*places), lexicon.rejected_index(*places)])
    state = Checkpoint.of_fit(checkpoint / _TRIAL, recipe.as_dict(), source, target, pairs, progress)
    kept = state.load(of_another="ignore")
    if kept is not None:
        return Decisions.from_dict(kept.state)
    decisions = decide(recipe, aligner, source, target, lexicon, stage=stage, progress=progress)
    state.save({}, **decisions.as_dict())
    return decisions


def _with_rejected(seeds: Lexicon | None, rejected: Iterable[tuple[str, str]]) -> Lexicon | None:
    more = tuple(rejected)
    if not more:
        return seeds
    known = seeds if seeds is not None else Lexicon([], "no seeds")
    wrong = tuple(dict.fromkeys((*known.rejected, *more)))
    return replace(known.without(Lexicon(more)), rejected=wrong)
