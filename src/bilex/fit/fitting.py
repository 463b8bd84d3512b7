"""From an aligner, two vocabularies and seed pairs to maps, confidences and a report."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bilex.aligners.base import Aligner
from bilex.aligners.maps import Linear, Map, Unit
from bilex.core.errors import BilexError
from bilex.core.files import check_writable
from bilex.core.progress import SILENT, Progress, begin_step
from bilex.fit.calibration import Calibration
from bilex.fit.expectation import from_calibration, from_few_seeds
from bilex.fit.report import FitReport
from bilex.fit.trial import Decisions, decide
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.settings import C2
    from bilex.encoders.stage import StageResult

_ALIGNER, _ENCODER, _TRIAL = "aligner", "encoder", "trial"  # the parts of a checkpoint


@dataclass(frozen=True, eq=False)
class FitResult:
    """The result of `fit`.

    Attributes:
        aligner: A fitted copy of the aligner.
        space: Both vocabularies in one space: the aligner's, or with a language model the combined one.
        stage: What stage C2 made; None without a language model.
        calibration: Confidences, or a note why there are none.
        report: What it was made from, how, and its expected accuracy.
        seeds: The pairs it was learned from, and the rejected ones.
    """

    aligner: Aligner
    space: Space
    stage: StageResult | None
    calibration: Calibration
    report: FitReport
    seeds: Lexicon

    @property
    def maps(self) -> tuple[Map, Map]:
        """They map source and target vectors, as read from their files, into the space.

        With a language model they map the static part only.
        """
        maps = self.aligner.source_map_, self.aligner.target_map_
        if self.stage is None:
            return maps
        onward = [Unit(), Linear(self.stage.combination.static_map), Unit()]
        return Map([*maps[0].steps, *onward]), Map([*maps[1].steps, *onward])


def fit(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    seeds: Lexicon | None = None,
    *,
    encoder: C2 | None = None,
    rejected: Iterable[tuple[str, str]] = (),
    aligned: FitResult | None = None,
    calibrate: bool = True,
    held_out: float = 0.1,
    progress: Progress = SILENT,
    checkpoint: Path | None = None,
    measure: bool = True,
) -> FitResult:
    """Choose what was left open and learn confidences on held-out seeds, then learn from all of them.

    Args:
        aligner: The method with its settings; it stays as it is, and a copy is fitted.
        source: Source vectors, most frequent words first.
        target: Target vectors.
        seeds: Seed pairs, source word first, with pairs that were rejected; None where the method needs none.
        encoder: Settings of stage C2, which adds a language model; None for none.
        rejected: More pairs that are no translations.
        aligned: An earlier fit of this aligner to the same data, whose maps are used, so that several
            language models share one fit.
        calibrate: Whether confidences are learned in the trial.
        held_out: The share of the seeds' source words that the trial holds out. If that is fewer than 200
            words, it holds out 200 or a fifth of them, whichever is fewer.
        progress: Receives progress reports.
        checkpoint: A folder for the state of the fit; an interrupted run resumes from it.
        measure: Whether the CSLS terms of all words are computed at once; False leaves that to the first
            search.

    Raises:
        BilexError: The data or a setting does not suit the method, or the checkpoint cannot be written.
    """
    if not 0 < held_out < 1:
        raise BilexError(f"a share of {held_out} of the seeds cannot be held out; give one between 0 and 1.")
    aligner.check()
    resumed = False
    if checkpoint is not None:
        check_writable(checkpoint / _ALIGNER)
        resumed = any((checkpoint / part).exists() for part in (_ALIGNER, _ENCODER))
    lexicon = _with_rejected(Lexicon([], "no seeds") if seeds is None else seeds, tuple(rejected))
    lexicon = lexicon.as_units(source.key_to_index, target.key_to_index)
    stage = _opened(encoder, aligner, progress)
    if len(lexicon):
        begin_step(progress, "learning confidences on held-out seeds")
    decisions = _decisions(
        aligner if aligned is None else aligned.aligner,
        (source, target, lexicon),
        stage,
        {"calibrate": calibrate, "held_out": held_out},
        progress,
        checkpoint,
    )
    if aligned is None:
        fitted, started = aligner.clone(), time.monotonic()
        if decisions.extent is not None:
            fitted.set_params(extent=decisions.extent)
        state = checkpoint / _ALIGNER if checkpoint else None
        begin_step(progress, f"aligning with {fitted.name}")
        fitted.fit(source, target, lexicon, progress=progress, checkpoint=state)
        seconds = time.monotonic() - started
    else:
        fitted, seconds = aligned.aligner, aligned.report.fit_seconds
    combined = None
    if encoder is None or stage is None:
        space = Space.from_aligner(fitted, source, target)
    else:
        from bilex.encoders.stage import run_stage_c2

        begin_step(progress, "tuning and adding the language model")
        if decisions.mixing is not None:
            stage = replace(stage, mixing=decisions.mixing)
        state = checkpoint / _ENCODER if checkpoint else None
        combined = run_stage_c2(fitted, source, target, lexicon, stage, progress=progress, checkpoint=state)
        combined.report.lm = encoder.settings()["lm"]
        space = Space(combined.source, combined.target, "cosine", fitted.device)
    if measure:
        with progress.task("Measuring neighbourhoods") as task:
            space.neighbourhoods()
            task.advance()
    expectation = from_calibration(decisions.calibration)
    if calibrate and not expectation.measured:
        expectation = from_few_seeds(expectation, fitted, source, target, lexicon, progress)
    report = FitReport.of(
        fitted,
        source,
        target,
        lexicon,
        fit_seconds=round(seconds, 2),
        expectation=expectation,
        trial=decisions.report,
        language_model=combined.report if combined else None,
        resumed=resumed,
    )
    return FitResult(fitted, space, combined, decisions.calibration, report, lexicon)


def _opened(encoder: C2 | None, aligner: Aligner, progress: Progress) -> C2 | None:
    """The settings of stage C2 with the language model open, so that it is read once; None without one."""
    if encoder is None:
        return None
    seed = aligner.seed if encoder.random_seed is None else encoder.random_seed
    device = aligner.device if encoder.device == "auto" else encoder.device
    stage = replace(encoder, device=device, random_seed=seed)
    return stage if stage.open_encoder is not None else replace(stage, lm=stage.open(progress))


def _decisions(
    aligner: Aligner,
    data: tuple[WordVectors, WordVectors, Lexicon],
    stage: C2 | None,
    options: dict[str, Any],
    progress: Progress,
    checkpoint: Path | None,
) -> Decisions:
    """What the trial decides, or has decided before the run was interrupted."""
    if checkpoint is None:
        return decide(aligner, *data, encoder=stage, progress=progress, **options)
    from bilex.aligners.checkpoint import Checkpoint

    source, target, lexicon = data
    places = source.key_to_index, target.key_to_index
    pairs = np.concatenate([lexicon.index(*places), lexicon.rejected_index(*places)])
    known_by = {
        "method": aligner.name,
        **aligner.settings(),
        "encoder": None if stage is None else {**stage.settings(), "device": None, "cache": None},
        "weights": stage.open_encoder.fingerprint() if stage is not None and stage.open_encoder else None,
        **options,
    }
    state = Checkpoint.of_fit(checkpoint / _TRIAL, known_by, source, target, pairs, progress)
    if (kept := state.load(of_another="ignore")) is not None:
        return Decisions.from_dict(kept.state)
    decisions = decide(aligner, *data, encoder=stage, progress=progress, **options)
    if not decisions.failed:  # the next run tries again
        state.save({}, **decisions.as_dict())
    return decisions


def _with_rejected(seeds: Lexicon, rejected: tuple[tuple[str, str], ...]) -> Lexicon:
    if not rejected:
        return seeds
    wrong = tuple(dict.fromkeys((*seeds.rejected, *rejected)))
    return replace(seeds.without(Lexicon(rejected)), rejected=wrong)
