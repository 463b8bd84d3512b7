"""How long C1's contrastive updates will take on this machine, from a few of them on few pairs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from bilex.aligners.advanced import advanced_maps
from bilex.aligners.base import Pairs
from bilex.aligners.unit_rows import UnitRows
from bilex.core.device import resolve_device
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.aligners.c1 import C1

# Fewer pairs would not keep the cores busy, and a line through their times would lead too high.
_PAIRS = (512, 2048)
# The first few updates move the maps furthest, so that more negatives are searched for again.
_UNSETTLED, _STEPS = 1, 2


def seconds_of_updates(c1: C1, source: WordVectors, target: WordVectors, pairs: Pairs) -> float:
    """Seconds of all contrastive updates of a fit.

    A first update searches for the negatives of every pair, later ones mostly keep them; how many they keep
    depends on how far they move, so they are timed in steps of a fit's mean length. Both are timed for two
    small numbers of pairs; a straight line through them gives the time for all.

    Args:
        c1: The aligner with its settings.
        source: Source vectors.
        target: Target vectors.
        pairs: The usable seed pairs.
    """
    constants = c1.constants(len(pairs), min(len(source), len(target)))
    if not constants.updates:
        return 0.0
    device = resolve_device(c1.device)
    limit = c1.negative_vocabulary or max(len(source), len(target))
    x, y = (UnitRows(part.head(limit), device) for part in (source, target))
    inside = pairs[(pairs < limit).all(axis=1)]
    if len(inside) < _PAIRS[-1]:
        rows = np.arange(min(len(x), len(y), _PAIRS[-1]))
        inside = np.stack([rows, rows], axis=1)
    start = advanced_maps(x[inside[:, 0]], y[inside[:, 1]])
    maps = (start.source.float(), start.target.float())
    mean_rate = constants.learning_rate * float(np.mean(constants.decay ** np.arange(constants.updates)))
    rates = [constants.learning_rate] * (1 + _UNSETTLED) + [mean_rate] * _STEPS
    timed: list[tuple[int, float, float]] = []
    sizes = [min(size, len(inside)) for size in _PAIRS]
    c1.update(c1.objective(x, y, inside[: sizes[0]], constants), maps, rates[0])  # sets things up
    for count in sizes:
        contrast = c1.objective(x, y, inside[:count], constants)
        moments = [time.perf_counter()]
        now = maps
        for rate in rates:
            now, _loss = c1.update(contrast, now, rate)
            moments.append(time.perf_counter())
        timed.append((count, moments[1] - moments[0], (moments[-1] - moments[-1 - _STEPS]) / _STEPS))
    contrasted = len(pairs)
    if constants.contrast_on_augmented or not len(pairs):
        contrasted += constants.augment
    first, later = (_line(timed[0][0], timed[0][i], timed[1][0], timed[1][i], contrasted) for i in (1, 2))
    schedule = c1.passes(len(pairs), min(len(source), len(target)))
    rounds = sum(part.constants.iterations for part in schedule)
    return rounds * first + (sum(part.updates for part in schedule) - rounds) * later


def _line(a: int, at_a: float, b: int, at_b: float, wanted: int) -> float:
    """The value at `wanted` of the straight line through two timings; never less than the greater of them."""
    slope = max(0.0, (at_b - at_a) / max(1, b - a))
    return max(at_a, at_b, at_b + slope * (wanted - b)) if wanted > b else max(at_a, at_b)
