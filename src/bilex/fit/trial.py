"""The one held-out trial: it chooses the aligner's form and λ, and learns confidences, from the same fits.

Some seed words are held out. The candidates are fitted without them, on few words and with few updates; what
translates the held-out words best is taken for the fit itself, which learns from all seeds. The rule is in
`evidence`. No word judges a choice that it took part in: the held-out words are cut in two halves, each half
is asked of what the other half chose, and confidences come from these answers. Test data are never looked at.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.small import small_vocabularies
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.fit import evidence
from bilex.fit.calibration import FEWEST_WORDS, Calibration, Records, ask, learn_confidences
from bilex.fit.candidate_fits import FAILURES, fit_each
from bilex.fit.decisions import Decisions, TrialReport
from bilex.fit.forms import distinct_forms
from bilex.fit.halves import halves
from bilex.fit.scoring import WordScores, word_scores
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.settings import C2
    from bilex.fit.trial_encoder import TrialEncoder

_FEWEST_TO_CALIBRATE = round(FEWEST_WORDS / evidence.HELD_OUT_AT_MOST)


class Choice(NamedTuple):
    """A form of the aligner, and λ where there is a language model."""

    form: str
    mixing: float | None


def decide(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    *,
    encoder: C2 | None = None,
    choose_preset: bool = True,
    calibrate: bool = True,
    held_out: float = 0.1,
    progress: Progress = SILENT,
) -> Decisions:
    """Decide all that was left open, on held-out seeds where there are enough, else by the priors.

    Args:
        aligner: The aligner as the user asked for it; it is not fitted here.
        source: Source vectors.
        target: Target vectors.
        lexicon: The seed pairs, or None.
        encoder: The settings of stage C2 with the encoder open; None without a language model.
        choose_preset: Whether the preset may be chosen where it is "auto".
        calibrate: Whether confidences are learned.
        held_out: The share of the seeds' source words to hold out.
        progress: Receives how far the work is.
    """
    started = time.monotonic()
    usable = lexicon.covered(source.key_to_index, target.key_to_index) if lexicon is not None else Lexicon([])
    decisions = _Trial(
        aligner, source, target, usable, encoder, choose_preset, calibrate, held_out, progress
    ).decisions()
    seconds = round(time.monotonic() - started, 2)
    return replace(decisions, report=replace(decisions.report, seconds=seconds))


@dataclass(eq=False)
class _Trial:
    """One trial; `decisions` carries it out."""

    aligner: Aligner
    source: WordVectors
    target: WordVectors
    usable: Lexicon
    stage: C2 | None
    choose_preset: bool
    calibrate: bool
    held_out: float
    progress: Progress
    fits: dict[str, Aligner] = field(init=False, default_factory=dict)
    failed: dict[str, str] = field(init=False, default_factory=dict)

    def decisions(self) -> Decisions:
        """The choices and confidences; the priors where the trial cannot be held or fails."""
        if not (self.opens_form or self.opens_mixing or self.calibrates):
            return self._priors("there was nothing to decide")
        if self.split is None:
            return self._priors(
                f"{self.words} seed words in the vectors are too few to hold some out "
                f"({evidence.FEWEST_SEEDS} are needed)"
            )
        learned, held_out = self.split
        tried = f"forms {' and '.join(self.forms)}" if self.opens_form else "one form"
        self.progress.say(
            f"Trial: {len(held_out.translations())} seed words are held out of smaller fits of "
            f"{self.aligner.name} ({tried})."
        )
        size = len(self.usable), min(len(self.source), len(self.target))
        shorter = {name: evidence.shortened(form, *size) for name, form in self.forms.items()}
        self.fits = fit_each(shorter, self.small, learned, self.failed, self.progress)
        if not self.fits:
            return self._priors(f"no candidate could be fitted ({next(iter(self.failed.values()))})")
        try:
            return self._judged(held_out)
        except FAILURES as error:
            return self._priors(f"the trial could not be finished ({error})")

    @cached_property
    def words(self) -> int:
        """Source words of the seeds that are in the vectors."""
        return len(self.usable.translations())

    @cached_property
    def forms(self) -> dict[str, Aligner]:
        """The candidates with the settings of the whole problem."""
        found = distinct_forms(self.aligner, len(self.usable), min(len(self.source), len(self.target)))
        return found if self.choose_preset else dict(list(found.items())[:1])

    @property
    def opens_form(self) -> bool:
        """Whether there is more than one form to choose from."""
        return len(self.forms) > 1

    @property
    def opens_mixing(self) -> bool:
        """Whether λ is to be chosen."""
        return self.stage is not None and self.stage.mixing == "auto"

    @property
    def calibrates(self) -> bool:
        """Whether confidences are to be learned and can be."""
        return self.calibrate and self.words >= _FEWEST_TO_CALIBRATE

    @cached_property
    def split(self) -> tuple[Lexicon, Lexicon] | None:
        """The pairs to learn from and those held out; None where there are too few."""
        ranks = self.source.key_to_index, self.target.key_to_index
        return evidence.hold_out(self.usable, *ranks, self.held_out, self.aligner.seed)

    @cached_property
    def small(self) -> tuple[WordVectors, WordVectors]:
        """The vocabularies that the candidates learn on."""
        return small_vocabularies(self.source, self.target, self.usable, evidence.WORDS)

    def _rows(self, pairs: Lexicon) -> Pairs:
        source, target = self.small
        return pairs.index(source.key_to_index, target.key_to_index)

    def _judged(self, held_out: Lexicon) -> Decisions:
        """Choose on all held-out words, and learn confidences from halves that did not choose."""
        chosen = self._choice(None)
        calibration = self._calibration(held_out)
        report = TrialReport(
            ran=True,
            note=self._sentence(chosen),
            held_out_words=len(held_out.translations()),
            form=chosen.form if self.opens_form else None,
            form_scores={name: round(scores.mean(), 4) for name, scores in self.form_scores.items()},
            failed=self.failed,
            mixing=chosen.mixing if self.opens_mixing else None,
            mixing_scores=self._shown_curve(chosen.form) if self.opens_mixing else {},
        )
        self.progress.say(f"Trial: {report.note}.")
        return Decisions(
            settings=self._settings(chosen.form), mixing=chosen.mixing, calibration=calibration, report=report
        )

    def _calibration(self, held_out: Lexicon) -> Calibration:
        """Confidences from the held-out words; if they fail, the choice still stands."""
        if not self.calibrates:
            return self._no_calibration()
        try:
            return learn_confidences(self._cross_fitted(held_out), self.aligner.seed)
        except FAILURES as error:
            return self._no_calibration(str(error))

    def _cross_fitted(self, held_out: Lexicon) -> Records:
        """The answers to each half's words by what the other half chose."""
        if len(self.fits) == 1 and not self.opens_mixing:
            return ask(self._space(self._choice(None)), held_out)
        one, other = halves(held_out, self.aligner.seed)
        if not len(one) or not len(other):
            raise BilexError("the held-out words cannot be cut in halves")
        by_one, by_other = self._choice(self._rows(one)), self._choice(self._rows(other))
        if by_one == by_other:
            return ask(self._space(by_one), held_out)
        first, second = ask(self._space(by_other), one), ask(self._space(by_one), other)
        return {key: first[key] + second[key] for key in first if key in second}

    def _choice(self, pairs: Pairs | None) -> Choice:
        """What the words of some held-out pairs prefer; None for all of them."""
        form = self._form(pairs)
        if self.stage is None or not self.opens_mixing:
            return Choice(form, self._given_mixing())
        curve = {mixing: scores.mean(pairs) for mixing, scores in self.encoder.curve(form).items()}
        return Choice(form, evidence.choose_mixing(curve, self._prior_mixing(self.stage)))

    def _form(self, pairs: Pairs | None) -> str:
        if len(self.fits) == 1:
            return next(iter(self.fits))
        return evidence.choose_form({name: s.mean(pairs) for name, s in self.form_scores.items()})

    def _given_mixing(self) -> float | None:
        """λ without evidence: the one that was given, or the prior; None without a language model."""
        if self.stage is None:
            return None
        given = self.stage.mixing
        return self._prior_mixing(self.stage) if isinstance(given, str) else float(given)

    def _prior_mixing(self, stage: C2) -> float:
        return replace(stage, mixing="prior").mixing_for(stage.open_encoder or stage.open(self.progress))

    @cached_property
    def form_scores(self) -> dict[str, WordScores]:
        """The scores of the held-out words in each candidate's space, where there are several."""
        if len(self.fits) == 1 or self.split is None:
            return {}
        rows = self._rows(self.split[1])
        scores = {}
        for name, candidate in self.fits.items():
            space = Space.from_aligner(candidate, *self.small)
            x, y = (np.asarray(side.vectors) for side in (space.source, space.target))
            scores[name] = word_scores(x, y, rows, self.aligner.device)
        return scores

    @cached_property
    def encoder(self) -> TrialEncoder:
        """The language model beside the candidates, tuned in the space of the form that all words prefer."""
        from bilex.fit.trial_encoder import TrialEncoder

        if self.stage is None or self.split is None:
            raise BilexError("there is no language model to try.")
        learned, held_out = self.split
        return TrialEncoder(
            self.fits,
            self._form(None),
            self.small,
            learned,
            self._rows(held_out),
            len(self.usable),
            self.stage,
            self.progress,
        )

    def _space(self, choice: Choice) -> Space:
        """The space of a choice: over all words, or with a language model over the trial's words."""
        if choice.mixing is not None:
            return self.encoder.space(choice.form, choice.mixing)
        return Space.from_aligner(self.fits[choice.form], self.source, self.target)

    def _priors(self, note: str) -> Decisions:
        """What is taken without evidence."""
        form, mixing = next(iter(self.forms)), self._given_mixing()
        taken = [f"form {form}"] if self.opens_form else []
        taken += [f"λ = {mixing}"] if self.opens_mixing else []
        calibration = self._no_calibration(note)
        if taken:
            self.progress.say(f"Trial: {note}; the usual {' and '.join(taken)} is taken.")
        if self.calibrate:
            self.progress.say(f"Confidences: {calibration.note}.")
        report = TrialReport(
            note=note,
            form=form if self.opens_form else None,
            failed=self.failed,
            mixing=mixing if self.opens_mixing else None,
        )
        return Decisions(settings=self._settings(form), mixing=mixing, calibration=calibration, report=report)

    def _settings(self, form: str) -> dict[str, Any]:
        """What the aligner's settings become: "auto" gives way to the form's name."""
        if not self.choose_preset:
            return {}
        return {"preset": form} if self.aligner.settings().get("preset") == "auto" else {}

    def _no_calibration(self, note: str = "the trial failed") -> Calibration:
        if not self.calibrate:
            note = "it was switched off"
        elif self.words < _FEWEST_TO_CALIBRATE:
            note = (
                f"confidences need {_FEWEST_TO_CALIBRATE} seed words that are in the vectors, and there are "
                f"{self.words}"
            )
        return Calibration(note=f"not calibrated: {note}")

    def _sentence(self, chosen: Choice) -> str:
        parts = []
        if len(self.fits) > 1:
            scores = ", ".join(f"{name} {s.mean():.3f}" for name, s in self.form_scores.items())
            parts.append(f"form {chosen.form} is taken (mean reciprocal rank: {scores})")
        if self.opens_mixing:
            parts.append(f"λ = {chosen.mixing} is taken")
        return "; ".join(parts) or "confidences were learned on the held-out words"

    def _shown_curve(self, form: str) -> dict[str, float]:
        return {str(mixing): round(scores.mean(), 4) for mixing, scores in self.encoder.curve(form).items()}
