"""The language model in the held-out trial: tuned once without the held-out words, mixed with any λ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from bilex.aligners.base import Aligner, Pairs
from bilex.core.progress import Progress
from bilex.encoders.settings import C2, TuningPreset, TuningSettings
from bilex.encoders.stage import Both, Combination, aligned_views, mixed_views, run_stage_c2
from bilex.encoders.tuning import ENOUGH_SEEDS
from bilex.fit.held_out import WordScores, word_scores
from bilex.fit.trial import MIXING_GRID
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors


@dataclass(eq=False)
class TrialEncoder:
    """The encoder beside the candidates of a trial.

    Args:
        fits: The fitted candidates by name.
        tuned_with: The candidate in whose space the encoder is tuned.
        small: The vocabularies of the trial.
        learned: The pairs that may be learned from.
        held_out: The pairs that λ is judged by, as rows of `small`.
        seeds: How many seed pairs the fit itself will have.
        stage: The settings of stage C2, with the encoder open.
        progress: Receives how far the work is.
    """

    fits: Mapping[str, Aligner]
    tuned_with: str
    small: tuple[WordVectors, WordVectors]
    learned: Lexicon
    held_out: Pairs
    seeds: int
    stage: C2
    progress: Progress
    _curves: dict[str, dict[float, WordScores]] = field(init=False, default_factory=dict)

    @cached_property
    def encoded(self) -> Both:
        """The words' vectors by the encoder, tuned without the held-out pairs."""
        encoder = self.stage.open_encoder or self.stage.open(self.progress)
        tuning = _trial_tuning(self.stage.settings_for(encoder), self.stage.preset_in_force)
        if self.seeds >= ENOUGH_SEEDS:
            tuning = replace(tuning, induced=0)
        cache = None if self.stage.tune else self.stage.cache  # what was tuned here belongs to no other fit
        preset = self.stage.preset_in_force
        stage = replace(self.stage, mixing=0.5, tuning=tuning, preset=preset, cache=cache)
        aligner = self.fits[self.tuned_with]
        return run_stage_c2(aligner, *self.small, self.learned, stage, progress=self.progress).encoded

    def _combined(self, form: str) -> tuple[Combination, Both]:
        """How a candidate's space and the encoder's become one, and the candidate's static vectors."""
        source, target = self.small
        static = aligned_views(self.fits[form], source, target)
        pairs = self.learned.index(source.key_to_index, target.key_to_index)
        return Combination.fit(static, self.encoded, pairs, 0.5), static

    def curve(self, form: str) -> dict[float, WordScores]:
        """The scores of the held-out words with each λ of the grid."""
        if form not in self._curves:
            combination, static = self._combined(form)
            both = zip(static, self.encoded, strict=True)
            views = [combination.views(known, encoded) for known, encoded in both]
            curve: dict[float, WordScores] = {}
            with self.progress.task("Choosing λ", len(MIXING_GRID)) as task:
                for mixing in MIXING_GRID:
                    source, target = (mixed_views(*side, mixing) for side in views)
                    curve[mixing] = word_scores(source, target, self.held_out, self.stage.device)
                    task.advance(1, λ=mixing, score=round(curve[mixing].mean(), 3))
            self._curves[form] = curve
        return self._curves[form]

    def space(self, form: str, mixing: float) -> Space:
        """The trial's words in the combined space of a candidate with some λ."""
        combination, static = self._combined(form)
        words = (self.small[0].index_to_key, self.small[1].index_to_key)
        vocabularies = combination.with_mixing(mixing).vocabularies(words, static, self.encoded)
        return Space(*vocabularies, "cosine", self.stage.device)


def _trial_tuning(settings: TuningSettings, preset: TuningPreset) -> TuningSettings:
    """How the encoder is tuned in the trial: on machines without a GPU with half the epochs."""
    if preset == "paper":
        return settings
    return replace(settings, epochs=max(1, settings.epochs // 2))
