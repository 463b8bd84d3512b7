"""The held-out trial: one fit without some of the seeds decides what was left open.

Some seed words are held out. A shorter copy of the aligner (`Aligner.for_trial`) is fitted without them, on
frequent words. The held-out words are then translated: with the maps along the last round of C1, which
chooses the extent of its rounds; with a language model under each λ, of which one is chosen. Confidences are
calibrated on their answers. The trial never sees test data. Its fit is discarded; the model itself learns
from all seeds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.c1_settings import MANY_SEEDS, USUAL_EXTENT, C1Settings
from bilex.aligners.preparation import small_vocabularies
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import from_json
from bilex.fit.calibration import FEWEST_WORDS, Calibration, answer_records, learn_confidences
from bilex.fit.report import TrialReport
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.search import csls_top_k, neighbourhoods
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.settings import C2

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.float64]

# With fewer seed words than this nothing is held out.
FEWEST_SEEDS = 100
# The least number of words that are held out, and the largest share of the seeds for which that number holds.
HELD_OUT_AT_LEAST, HELD_OUT_AT_MOST = 200, 0.2
FEWEST_TO_CALIBRATE = round(FEWEST_WORDS / HELD_OUT_AT_MOST)
# The trial's fit learns on this number of frequent words per language, and on those of the seeds.
WORDS = 20_000
MIXING_GRID = tuple(round(0.1 * step, 1) for step in range(11))
# How far the best λ of a language pair lies from the usual one: scale and degrees of freedom of Student's t,
# whose heavy tails let clear evidence prevail over a usual λ that does not suit (research/trial.md).
MIXING_SPREAD, FREEDOM = 0.05, 3
# The same for the share of its rounds that C1 makes, and the least share (research/never_worse.md).
EXTENT_SPREAD, LEAST_EXTENT = 0.3, 0.02
_SMALLEST_ERROR = 1e-3  # of a mean reciprocal rank, where all words agree
# Errors that end a trial, but not the fit.
FAILURES = (BilexError, ArithmeticError, ValueError, RuntimeError, np.linalg.LinAlgError)
_ANSWERS = 10


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What the trial decided.

    Attributes:
        mixing: λ; None without a language model.
        extent: The share of its rounds that C1 makes; None where that was not open.
        calibration: Confidences, or a note why there are none.
        report: What the trial found.
        failed: Whether an error ended the trial; another run may succeed.
    """

    mixing: float | None = None
    extent: float | None = None
    calibration: Calibration
    report: TrialReport
    failed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        calibration, report = self.calibration.as_dict(), self.report.as_dict()
        chosen = {"mixing": self.mixing, "extent": self.extent}
        return {**chosen, "calibration": calibration, "report": report}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Decisions:
        """What `as_dict` gave."""
        return cls(
            mixing=stored["mixing"],
            extent=stored["extent"],
            calibration=Calibration.from_dict(stored["calibration"]),
            report=from_json(TrialReport, stored["report"]),
        )


def decide(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    *,
    encoder: C2 | None = None,
    calibrate: bool = True,
    held_out: float = 0.1,
    progress: Progress = SILENT,
) -> Decisions:
    """Choose the extent of C1 and λ, and learn confidences, if there are enough seeds to hold some out."""
    started = time.monotonic()
    usable = lexicon.covered(source.key_to_index, target.key_to_index) if lexicon is not None else Lexicon([])
    words = len(usable.translations())
    chooses_mixing = encoder is not None and encoder.mixing == "auto"
    chooses_extent = isinstance(aligner, C1Settings) and aligner.leaves_extent_open(len(usable))
    calibrates = calibrate and words >= FEWEST_TO_CALIBRATE
    split = hold_out(usable, held_out, aligner.seed)
    note, failed = "", False
    if not chooses_mixing and not chooses_extent and not calibrates:
        note = "there was nothing to decide"
    elif split is None:
        note = f"{words} seed words in the vectors are too few to hold some out ({FEWEST_SEEDS} are needed)"
    else:
        tested = len(split[1].translations())
        progress.log(f"Trial: {tested} seed words are held out of a smaller fit of {aligner.name}.")
        try:
            found = _Trial(aligner, source, target, usable, split, encoder, progress).decisions(calibrates)
            seconds = round(time.monotonic() - started, 2)
            if not calibrates:
                found = replace(found, calibration=not_calibrated(calibrate, words))
            return replace(found, report=replace(found.report, seconds=seconds, held_out_words=tested))
        except FAILURES as error:
            note, failed = f"the trial could not be finished ({error})", True
    mixing = None if encoder is None else _given_mixing(encoder, progress)
    calibration = not_calibrated(calibrate, words, note)
    if chooses_mixing:
        progress.log(f"Trial: {note}; the usual λ = {mixing} is taken.")
    if calibrate:
        progress.log(f"Confidences: {calibration.note}.")
    report = TrialReport(note=note, mixing=mixing if chooses_mixing else None)
    extent = USUAL_EXTENT if chooses_extent else None
    return Decisions(mixing=mixing, extent=extent, calibration=calibration, report=report, failed=failed)


def not_calibrated(calibrate: bool, words: int, note: str = "") -> Calibration:
    """No confidences, and the reason."""
    if not calibrate:
        note = "it was switched off"
    elif words < FEWEST_TO_CALIBRATE:
        needed = f"confidences need {FEWEST_TO_CALIBRATE} seed words that are in the vectors"
        note = f"{needed}, and there are {words}"
    return Calibration(note=f"not calibrated: {note}")


def _given_mixing(stage: C2, progress: Progress) -> float:
    """λ without evidence: the one that was given, or the usual one of the encoder."""
    if not isinstance(stage.mixing, str):
        return float(stage.mixing)
    return replace(stage, mixing="prior").mixing_for(stage.open_encoder or stage.open(progress))


@dataclass
class _Trial:
    """One trial of two languages; `split` has the pairs to learn from and those held out."""

    aligner: Aligner
    source: WordVectors
    target: WordVectors
    usable: Lexicon
    split: tuple[Lexicon, Lexicon]
    encoder: C2 | None
    progress: Progress

    def decisions(self, calibrates: bool) -> Decisions:
        """Fit without the held-out words, choose the extent and λ, and learn confidences."""
        size = len(self.usable), min(len(self.source), len(self.target))
        self.small = small_vocabularies(self.source, self.target, self.usable, WORDS)
        fitted = self.aligner.for_trial(*size).fit(*self.small, self.split[0], progress=self.progress)
        report = TrialReport(ran=True)
        mixing, taken = None, []
        if isinstance(fitted, C1Settings) and fitted.snapshots_:
            extent, curve = self._extent(fitted)
            taken.append(f"extent = {extent}")
            report = replace(report, extent=extent, extent_scores=curve)
        if self.encoder is None:
            space = Space.from_aligner(fitted, self.source, self.target)
        else:
            mixing, curve, space = self._mixed(fitted, self.encoder)
            if self.encoder.mixing == "auto":
                taken.append(f"λ = {mixing}")
                report = replace(report, mixing=mixing, mixing_scores=curve)
        note = "confidences were learned on the held-out words"
        if taken:
            note = f"{' and '.join(taken)} {'are' if len(taken) > 1 else 'is'} taken"
            self.progress.log(f"Trial: {note}.")
        report = replace(report, note=note)
        calibration = Calibration()
        if calibrates:
            records = answer_records(space, self.split[1], self.usable)
            of_auto = isinstance(fitted, C1Settings) and fitted.preset == "auto" and self.encoder is None
            calibration = learn_confidences(records, self.aligner.seed, of_auto=of_auto)
        return Decisions(mixing=mixing, extent=report.extent, calibration=calibration, report=report)

    def _extent(self, fitted: C1Settings) -> tuple[float, dict[str, float]]:
        """The share of its rounds that C1 is to make, and each share's score; the maps become those of it."""
        curve: dict[float, Numbers] = {}
        with self.progress.task("Choosing the extent of rounds", len(fitted.snapshots_)) as task:
            for share, maps in fitted.snapshots_.items():
                x, y = (turn(side.vectors) for turn, side in zip(maps, self.small, strict=True))
                curve[share] = np.concatenate(word_scores(x, y, self._rows(self.split[1]), fitted.device))
                task.advance(1, extent=share, score=round(float(curve[share].mean()), 3))
        extent, nearest = choose_extent(curve)
        fitted.source_map_, fitted.target_map_ = fitted.snapshots_[nearest]
        return extent, scores_by_name(curve)

    def _mixed(self, fitted: Aligner, stage: C2) -> tuple[float, dict[str, float], Space]:
        """λ, the score of each λ, and the combined space of the trial's words under the chosen one."""
        from bilex.encoders.stage import Combination, aligned_views, mixed_views, run_stage_c2

        encoder = stage.open_encoder or stage.open(self.progress)
        tuning, preset = stage.settings_for(encoder), stage.resolved_preset
        if preset != "paper":  # the light tunings make half the epochs
            tuning = replace(tuning, epochs=max(1, tuning.epochs // 2))
        if len(self.usable) >= MANY_SEEDS:  # as in the final tuning, though some seeds are held out
            tuning = replace(tuning, induced=0)
        cache = None if stage.tune else stage.cache  # what is tuned here belongs to no other fit
        shorter: C2 = replace(stage, mixing=0.5, tuning=tuning, preset=preset, cache=cache)
        learned, tested = self.split
        encoded = run_stage_c2(fitted, *self.small, learned, shorter, progress=self.progress).encoded
        static = aligned_views(fitted, *self.small)
        combination = Combination.fit(static, encoded, self._rows(learned), 0.5)
        mixing, scores = _given_mixing(stage, self.progress), {}
        if stage.mixing == "auto":
            views = [combination.views(known, other) for known, other in zip(static, encoded, strict=True)]
            curve: dict[float, Numbers] = {}
            with self.progress.task("Choosing λ", len(MIXING_GRID)) as task:
                for step in MIXING_GRID:
                    x, y = (mixed_views(*side, step) for side in views)
                    curve[step] = np.concatenate(word_scores(x, y, self._rows(tested), stage.device))
                    task.advance(1, λ=step, score=round(float(curve[step].mean()), 3))
            mixing = choose_mixing(curve, mixing)
            scores = scores_by_name(curve)
        words = self.small[0].index_to_key, self.small[1].index_to_key
        vocabularies = combination.with_mixing(mixing).vocabularies(words, static, encoded)
        return mixing, scores, Space(*vocabularies, "cosine", stage.device)

    def _rows(self, pairs: Lexicon) -> Pairs:
        return pairs.index(self.small[0].key_to_index, self.small[1].key_to_index)


def hold_out(lexicon: Lexicon, share: float, seed: int) -> tuple[Lexicon, Lexicon] | None:
    """Split the seeds at random into those to learn from and those to judge by, which share no word.

    `share` of the source words is held out. If that is fewer than 200 words, 200 or a fifth of them are,
    whichever is fewer; None where there are too few.
    """
    words = len(lexicon.translations())
    if words < FEWEST_SEEDS:
        return None
    count = max(round(share * words), min(HELD_OUT_AT_LEAST, int(HELD_OUT_AT_MOST * words)))
    return lexicon.split(count, seed)


def scores_by_name(curve: Mapping[float, Numbers]) -> dict[str, float]:
    """The mean score of each choice, for a report."""
    return {str(choice): round(float(words.mean()), 4) for choice, words in curve.items()}


def choose_extent(curve: Mapping[float, Numbers]) -> tuple[float, float]:
    """The posterior mean of the share of its rounds that C1 makes, and the share of the curve next to it."""
    grid, words = _smooth(curve)
    extent = max(LEAST_EXTENT, round(_posterior_mean(grid, words, USUAL_EXTENT, EXTENT_SPREAD), 2))
    return extent, min(curve, key=lambda share: abs(share - extent))


def choose_mixing(curve: Mapping[float, Numbers], prior: float) -> float:
    """The posterior mean of λ, given the held-out words; 0 if only λ = 0 has the best mean score.

    Args:
        curve: For each λ of the grid the reciprocal rank of every held-out word, by CSLS.
        prior: The encoder's usual λ.
    """
    grid, words = _smooth(curve)
    means = words.mean(axis=1)
    best = int(means.argmax())
    if grid[best] <= 0 and means[best] > means[1:].max(initial=-1):
        return 0.0  # no λ > 0 scores as high on average
    return round(_posterior_mean(grid, words, prior, MIXING_SPREAD), 2)


def _smooth(curve: Mapping[float, Numbers]) -> tuple[Numbers, Numbers]:
    """The choices, rising, and the scores of all words for each, smoothed over neighbours (weights 1, 2, 1).

    A few hundred words are noisy.
    """
    grid = np.array(sorted(curve))
    padded = np.pad(np.stack([curve[one] for one in grid.tolist()]), ((1, 1), (0, 0)), mode="edge")
    return grid, (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4


def _posterior_mean(grid: Numbers, words: Numbers, usual: float, spread: float) -> float:
    """What to choose, given the scores of words: near the usual choice unless they clearly speak against it.

    The prior is Student's t around the usual choice. The likelihood of a choice follows from how many
    standard errors of the words' difference its score lies below the best.
    """
    lost = words[int(words.mean(axis=1).argmax())] - words
    errors = np.maximum(lost.std(axis=1) / words.shape[1] ** 0.5, _SMALLEST_ERROR)
    log_prior = -(FREEDOM + 1) / 2 * np.log1p(((grid - usual) / spread) ** 2 / FREEDOM)
    log_density = log_prior - (lost.mean(axis=1) / errors) ** 2 / 2
    width = np.gradient(grid) if len(grid) > 1 else np.ones(1)
    return float(np.average(grid, weights=width * np.exp(log_density - log_density.max())))


def word_scores(
    source: Floats, target: Floats, pairs: Pairs, device: str = "auto"
) -> tuple[Numbers, Numbers]:
    """The reciprocal rank of the best right answer of every word of `pairs`, by CSLS, among ten answers.

    The first array has the source words, the second the target words.
    """
    r_source, r_target = neighbourhoods(source, target, _ANSWERS, device=device)
    forward = _reciprocal_ranks(source, target, r_source, r_target, pairs, device)
    return forward, _reciprocal_ranks(target, source, r_target, r_source, pairs[:, ::-1], device)


def _reciprocal_ranks(
    queries: Floats, keys: Floats, r_queries: Floats, r_keys: Floats, pairs: Pairs, device: str
) -> Numbers:
    words, place = np.unique(pairs[:, 0], return_inverse=True)
    place = place.reshape(-1)
    _, answers = csls_top_k(
        np.ascontiguousarray(queries[words]),
        keys,
        _ANSWERS,
        query_mean=r_queries[words],
        key_mean=r_keys,
        device=device,
    )
    hits = answers[place] == pairs[:, 1:]
    reciprocal = np.where(hits.any(axis=1), 1 / (1 + hits.argmax(axis=1)), 0)
    best = np.zeros(len(words))
    np.maximum.at(best, place, reciprocal)
    return best
