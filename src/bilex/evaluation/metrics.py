"""From the rank of the right answer to figures: precision at n, mean reciprocal rank, intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ranks = npt.NDArray[np.int64]
Metrics = dict[str, float]
Intervals = dict[str, tuple[float, float]]

_REPLICATES_AT_ONCE = 64


def figure_names(precision_at: Sequence[int]) -> list[str]:
    """The names of the figures, in order: "p@1", ..., "mrr"."""
    return [f"p@{n}" for n in precision_at] + ["mrr"]


def scores_of(ranks: Ranks, precision_at: Sequence[int]) -> npt.NDArray[np.float64]:
    """What each query adds to each figure, shape (queries, figures).

    Args:
        ranks: The rank of the best right answer, from 1.
        precision_at: The n of each precision.
    """
    hits = [ranks <= n for n in precision_at]
    return np.stack([*hits, 1.0 / ranks], axis=1).astype(np.float64)


def mean_metrics(ranks: Ranks, precision_at: Sequence[int], denominator: int | None = None) -> Metrics | None:
    """The figures over some queries.

    Args:
        ranks: The rank of the best right answer, from 1.
        precision_at: The n of each precision.
        denominator: Divide by this instead of the number of queries: queries without an answer then
            count as failures.

    Returns:
        Fractions between 0 and 1 by name, or None when there is nothing to divide by.
    """
    count = len(ranks) if denominator is None else denominator
    if not count:
        return None
    sums = scores_of(ranks, precision_at).sum(axis=0)
    return {name: float(value) / count for name, value in zip(figure_names(precision_at), sums, strict=True)}


def bootstrap_intervals(
    ranks: Ranks, precision_at: Sequence[int], *, replicates: int, seed: int, level: float = 0.95
) -> Intervals:
    """Percentile bootstrap intervals of the figures, resampling the source words.

    Args:
        ranks: The rank of the best right answer of each source word, from 1; at least one.
        precision_at: The n of each precision.
        replicates: How many resamplings.
        seed: Fixes them.
        level: How much of the resampled figures lies inside.
    """
    values = scores_of(ranks, precision_at)
    count = len(values)
    generator = np.random.default_rng(seed)
    means = np.empty((replicates, values.shape[1]))
    for start in range(0, replicates, _REPLICATES_AT_ONCE):
        size = min(_REPLICATES_AT_ONCE, replicates - start)
        times = generator.multinomial(count, np.full(count, 1 / count), size=size)
        means[start : start + size] = times @ values / count
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {
        name: (float(a), float(b)) for name, a, b in zip(figure_names(precision_at), low, high, strict=True)
    }
