"""The rule of the held-out trial: what is held out, what is tried, and how it is decided.

Everything that a study may change stands here, as plain data and small functions; `trial` carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bilex.aligners.base import Aligner
from bilex.encoders.presets import TuningPreset, TuningSettings
from bilex.lexicon import Lexicon

# With fewer seed words than this nothing is held out, and the priors are taken.
FEWEST_SEEDS = 100
# At least so many words are held out, but never more than this share of the seeds.
HELD_OUT_AT_LEAST, HELD_OUT_AT_MOST = 200, 0.2

# Candidates are presets of the method; the first is the prior. Another form must beat it by this much mean
# reciprocal rank: on 18 settings of two families of vectors that parted right from wrong choices.
FORMS = ("careful", "best")
MARGIN = 0.005

# Candidates learn on so many of the most frequent words of each language (and those of the seeds).
WORDS = 20_000

MIXING_GRID = tuple(round(0.1 * step, 1) for step in range(11))
# On held-out seeds the language model looks better than on the rarer words that users ask for: their best λ
# was 0.1 too high on average, on both families of vectors (research/trial.md).
MIXING_BIAS = 0.1
# So much mean reciprocal rank lost on held-out words is no noise: then the prior is wrong for this encoder.
CLEARLY_WORSE = 0.05


def hold_out(
    lexicon: Lexicon, source: Mapping[str, int], target: Mapping[str, int], share: float, seed: int
) -> tuple[Lexicon, Lexicon] | None:
    """Cut the seeds into those to learn from and those to judge by; None where they are too few.

    The held-out words are drawn at random.

    Args:
        lexicon: The seed pairs, all of them with both words in the vectors.
        source: The rank of every source word, from 0.
        target: Likewise.
        share: The share of the source words to hold out.
        seed: Fixes the draw.

    Returns:
        Two lists that share no word.
    """
    words = len(lexicon.translations())
    if words < FEWEST_SEEDS:
        return None
    count = max(round(share * words), min(HELD_OUT_AT_LEAST, int(HELD_OUT_AT_MOST * words)))
    return lexicon.split(count, seed)


def candidates(aligner: Aligner) -> dict[str, Aligner]:
    """The forms of an aligner that the trial compares, by name, not fitted; the prior comes first.

    A method with a preset "auto", if that is what is asked for, is tried in all its presets of `FORMS`; any
    other stands alone.

    Args:
        aligner: The aligner as the user asked for it.
    """
    settings = aligner.settings()
    forms = [form for form in FORMS if form in aligner.presets]
    if settings.get("preset") != "auto" or not forms:
        return {str(settings.get("preset", aligner.name)): aligner.clone()}
    return {form: type(aligner)(**{**settings, "preset": form}) for form in forms}


def shortened(aligner: Aligner, pairs: int, words: int) -> Aligner:
    """A candidate with less to do: in one pass, and shortened as the method itself says.

    Args:
        aligner: A candidate.
        pairs: Usable seed pairs of the whole problem.
        words: Words in its smaller vocabulary.
    """
    return in_one_pass(aligner.for_trial(pairs, words))


def in_one_pass(aligner: Aligner) -> Aligner:
    """A copy that passes through its rounds once, where a method would several times."""
    settings = aligner.settings()
    return type(aligner)(**{**settings, "passes": 1}) if "passes" in settings else aligner.clone()


def choose_form(scores: Mapping[str, float]) -> str:
    """The form to take: the best one if it clearly beats the prior, else the prior.

    Args:
        scores: For each candidate the mean reciprocal rank on held-out words, both directions, by CSLS; the
            prior comes first.
    """
    prior = next(iter(scores))
    best = max(scores, key=lambda form: scores[form])
    return best if scores[best] > scores[prior] + MARGIN else prior


def choose_mixing(curve: Mapping[float, float], prior: float) -> float:
    """The λ to take: half way between the prior and what the held-out words say.

    The curve is smoothed over neighbouring λ (weights 1, 2, 1), since a few hundred words make noise. Its
    best λ, less what held-out seeds flatter the language model by, counts as much as the prior, and alone
    where going half way would lose much.

    Args:
        curve: For each λ of the grid the mean reciprocal rank on held-out words, both directions, by CSLS.
        prior: The encoder's usual λ.
    """
    grid = sorted(curve)
    padded = np.pad([curve[mixing] for mixing in grid], 1, mode="edge")
    smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    best = np.flatnonzero(smooth >= smooth.max() - 1e-12)
    seen = min((grid[place] for place in best), key=lambda mixing: abs(mixing - prior))
    if seen <= 0:  # the language model helps none of the held-out words
        return 0.0
    honest = max(seen - MIXING_BIAS, 0.0)
    between = (prior + honest) / 2
    if smooth.max() - np.interp(between, grid, smooth) > CLEARLY_WORSE:
        return round(honest, 2)
    return round(between, 2)


def trial_tuning(settings: TuningSettings, preset: TuningPreset) -> TuningSettings:
    """How the encoder is tuned in the trial: on machines without a GPU with half the epochs.

    Args:
        settings: The tuning of the fit itself.
        preset: Its name.
    """
    if preset == "paper":
        return settings
    return replace(settings, epochs=max(1, settings.epochs // 2))
