"""The one held-out trial: it chooses settings and λ, and learns confidences, from the same fits.

Some seed words are held out. The candidates are fitted without them, on few words and with few updates; what
translates the held-out words best is taken for the fit itself, which learns from all seeds. An aligner says
itself what may be chosen (`Aligner.choices`) and how it is shortened (`Aligner.for_trial`). No word judges a
choice that it took part in: the held-out words are cut in two halves, each half is asked of what the other
half chose, and confidences come from these answers. Test data are never looked at.

`Trial` chooses; what is fitted and asked is that of two languages here, and of many in `bilex.model.jointly`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.preparation import small_vocabularies
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import from_json
from bilex.fit.calibration import FEWEST_WORDS, Calibration, Records, ask, learn_confidences
from bilex.fit.held_out import (
    FEWEST_SEEDS,
    HELD_OUT_AT_MOST,
    Numbers,
    WordScores,
    halves,
    hold_out,
    word_scores,
)
from bilex.fit.report import TrialReport
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.settings import C2
    from bilex.fit.trial_encoder import TrialEncoder

_FEWEST_TO_CALIBRATE = round(FEWEST_WORDS / HELD_OUT_AT_MOST)
# A candidate must beat the prior by this much mean reciprocal rank: on 18 settings of two families of vectors
# that distinguished right from wrong choices.
MARGIN = 0.005
# Later steps are tried only below this score: above it they did not help.
WEAK = 0.55
# Candidates learn on so many of the most frequent words of each language (and those of the seeds).
WORDS = 20_000
MIXING_GRID = tuple(round(0.1 * step, 1) for step in range(11))
# On held-out seeds the language model looks a little better than on the rarer words that users look up.
MIXING_BIAS = 0.05
# The usual λ is taken unless it loses more than so many standard errors on the held-out words. Both numbers
# were chosen on 18 settings of three families of vectors (research/never_worse.md).
CLEAR = 1.5
# What a candidate may end in without ending the fit.
FAILURES = (BilexError, ArithmeticError, ValueError, RuntimeError, np.linalg.LinAlgError)


def choose_form(scores: Mapping[str, float]) -> str:
    """The form to take: the best one if it clearly beats the prior, the first, else the prior."""
    prior = next(iter(scores))
    best = max(scores, key=lambda form: scores[form])
    return best if scores[best] > scores[prior] + MARGIN else prior


def choose_mixing(curve: Mapping[float, Numbers], prior: float) -> float:
    """The λ to take: the usual one, unless held-out words clearly prefer another.

    The curve is smoothed over neighbouring λ (weights 1, 2, 1), since a few hundred words make noise. Its
    best λ, less what held-out seeds flatter the language model by, is taken where the usual one is worse by
    more than 1.5 standard errors of the words' difference.

    Args:
        curve: For each λ of the grid the reciprocal rank of every held-out word, by CSLS.
        prior: The encoder's usual λ.
    """
    grid = sorted(curve)
    words = np.stack([curve[mixing] for mixing in grid])
    padded = np.pad(words, ((1, 1), (0, 0)), mode="edge")
    smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    means = smooth.mean(axis=1)
    best = np.flatnonzero(means >= means.max() - 1e-12)
    place = min(best, key=lambda place: abs(grid[place] - prior))
    if grid[place] <= 0:  # the language model helps none of the held-out words
        return 0.0
    usual = np.array([np.interp(prior, grid, word) for word in smooth.T])
    lost = smooth[place] - usual
    error = float(lost.std()) / max(len(lost), 1) ** 0.5
    clear = float(lost.mean()) > CLEAR * error + 1e-9
    return round(max(grid[place] - MIXING_BIAS, 0.0), 2) if clear else prior


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What a recipe leaves open, decided.

    Attributes:
        settings: Settings of the aligner to take in the place of the recipe's.
        mixing: λ; None without a language model.
        calibration: Confidences, or a note why there are none.
        report: What the trial found.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    mixing: float | None = None
    calibration: Calibration
    report: TrialReport

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "settings": dict(self.settings),
            "mixing": self.mixing,
            "calibration": self.calibration.as_dict(),
            "report": self.report.as_dict(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Decisions:
        """What `as_dict` gave."""
        return cls(
            settings=stored["settings"],
            mixing=stored["mixing"],
            calibration=Calibration.from_dict(stored["calibration"]),
            report=from_json(TrialReport, stored["report"]),
        )


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
    """Decide all that was left open, on held-out seeds where there are enough, else by the priors."""
    usable = lexicon.covered(source.key_to_index, target.key_to_index) if lexicon is not None else Lexicon([])
    return PairTrial(
        aligner=aligner,
        source=source,
        target=target,
        usable=usable,
        stage=encoder,
        choose_preset=choose_preset,
        calibrate=calibrate,
        held_out=held_out,
        progress=progress,
    ).decisions()


Fit = TypeVar("Fit")
Half = TypeVar("Half")
_Half_contra = TypeVar("_Half_contra", contravariant=True)


class Scores(Protocol[_Half_contra]):
    """The scores of the held-out words with one candidate."""

    def mean(self, half: _Half_contra | None = None, /) -> float:
        """The mean over both directions; `half` of the words, or all."""


@dataclass(eq=False, kw_only=True)
class Trial(ABC, Generic[Fit, Half]):
    """One trial; `decisions` carries it out."""

    aligner: Aligner
    choose_preset: bool = True
    calibrate: bool
    held_out: float
    progress: Progress
    fits: dict[str, Fit] = field(init=False, default_factory=dict)
    failed: dict[str, str] = field(init=False, default_factory=dict)
    settings_of: dict[str, dict[str, Any]] = field(init=False, default_factory=dict)
    form_scores: dict[str, Scores[Half]] = field(init=False, default_factory=dict)
    fewest = FEWEST_SEEDS
    opens_mixing = False

    @property
    @abstractmethod
    def words(self) -> int:
        """Source words of the seeds that are in the vectors."""

    @property
    @abstractmethod
    def held_out_words(self) -> int:
        """Of these, the words that are held out; 0 where there are too few seeds."""

    @property
    @abstractmethod
    def steps(self) -> list[dict[str, dict[str, Any]]]:
        """What is left open: candidates by name, as changed settings, the prior first."""

    @abstractmethod
    def fit(self, aligner: Aligner) -> Fit:
        """Fit a candidate without the held-out words."""

    @abstractmethod
    def scores(self, fitted: Fit) -> Scores[Half]:
        """The scores of the held-out words."""

    @abstractmethod
    def learn(self) -> Calibration:
        """Confidences from the held-out words."""

    def choice(self, half: Half | None) -> Choice:
        """What some of the held-out words prefer; None for all of them."""
        return Choice(self._form(half), None)

    def decisions(self) -> Decisions:
        """The choices and confidences; the priors where the trial cannot be held or fails."""
        started = time.monotonic()
        found = self._decided()
        return replace(found, report=replace(found.report, seconds=round(time.monotonic() - started, 2)))

    def _decided(self) -> Decisions:
        if not (self.opens_form or self.opens_mixing or self.calibrates):
            return self._priors("there was nothing to decide")
        if not self.held_out_words:
            return self._priors(
                f"{self.words} seed words in the vectors are too few to hold some out "
                f"({self.fewest} are needed)"
            )
        presets = f" with presets {' and '.join(self.steps[0])}" if len(self.steps[0]) > 1 else ""
        self.progress.say(
            f"Trial: {self.held_out_words} seed words are held out of a smaller fit of "
            f"{self.aligner.name}{presets}."
        )
        try:
            self._fit_candidates()
            if not self.fits:
                return self._priors(f"no candidate could be fitted ({next(iter(self.failed.values()))})")
            return self._judged()
        except FAILURES as error:
            return self._priors(f"the trial could not be finished ({error})")

    def _fit_candidates(self) -> None:
        """Fit the candidates of each step, with what the steps before it chose."""
        for place in range(len(self.steps)):
            settings: dict[str, Any] = {}
            if place:
                if not self.fits or not 0 < self.form_scores[self._form(None)].mean() < WEAK:
                    return
                settings = self.settings_of[self._form(None)]
            for name, change in self._step(place, self._form(None) if place else None).items():
                self.settings_of[name] = {**settings, **change}
                self._fit_candidate(name)

    def _fit_candidate(self, name: str) -> None:
        """Fit one candidate without the held-out words and score these; a failure leaves it out."""
        try:
            fitted = self.fit(type(self.aligner)(**{**self.aligner.settings(), **self.settings_of[name]}))
            if self.opens_form:
                self.form_scores[name] = self.scores(fitted)
            self.fits[name] = fitted
        except FAILURES as error:
            self.failed[name] = str(error)
            self.progress.say(f"Trial: preset {name} could not be fitted and is left out ({error}).")

    def _step(self, place: int, chosen: str | None) -> dict[str, dict[str, Any]]:
        """The candidates of a step by their whole names."""
        return {f"{chosen}, {name}" if chosen else name: part for name, part in self.steps[place].items()}

    @property
    def opens_form(self) -> bool:
        """Whether there is more than one candidate."""
        return sum(map(len, self.steps)) > 1

    @property
    def calibrates(self) -> bool:
        """Whether confidences are to be learned and can be."""
        return self.calibrate and self.words >= _FEWEST_TO_CALIBRATE

    def _form(self, half: Half | None) -> str:
        """Step by step, what beats the choice so far clearly, as far as candidates were fitted."""
        chosen: str | None = None
        for place in range(len(self.steps)):
            names = [*([chosen] if chosen else []), *self._step(place, chosen)]
            fitted = [name for name in names if name in self.fits]
            if len(fitted) > 1:
                chosen = choose_form({name: self.form_scores[name].mean(half) for name in fitted})
            elif fitted:
                chosen = fitted[0]
        if chosen is None:
            raise BilexError("no candidate could be fitted")
        return chosen

    def _judged(self) -> Decisions:
        """Choose on all held-out words, and learn confidences from halves that did not choose."""
        chosen = self.choice(None)
        try:
            calibration = self.learn() if self.calibrates else self._no_calibration()
        except FAILURES as error:  # the choice still stands
            calibration = self._no_calibration(str(error))
        report = TrialReport(
            ran=True,
            note=self._sentence(chosen),
            held_out_words=self.held_out_words,
            form=chosen.form if self.opens_form else None,
            form_scores={name: round(scores.mean(), 4) for name, scores in self.form_scores.items()},
            failed=self.failed,
            mixing=chosen.mixing if self.opens_mixing else None,
            mixing_scores=self.shown_curve(chosen.form) if self.opens_mixing else {},
        )
        self.progress.say(f"Trial: {report.note}.")
        return Decisions(
            settings=self.settings_of[chosen.form],
            mixing=chosen.mixing,
            calibration=calibration,
            report=report,
        )

    def _priors(self, note: str) -> Decisions:
        """What is taken without evidence."""
        form, mixing = next(iter(self.steps[0])), self.given_mixing()
        taken = [f"preset {form}"] if self.opens_form else []
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
        return Decisions(settings=self.steps[0][form], mixing=mixing, calibration=calibration, report=report)

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
            parts.append(f"preset {chosen.form} is taken (mean reciprocal rank: {scores})")
        if self.opens_mixing:
            parts.append(f"λ = {chosen.mixing} is taken")
        return "; ".join(parts) or "confidences were learned on the held-out words"

    def given_mixing(self) -> float | None:
        """λ without evidence; None without a language model."""
        return None

    def shown_curve(self, form: str) -> dict[str, float]:
        """The score of each λ."""
        return {}


@dataclass(eq=False, kw_only=True)
class PairTrial(Trial[Aligner, Pairs]):
    """The trial of two languages, with a language model or without."""

    source: WordVectors
    target: WordVectors
    usable: Lexicon
    stage: C2 | None

    @cached_property
    def words(self) -> int:  # type: ignore[override]
        """Source words of the seeds that are in the vectors."""
        return len(self.usable.translations())

    @property
    def held_out_words(self) -> int:
        """Source words that are held out; 0 where there are too few."""
        return len(self.split[1].translations()) if self.split else 0

    @cached_property
    def steps(self) -> list[dict[str, dict[str, Any]]]:  # type: ignore[override]
        """What the aligner leaves open: candidates by name, as changed settings, the prior first."""
        steps = self.aligner.choices(len(self.usable)) if self.choose_preset else []
        return steps or [{str(self.aligner.settings().get("preset", self.aligner.name)): {}}]

    @property
    def opens_mixing(self) -> bool:  # type: ignore[override]
        """Whether λ is to be chosen."""
        return self.stage is not None and self.stage.mixing == "auto"

    @cached_property
    def split(self) -> tuple[Lexicon, Lexicon] | None:
        """The pairs to learn from and those held out; None where there are too few."""
        return hold_out(self.usable, self.held_out, self.aligner.seed)

    @cached_property
    def _learned(self) -> Lexicon:
        return self.split[0] if self.split else Lexicon([])

    @cached_property
    def _tested(self) -> Lexicon:
        return self.split[1] if self.split else Lexicon([])

    @cached_property
    def small(self) -> tuple[WordVectors, WordVectors]:
        """The vocabularies that the candidates learn on."""
        return small_vocabularies(self.source, self.target, self.usable, WORDS)

    def _rows(self, pairs: Lexicon) -> Pairs:
        source, target = self.small
        return pairs.index(source.key_to_index, target.key_to_index)

    def fit(self, aligner: Aligner) -> Aligner:
        """Fit a candidate, shortened, on frequent words and without the held-out ones."""
        size = len(self.usable), min(len(self.source), len(self.target))
        return aligner.for_trial(*size).fit(*self.small, self._learned, progress=self.progress)

    def scores(self, fitted: Aligner) -> WordScores:
        """The scores of the held-out words among frequent ones."""
        space = Space.from_aligner(fitted, *self.small)
        x, y = (np.asarray(side.vectors) for side in (space.source, space.target))
        return word_scores(x, y, self._rows(self._tested), self.aligner.device)

    def learn(self) -> Calibration:
        """Confidences from the answers to each half's words by what the other half chose."""
        return learn_confidences(
            self._cross_fitted(self._tested),
            self.aligner.seed,
            pooled=self.aligner.name == "c1" and self.stage is None,
        )

    def _cross_fitted(self, held_out: Lexicon) -> Records:
        if len(self.fits) == 1 and not self.opens_mixing:
            return ask(self._space(self.choice(None)), held_out, self.usable)
        one, other = halves(held_out, self.aligner.seed)
        if not len(one) or not len(other):
            raise BilexError("the held-out words cannot be cut in halves")
        by_one, by_other = self.choice(self._rows(one)), self.choice(self._rows(other))
        if by_one == by_other:
            return ask(self._space(by_one), held_out, self.usable)
        first = ask(self._space(by_other), one, self.usable)
        second = ask(self._space(by_one), other, self.usable)
        return {key: first[key] + second[key] for key in first if key in second}

    def choice(self, half: Pairs | None) -> Choice:
        """The form and λ that some of the held-out words prefer; None for all of them."""
        form = self._form(half)
        if self.stage is None or not self.opens_mixing:
            return Choice(form, self.given_mixing())
        curve = self.encoder.curve(form).items()
        words = {mixing: np.concatenate(scores.of(half)) for mixing, scores in curve}
        return Choice(form, choose_mixing(words, self._prior_mixing(self.stage)))

    def given_mixing(self) -> float | None:
        """λ without evidence: the one that was given, or the prior; None without a language model."""
        if self.stage is None:
            return None
        given = self.stage.mixing
        return self._prior_mixing(self.stage) if isinstance(given, str) else float(given)

    def _prior_mixing(self, stage: C2) -> float:
        return replace(stage, mixing="prior").mixing_for(stage.open_encoder or stage.open(self.progress))

    @cached_property
    def encoder(self) -> TrialEncoder:
        """The language model beside the candidates, tuned in the space of the form that all words prefer."""
        from bilex.fit.trial_encoder import TrialEncoder

        if self.stage is None:
            raise BilexError("there is no language model to try.")
        return TrialEncoder(
            self.fits,
            self._form(None),
            self.small,
            self._learned,
            self._rows(self._tested),
            len(self.usable),
            self.stage,
            self.progress,
        )

    def _space(self, choice: Choice) -> Space:
        """The space of a choice: over all words, or with a language model over the trial's words."""
        if choice.mixing is not None:
            return self.encoder.space(choice.form, choice.mixing)
        return Space.from_aligner(self.fits[choice.form], self.source, self.target)

    def shown_curve(self, form: str) -> dict[str, float]:
        """The score of each λ."""
        return {str(mixing): round(scores.mean(), 4) for mixing, scores in self.encoder.curve(form).items()}
