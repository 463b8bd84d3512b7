"""A first dictionary for C1 when there are no seeds, or few.

Each start that the two vocabularies allow (words spelled alike, shared numerals, words that sound alike, all
of these together, the shapes of the two spaces) is carried through VecMap's self-learning on the most
frequent words. No gold pair says which came out right, but the induced pairs do: where two languages have
been brought together, a part of them predicts the others (`aligners.collapse`). The start whose pairs do so
best wins; one that does so clearly needs no rival, since starts that succeed end in nearly the same pairs. If
none does, there is no result. Few seeds join each of the starts made of pairs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.c1_report import TriedStart
from bilex.aligners.c1_settings import C1Constants
from bilex.aligners.collapse import COLLAPSED
from bilex.aligners.induction import augmentation, induce_pairs
from bilex.aligners.romanised import romanised
from bilex.aligners.small import small_vocabularies
from bilex.aligners.starts import identical_strings, numerals
from bilex.aligners.vecmap import VecMapSemi, VecMapUnsupervised
from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.aligners.c1 import C1

    SelfLearning = VecMapSemi | VecMapUnsupervised
    Start = tuple[str, SelfLearning, Lexicon | None]

# Fewer shared words or numerals than this carry no start.
_FEWEST_SHARED = 20
# Words of each language among which starts are looked for. Rarer ones bring shared spellings that are no
# translations, and a mean that is no longer that of the frequent words.
_START_WORDS = 20_000
# A start that brought the languages together so well that the others are not tried: on two families of
# vectors every start that reached this ended within 0.02 of the best (docs/recipe.md).
_CLEAR = 0.5
# Words of each language on which starts are compared, and self-learning's patience there.
_COMPARED_WORDS = 4_000
_PATIENCE = 10


class _Trial(NamedTuple):
    """What came of one start: the aligner, the share of pairs that others predict, their similarity."""

    name: str
    aligner: SelfLearning
    recovered: float
    similarity: float


def first_dictionary(
    c1: C1,
    source: WordVectors,
    target: WordVectors,
    seeds: Pairs,
    constants: C1Constants,
    progress: Progress,
) -> Pairs:
    """The pairs from which C1 starts without seeds, or with few; what was tried is kept in its report.

    Seeds stay alone where the two vocabularies have nothing to join them.

    Raises:
        BilexError: There are no seeds, and no start is possible or every one of them collapsed.
    """
    given = _words(source, target, seeds)
    frequent = small_vocabularies(source, target, Lexicon(given), _START_WORDS)
    possible = _possible(c1, *frequent, given)
    if [name for name, *_ in possible] == ["seeds"]:
        return seeds
    trials = _trials(possible, frequent, progress)
    starts = {
        trial.name: TriedStart(recovered=round(trial.recovered, 4), similarity=round(trial.similarity, 4))
        for trial in trials
    }
    c1.report_ = replace(c1.report_, starts=starts)
    best = max(trials, key=lambda trial: (trial.recovered, trial.similarity))
    tried = ", ".join(f"{trial.name} {trial.recovered:.0%}" for trial in trials)
    if best.recovered < COLLAPSED:
        if len(seeds):
            progress.say(
                f"{len(seeds)} seeds: no other start helps (pairs that the others predict: {tried})."
            )
            return seeds
        raise BilexError(
            f"without seeds the two languages could not be brought together (pairs that the other pairs "
            f"predict: {tried}); give even a few dozen seed pairs with --seeds."
        )
    c1.report_ = replace(c1.report_, start=best.name)
    known = f"{len(seeds)} seeds" if len(seeds) else "No seeds"
    progress.say(f"{known}: starting from {best.name} (pairs that the other pairs predict: {tried}).")
    x = torch.from_numpy(best.aligner.source_map_(source.vectors))
    y = torch.from_numpy(best.aligner.target_map_(target.vectors))
    induced = induce_pairs(
        x, y, frequent=constants.frequent, keep=constants.augment, k=c1.neighbours, device=c1.device
    )
    return np.concatenate([seeds, augmentation(induced, seeds)])


def _possible(c1: C1, source: WordVectors, target: WordVectors, seeds: list[tuple[str, str]]) -> list[Start]:
    """The starts that the vocabularies and the user's settings allow."""
    settings: dict[str, Any] = {
        "device": c1.device,
        "seed": c1.seed,
        "frequent": _COMPARED_WORDS,
        "patience": _PATIENCE,
    }
    rows = {
        "identical": identical_strings(source, target),
        "numerals": numerals(source, target),
        "romanised": romanised(source, target),
    }
    found = {name: _words(source, target, pairs) for name, pairs in rows.items()}
    together = list(dict.fromkeys(pair for pairs in found.values() for pair in pairs))
    if len(together) > max(map(len, found.values())):
        found["shared"] = together
    starts: list[Start] = [
        (name, VecMapSemi(**settings), Lexicon([*seeds, *pairs], name))
        for name, pairs in found.items()
        if len(pairs) >= _FEWEST_SHARED
    ]
    if seeds:
        starts.append(("seeds", VecMapSemi(**settings), Lexicon(seeds, "seeds")))
    else:
        starts.append(("unsupervised", VecMapUnsupervised(**settings), None))
    wanted = [start for start in starts if c1.start in ("auto", start[0]) or start[0] == "seeds"]
    if not wanted:
        counts = ", ".join(f"{len(pairs)} {name}" for name, pairs in found.items())
        raise BilexError(
            f"start '{c1.start}' needs at least {_FEWEST_SHARED} such words that both languages have; these "
            f"share {counts}; use start=unsupervised or give seeds."
        )
    return wanted


def _words(source: WordVectors, target: WordVectors, pairs: Pairs) -> list[tuple[str, str]]:
    """Pairs of rows as pairs of words."""
    return [(source.index_to_key[a], target.index_to_key[b]) for a, b in pairs]


def _trials(
    possible: list[Start], frequent: tuple[WordVectors, WordVectors], progress: Progress
) -> list[_Trial]:
    """Carry starts through self-learning, one after the other, until one succeeds clearly."""
    trials: list[_Trial] = []
    for start in possible:
        trials.append(_tried(*start, *frequent, progress))
        if trials[-1].recovered >= _CLEAR:
            break
    return trials


def _tried(
    name: str,
    aligner: SelfLearning,
    lexicon: Lexicon | None,
    source: WordVectors,
    target: WordVectors,
    progress: Progress,
) -> _Trial:
    """Carry one start through self-learning on the frequent words (its pairs may lie beyond them)."""
    words = None if lexicon is not None else 2 * _COMPARED_WORDS
    progress.say(f"Trying the start from {name}.")
    aligner.fit(source.head(words), target.head(words), lexicon, progress=progress)
    return _Trial(name, aligner, aligner.report_.recovered, aligner.report_.objective)
