"""How long a fit will take on this machine: a short measurement, and the work of a method counted."""

from __future__ import annotations

import time

import numpy as np

from bilex.aligners.base import Aligner
from bilex.lexicon import Lexicon
from bilex.recipe import evidence
from bilex.similarity import neighbourhoods
from bilex.vectors import WordVectors

_PROBE_SOURCE, _PROBE_TARGET = 2_048, 16_384
_TOO_SMALL = 3_000 * 3_000


def estimated_seconds(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    *,
    calibrate: bool = True,
) -> float:
    """About how long `Translator.fit` will take, without a language model; it measures for a few seconds.

    Args:
        aligner: The method with its settings.
        source: Source vectors.
        target: Target vectors.
        lexicon: Seed pairs, or None.
        calibrate: Whether confidences are learned.

    Returns:
        Seconds; 0 for problems so small that measuring would take longer.
    """
    if len(source) * len(target) < _TOO_SMALL:
        return 0.0
    pairs = np.zeros((0, 2), np.int64)
    if lexicon is not None:
        pairs = lexicon.index(source.key_to_index, target.key_to_index)
    compare = _seconds_a_comparison(source, target, aligner.device)
    updates = aligner.timed_seconds(source, target, pairs)
    total = updates + compare * aligner.comparisons(len(source), len(target), len(pairs))
    total += compare * len(source) * len(target)  # CSLS's terms of every word
    return total + _trial_seconds(aligner, source, target, len(pairs), updates, compare, calibrate)


def _trial_seconds(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    pairs: int,
    updates: float,
    compare: float,
    calibrate: bool,
) -> float:
    """Seconds of the held-out trial (`bilex.recipe.trial`), from those of the updates of the fit itself."""
    forms = evidence.candidates(aligner)
    if pairs < evidence.FEWEST_SEEDS or (len(forms) == 1 and not calibrate):
        return 0.0
    sizes = len(source), len(target)
    small = [min(size, evidence.WORDS + pairs) for size in sizes]
    total = 0.0
    for form in forms.values():
        candidate = evidence.hastened(evidence.shortened(form.pinned(pairs, min(sizes))))
        whole = form.timed_comparisons(*sizes, pairs)
        if whole:
            total += updates * candidate.timed_comparisons(small[0], small[1], pairs) / whole
        total += compare * (candidate.comparisons(small[0], small[1], pairs) + small[0] * small[1])
        if small == list(sizes):
            total -= compare * candidate.shared_comparisons(*sizes)
    return total + (compare * sum(sizes) * evidence.WORDS if calibrate else 0.0)


def _seconds_a_comparison(source: WordVectors, target: WordVectors, device: str) -> float:
    """Seconds to compare one word with another, both ways, as searches do it here."""
    x, y = (
        np.ascontiguousarray(words.vectors[:count], np.float32)
        for words, count in ((source, _PROBE_SOURCE), (target, _PROBE_TARGET))
    )
    best = float("inf")
    for _ in range(2):
        started = time.perf_counter()
        neighbourhoods(x, y, 10, device=device)
        best = min(best, time.perf_counter() - started)
    return best / (len(x) * len(y))
