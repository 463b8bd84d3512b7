"""Choosing λ, the weight of the encoder, on seed pairs that nothing has learned from.

The aligner and the encoder have both been fitted to the seeds, so the seeds cannot tell how the two
compare on new words. A fifth of the seed words is therefore held out, aligner and encoder are fitted once
more without them, and λ is what translates the held-out words best. Test data are never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bilex.encoders.combine import Combination, mixed_views
from bilex.lexicon import Lexicon
from bilex.progress import SILENT, Progress
from bilex.similarity import csls_top_k, neighbourhoods

Floats = npt.NDArray[np.float32]
GRID = tuple(round(0.1 * step, 1) for step in range(11))
_ANSWERS = 10


@dataclass(frozen=True)
class MixingChoice:
    """A chosen λ, and the held-out scores (mean reciprocal rank, both directions) it was chosen by."""

    mixing: float
    scores: dict[float, float]
    held_out: int


def choose_mixing(
    combination: Combination,
    static: tuple[Floats, Floats],
    encoded: tuple[Floats, Floats],
    held_out: npt.NDArray[np.int64],
    *,
    grid: Sequence[float] = GRID,
    device: str = "auto",
    progress: Progress = SILENT,
) -> MixingChoice:
    """The λ of `grid` that translates held-out pairs best, both ways, by CSLS.

    The score of a λ is the mean reciprocal rank of the best gold among ten answers; scores are smoothed
    over neighbouring λ (weights 1, 2, 1) before the best is taken, since a few hundred words make noise.

    Args:
        combination: The maps, learned without the held-out pairs.
        static: Source and target vectors in the aligner's space, unit rows, made without them too.
        encoded: Source and target vectors of the encoder, likewise.
        held_out: The pairs, as rows of those vectors.
        grid: The λ to try.
        device: "auto", "cpu" or "cuda".
        progress: Who is told how far the work is.
    """
    scores = []
    with progress.task("Choosing λ", len(grid)) as task:
        views = [combination.views(s, e) for s, e in zip(static, encoded, strict=True)]
        for mixing in grid:
            source, target = (mixed_views(*side, mixing) for side in views)
            scores.append(held_out_score(source, target, held_out, device))
            task.advance(1, λ=mixing, score=round(scores[-1], 3))
    padded = np.pad(scores, 1, mode="edge")
    smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    best = float(grid[int(np.argmax(smooth))])
    return MixingChoice(best, dict(zip(grid, scores, strict=True)), len(np.unique(held_out[:, 0])))


def held_out_score(
    source: Floats, target: Floats, pairs: npt.NDArray[np.int64], device: str = "auto"
) -> float:
    """Mean reciprocal rank by CSLS over the pairs' words, mean of both directions."""
    r_source, r_target = neighbourhoods(source, target, _ANSWERS, device=device)
    sides = (
        (source, target, r_source, r_target, pairs),
        (target, source, r_target, r_source, pairs[:, ::-1]),
    )
    return float(np.mean([_one_way(*side, device=device) for side in sides]))


def _one_way(
    queries: Floats,
    keys: Floats,
    r_queries: Floats,
    r_keys: Floats,
    pairs: npt.NDArray[np.int64],
    device: str,
) -> float:
    asked, place = np.unique(pairs[:, 0], return_inverse=True)
    _, answers = csls_top_k(
        np.ascontiguousarray(queries[asked]),
        keys,
        _ANSWERS,
        query_mean=r_queries[asked],
        key_mean=r_keys,
        device=device,
    )
    hits = answers[place.reshape(-1)] == pairs[:, 1:]
    reciprocal = np.where(hits.any(axis=1), 1 / (1 + hits.argmax(axis=1)), 0)
    best = np.zeros(len(asked))
    np.maximum.at(best, place.reshape(-1), reciprocal)
    return float(best.mean())


def split_seeds(lexicon: Lexicon, seed: int) -> tuple[Lexicon, Lexicon] | None:
    """Cut a fifth of the source words off a seed list, or None where that is fewer than 20 words."""
    held_out = len(lexicon.golds()) // 5
    return lexicon.split(held_out, seed) if held_out >= 20 else None
