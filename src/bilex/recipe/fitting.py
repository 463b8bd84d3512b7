"""From a recipe, two vocabularies and seed pairs to a fitted result."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilex.aligners.base import Aligner
from bilex.lexicon import Lexicon
from bilex.progress import SILENT, Progress
from bilex.recipe.calibration import Calibration
from bilex.recipe.fitted import Fitted
from bilex.recipe.report import FitReport
from bilex.recipe.settings import Recipe
from bilex.recipe.trial import expectation_of, trial_calibration
from bilex.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.model import WordEncoder


def fit(
    recipe: Recipe,
    source: WordVectors,
    target: WordVectors,
    seeds: Lexicon | None = None,
    *,
    rejected: Iterable[tuple[str, str]] = (),
    aligner: Aligner | None = None,
    encoder: WordEncoder | None = None,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
) -> Fitted:
    """Make what a recipe asks for.

    Args:
        recipe: What to make.
        source: Source vectors, most frequent words first.
        target: Target vectors likewise.
        seeds: Seed pairs, source word first, with pairs that were rejected; None where the method needs none.
        rejected: More pairs that are no translations.
        aligner: The recipe's aligner, where it is made already; it is fitted in place.
        encoder: The recipe's language model, where it is open already; it is copied and stays as it is.
        progress: Receives how far the work is.
        checkpoint: A folder where the state is kept; a run that was interrupted goes on from there.

    Returns:
        The maps, the combination with a language model, confidences, and a report.

    Raises:
        BilexError: The data cannot serve this recipe.
    """
    lexicon = _with_rejected(seeds, rejected)
    aligner = aligner if aligner is not None else recipe.aligner()
    stage = recipe.stage(encoder)
    started = time.monotonic()
    aligner.fit(
        source, target, lexicon, progress=progress, checkpoint=checkpoint / "aligner" if checkpoint else None
    )
    fit_seconds = time.monotonic() - started
    combined = None
    language_model: dict[str, Any] | None = None
    if stage is None:
        space = Space.from_aligner(aligner, source, target)
    else:
        from bilex.encoders.stage import run_stage_c2

        state = checkpoint / "encoder" if checkpoint else None
        combined = run_stage_c2(aligner, source, target, lexicon, stage, progress=progress, checkpoint=state)
        space = Space(combined.source, combined.target, "cosine", aligner.device)
        language_model = {
            "lm": str(stage.lm),
            "preset": stage.preset_in_force,
            **combined.report,
        }
    with progress.task("Measuring neighbourhoods") as task:
        space.neighbourhoods()
        task.advance()
    calibration = Calibration(note="not calibrated: it was switched off")
    if recipe.calibrate:
        calibration = trial_calibration(
            aligner, source, target, lexicon, stage, combined, recipe.held_out, progress
        )
    expectation = expectation_of(calibration, aligner, source, target, lexicon, progress, recipe.calibrate)
    known = lexicon if lexicon is not None else Lexicon([], "no seeds")
    report = FitReport.of(aligner, source, target, known, fit_seconds, expectation, language_model)
    return Fitted(recipe, aligner, space, combined, calibration, report, known)


def _with_rejected(seeds: Lexicon | None, rejected: Iterable[tuple[str, str]]) -> Lexicon | None:
    more = tuple(rejected)
    if not more:
        return seeds
    known = seeds if seeds is not None else Lexicon([], "no seeds")
    wrong = tuple(dict.fromkeys((*known.rejected, *more)))
    return replace(known.without(Lexicon(more)), rejected=wrong)
