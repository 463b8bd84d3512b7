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

# Candidates are presets of the method; the first is the prior, taken also where two do equally well.
FORMS = ("paper", "best")

# Candidates learn on so many of the most frequent words of each language (and those of the seeds), in at
# most so many rounds, with this share of the updates of a whole fit but at least so many.
WORDS = 10_000
ROUNDS = 2
UPDATE_SHARE, UPDATES_AT_LEAST = 0.2, 12

MIXING_GRID = tuple(round(0.1 * step, 1) for step in range(11))


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
    words = len(lexicon.golds())
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


def shortened(aligner: Aligner) -> Aligner:
    """A candidate with less to do: fewer rounds and updates, where a method has them.

    Args:
        aligner: A candidate whose settings are `pinned`.
    """
    settings = aligner.settings()
    updates, rounds = settings.get("updates"), settings.get("iterations")
    if updates is None or rounds is None:
        return aligner.clone()
    fewer = min(updates, max(UPDATES_AT_LEAST, round(UPDATE_SHARE * updates)))
    return type(aligner)(**{**settings, "updates": fewer, "iterations": min(rounds, ROUNDS)})


def choose_form(scores: Mapping[str, float]) -> str:
    """The form to take.

    Args:
        scores: For each candidate the mean reciprocal rank on held-out words, both directions, by CSLS; the
            prior comes first.
    """
    return max(scores, key=lambda form: scores[form])


def choose_mixing(curve: Mapping[float, float], prior: float) -> float:
    """The λ to take.

    The curve is smoothed over neighbouring λ (weights 1, 2, 1), since a few hundred words make noise; of
    λ that are equally good the one nearest to the prior is taken.

    Args:
        curve: For each λ of the grid the mean reciprocal rank on held-out words, both directions, by CSLS.
        prior: The encoder's usual λ.
    """
    grid = sorted(curve)
    padded = np.pad([curve[mixing] for mixing in grid], 1, mode="edge")
    smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    best = np.flatnonzero(smooth >= smooth.max() - 1e-12)
    return float(min((grid[place] for place in best), key=lambda mixing: abs(mixing - prior)))


def trial_tuning(settings: TuningSettings, preset: TuningPreset) -> TuningSettings:
    """How the encoder is tuned in the trial: on machines without a GPU with half the epochs.

    Args:
        settings: The tuning of the fit itself.
        preset: Its name.
    """
    if preset == "paper":
        return settings
    return replace(settings, epochs=max(1, settings.epochs // 2))
