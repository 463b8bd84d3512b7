"""Choosing C1's preset and number of rounds by cross-validation on the seed pairs, never on test data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from bilex.aligners.base import Pairs
from bilex.aligners.c1 import C1
from bilex.aligners.c1_settings import C1Constants
from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.similarity import csls_top_k, neighbourhoods
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.progress import Progress

CANDIDATES = ("auto", "best")
# Trials run on the most frequent words, and need this many held-out pairs to tell presets apart.
_TRIAL_WORDS = 20_000
_FOLDS = 3
_FEWEST_HELD_OUT = 30


@dataclass(kw_only=True, repr=False)
class _Watched(C1):
    """C1 that notes, after every round, how well it translates pairs that it has not seen."""

    held_out: Pairs = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    words: tuple[WordVectors, WordVectors] | None = None
    scores_: list[float] = field(init=False, default_factory=list)

    def _after_round(self, done: int) -> None:
        if self.words is None:
            raise BilexError("a watched fit needs the words that it is watched on.")
        x = self.source_map_(self.words[0].vectors)
        y = self.target_map_(self.words[1].vectors)
        r_x, r_y = neighbourhoods(x, y, self.neighbours, device=self.device)
        rows, gold = self.held_out[:, 0], self.held_out[:, 1]
        _, forward = csls_top_k(x[rows], y, 1, query_mean=r_x[rows], key_mean=r_y, device=self.device)
        _, backward = csls_top_k(y[gold], x, 1, query_mean=r_y[gold], key_mean=r_x, device=self.device)
        self.scores_.append(float(((forward[:, 0] == gold).mean() + (backward[:, 0] == rows).mean()) / 2))


def choose(c1: C1, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress) -> C1Constants:
    """The constants that translate held-out seed pairs best, both directions, by CSLS.

    Each preset in `CANDIDATES` is fitted on all but a third of the seed words, three times over, on the
    20,000 most frequent words; the preset and the round with the highest mean P@1 are taken, the fewer
    rounds where two are equal. What was tried is kept in the aligner's report.

    Raises:
        BilexError: There are too few seed pairs among the frequent words.
    """
    frequent = pairs[(pairs < _TRIAL_WORDS).all(axis=1)]
    heads = source.head(_TRIAL_WORDS), target.head(_TRIAL_WORDS)
    if len(frequent) < _FOLDS * _FEWEST_HELD_OUT:
        raise BilexError(
            f"cross-validation needs at least {_FOLDS * _FEWEST_HELD_OUT} seed pairs among the "
            f"{_TRIAL_WORDS} most frequent words, not {len(frequent)}; leave cross_validate off."
        )
    smaller = min(len(source), len(target))
    constants = {
        preset: C1(**{**c1.settings(), "preset": preset}).constants(len(pairs), smaller)
        for preset in CANDIDATES
    }
    curves: dict[str, np.ndarray] = {}
    with progress.task("cross-validating", len(CANDIDATES) * _FOLDS) as task:
        for preset in CANDIDATES:
            trials = []
            for fold in range(_FOLDS):
                trials.append(_trial(c1, constants[preset], heads, frequent, fold))
                task.advance(preset=preset)
            curves[preset] = np.mean(trials, axis=0)
    best = max(CANDIDATES, key=lambda preset: curves[preset].max())
    rounds = int(curves[best].argmax()) + 1
    c1.report_["cross_validation"] = {name: [round(float(v), 4) for v in c] for name, c in curves.items()}
    progress.say(f"Cross-validation on the seeds: preset {best}, {rounds} rounds.")
    return replace(constants[best], iterations=rounds)


def _trial(
    c1: C1, constants: C1Constants, heads: tuple[WordVectors, WordVectors], pairs: Pairs, fold: int
) -> list[float]:
    """P@1 on the held-out pairs of one fold after each round; no held-out word is among the seeds."""
    words = np.unique(pairs[:, 0])
    held_words = np.random.default_rng(c1.seed).permutation(words)[fold::_FOLDS]
    held_out = pairs[np.isin(pairs[:, 0], held_words)]
    seeds = pairs[~np.isin(pairs[:, 0], held_words) & ~np.isin(pairs[:, 1], held_out[:, 1])]
    lexicon = Lexicon([(heads[0].index_to_key[a], heads[1].index_to_key[b]) for a, b in seeds], "the seeds")
    settings = {**c1.settings(), **asdict(constants), "cross_validate": False}
    return _Watched(**settings, held_out=held_out, words=heads).fit(*heads, lexicon).scores_
