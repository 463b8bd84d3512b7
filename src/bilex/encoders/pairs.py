"""What the encoder is tuned on: positive pairs and hard negatives, both from the aligner's space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bilex.aligners.base import Pairs
from bilex.aligners.induction import induce_pairs, without_pairs, without_words_of
from bilex.encoders.settings import TuningSettings
from bilex.search import top_k

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

ENOUGH_SEEDS = 2_236  # the geometric middle of 1k and 5k, as in stage C1
_FREQUENT = 20_000
_KEPT_PER_SIDE = 6_000


@dataclass(frozen=True)
class TrainingPairs:
    """Positive pairs and the negatives of each, as rows of the two vocabularies.

    Positives may repeat and then count twice; the first `seeds` are the user's own, the rest was induced. The
    source negatives of a pair are near its target word, the target negatives near its source word.
    """

    positives: Pairs
    source_negatives: Integers
    target_negatives: Integers
    seeds: int

    def __len__(self) -> int:
        return len(self.positives)


def positive_pairs(
    source: Floats,
    target: Floats,
    seeds: Pairs,
    induced: int,
    device: str = "auto",
    rejected: Pairs | None = None,
) -> Pairs:
    """The pairs to tune on: the seeds, and with few seeds the surest induced pairs besides.

    The paper has two cases: 5,000 seeds stand alone, 1,000 seeds are joined by 4,000 induced pairs. For any
    other number the cases change over at 2,236 usable seeds, the geometric middle. The induced pairs are half
    CSLS's best, of the 20,000 most frequent words of each side, 6,000 per side, taken in turn from either
    side by rank; a pair with a seed's source or target word is left out, and so are repeated and rejected
    ones. The vectors are unit rows in the common space.
    """
    if len(seeds) >= ENOUGH_SEEDS or induced == 0:
        return seeds
    found = induce_pairs(source, target, frequent=_FREQUENT, keep=_KEPT_PER_SIDE, device=device)
    fresh = without_words_of(interleaved(found.forward, found.backward), seeds)
    if rejected is not None:
        fresh = without_pairs(fresh, rejected)
    _, first = np.unique(fresh, axis=0, return_index=True)
    return np.concatenate([seeds, fresh[np.sort(first)][:induced]])


def interleaved(forward: Pairs, backward: Pairs) -> Pairs:
    """The pairs of two lists in turn, best first; what is left of the longer list follows."""
    both = min(len(forward), len(backward))
    turns = np.stack([forward[:both], backward[:both]], axis=1).reshape(-1, 2)
    return np.concatenate([turns, forward[both:], backward[both:]])


def hard_negatives(
    queries: Floats, keys: Floats, partners: Integers, count: int, device: str = "auto"
) -> Integers:
    """For each query the `count` keys of highest cosine, or all, but its own translation, its partner."""
    if count == 0:
        return np.zeros((len(queries), 0), np.int64)
    _, nearest = top_k(queries, keys, count + 1, device=device)
    left_out = nearest == partners[:, None]
    left_out[~left_out.any(axis=1), -1] = True
    kept: Integers = nearest[~left_out].reshape(len(queries), nearest.shape[1] - 1)
    return kept


def training_pairs(
    source: Floats,
    target: Floats,
    seeds: Pairs,
    settings: TuningSettings,
    device: str = "auto",
    rejected: Pairs | None = None,
) -> TrainingPairs:
    """Positives and negatives in the aligner's space; see `positive_pairs` and `hard_negatives`."""
    positives = positive_pairs(source, target, seeds, settings.induced, device, rejected)
    positives = positives[: settings.max_pairs]
    xs, ys = positives[:, 0], positives[:, 1]
    return TrainingPairs(
        positives,
        hard_negatives(target[ys], source[: settings.frequent], xs, settings.negatives, device),
        hard_negatives(source[xs], target[: settings.frequent], ys, settings.negatives, device),
        min(len(seeds), len(positives)),
    )
