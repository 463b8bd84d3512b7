"""The held-out trial of a joint fit: it chooses the form of C1, and learns confidences, from the same fits.

Some seed words are held out with all their translations in all languages. The candidates, among them the
plain joint mapping without contrast, are fitted without them and with fewer updates; what translates the
held-out words of all dictionaries best is taken. Test data are never looked at.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bilex.aligners.c1 import C1
from bilex.aligners.c1_settings import MANY_SEEDS
from bilex.aligners.preparation import small_vocabularies
from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import as_json, from_json
from bilex.fit.calibration import FEWEST_WORDS, Calibration, calibrate
from bilex.fit.held_out import word_scores
from bilex.fit.trial import choose_form
from bilex.lexicon import Lexicon
from bilex.model.many.jointly import FREQUENT, JointFit, fit_jointly
from bilex.model.many.mapping import Two
from bilex.model.provenance import JointTrial
from bilex.model.space import Space, map_words
from bilex.vectors import WordVectors

MAPPING = "mapping"  # the form without contrastive updates
_HELD_OUT_SHARE = 0.1
_HELD_OUT_AT_LEAST = 200
_NEVER_MORE_THAN = 5
Word = tuple[str, str]


@dataclass(frozen=True)
class JointDecisions:
    """What the trial decided.

    Attributes:
        settings: What the settings of C1 become.
        calibrations: Confidences by two languages that have seeds.
        report: The scores of the forms, or why there are none.
    """

    settings: dict[str, Any]
    calibrations: dict[Two, Calibration]
    report: JointTrial = field(default_factory=JointTrial)

    def as_dict(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {
            "settings": self.settings,
            "calibrations": [[*two, found.as_dict()] for two, found in self.calibrations.items()],
            "report": as_json(self.report),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> JointDecisions:
        """What `as_dict` gave."""
        calibrations = {(a, b): Calibration.from_dict(found) for a, b, found in stored["calibrations"]}
        return cls(stored["settings"], calibrations, from_json(JointTrial, stored["report"]))


def decide(
    vocabularies: Mapping[str, WordVectors],
    seeds: Mapping[Two, Lexicon],
    c1: C1,
    *,
    frequent: int = FREQUENT,
    calibrated: bool = True,
    progress: Progress = SILENT,
) -> JointDecisions:
    """Choose the form of C1 if that is open, and learn confidences if they are wanted.

    Args:
        vocabularies: The vectors of each language as they came from their files.
        seeds: Word pairs by two languages, all of them with both words in the vectors.
        c1: The settings of C1 as the user asked for them; preset "auto" leaves the form open.
        frequent: How many of the most frequent words of each language take part.
        calibrated: Whether confidences are learned.
        progress: Shows how far the work is.
    """
    forms = _forms(c1)
    prior = forms[next(iter(forms))]
    if len(forms) == 1 and not calibrated:
        return JointDecisions(prior, {})
    learned, held_out = split_together(seeds, c1.seed)
    if not any(len(pairs) for pairs in held_out.values()):
        note = "the dictionaries are too small to hold words out"
        return _without(prior, seeds, note, calibrated, progress)
    progress.say(f"Trial: all languages are aligned without held-out seed words ({', '.join(forms)}).")
    fits: dict[str, JointFit] = {}
    scores: dict[str, float] = {}
    for name, settings in forms.items():
        candidate = _shortened(C1(**{**c1.settings(), **settings}), vocabularies, learned)
        try:
            fits[name] = fit_jointly(vocabularies, learned, candidate, frequent=frequent, progress=progress)
        except BilexError as error:
            note = f"the languages cannot be aligned without the held-out pairs ({error})"
            return _without(prior, seeds, note, calibrated, progress)
        scores[name] = _score(vocabularies, fits[name], held_out, frequent, c1.device)
    form = choose_form(scores)
    if len(forms) > 1:
        shown = ", ".join(f"{name} {score:.3f}" for name, score in scores.items())
        progress.say(f"Trial: form {form} is taken (mean reciprocal rank of held-out words: {shown}).")
    calibrations = _calibrations(vocabularies, fits[form], held_out, c1) if calibrated else {}
    report = JointTrial(form=form, form_scores={name: round(score, 4) for name, score in scores.items()})
    return JointDecisions(forms[form], calibrations, report)


def _forms(c1: C1) -> dict[str, dict[str, Any]]:
    """The settings of the forms to compare, by name, the prior first; one if the user has chosen."""
    steps = c1.choices(MANY_SEEDS) or [{c1.preset: {}}]
    found: dict[str, dict[str, Any]] = {name: {"preset": name} for name in steps[0]}
    if c1.preset == "auto" and c1.updates is None:
        found[MAPPING] = {"preset": next(iter(found)), "updates": 0}
    return found


def _shortened(c1: C1, vocabularies: Mapping[str, WordVectors], seeds: Mapping[Two, Lexicon]) -> C1:
    """A candidate with fewer updates, as in the trial of two languages."""
    size = max(map(len, seeds.values())), min(map(len, vocabularies.values()))
    constants = c1.for_trial(*size).constants(*size)
    steps = {name: getattr(constants, name) for name in ("updates", "learning_rate", "decay")}
    return C1(**{**c1.settings(), **steps})


def _score(
    vocabularies: Mapping[str, WordVectors],
    fit: JointFit,
    held_out: Mapping[Two, Lexicon],
    frequent: int,
    device: str,
) -> float:
    """The mean reciprocal rank of held-out words among frequent ones, mean over the dictionaries."""
    scores = []
    for (a, b), pairs in held_out.items():
        if len(pairs):
            source, target = small_vocabularies(vocabularies[a], vocabularies[b], pairs, frequent)
            x, y = (
                np.asarray(map_words(side, fit.maps[c]).vectors) for c, side in ((a, source), (b, target))
            )
            rows = pairs.index(source.key_to_index, target.key_to_index)
            scores.append(word_scores(x, y, rows, device).mean())
    return float(np.mean(scores))


def _calibrations(
    vocabularies: Mapping[str, WordVectors], fit: JointFit, held_out: Mapping[Two, Lexicon], c1: C1
) -> dict[Two, Calibration]:
    """Confidences from the answers to held-out words, by two languages, among all words."""
    mapped = {code: map_words(words, fit.maps[code]) for code, words in vocabularies.items()}
    return {
        (a, b): calibrate(Space(mapped[a], mapped[b], "cosine", c1.device), pairs, c1.seed)
        for (a, b), pairs in held_out.items()
    }


def _without(
    prior: dict[str, Any], seeds: Mapping[Two, Lexicon], why: str, calibrated: bool, progress: Progress
) -> JointDecisions:
    """What is taken where no trial can be held."""
    progress.say(f"Trial: {why}.")
    note = f"not calibrated: {why}"
    calibrations = {two: Calibration(note=note) for two in seeds} if calibrated else {}
    return JointDecisions(prior, calibrations, JointTrial(note=why))


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
        golds = lexicon.translations()
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
