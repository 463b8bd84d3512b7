"""How long a fit will take on this machine: a short measurement, and the work of a method counted."""

from __future__ import annotations

import time
from statistics import mean

import numpy as np

from bilex.aligners.base import Aligner
from bilex.fit import evidence
from bilex.lexicon import Lexicon
from bilex.search import neighbourhoods
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
    sizes = len(source), len(target), len(pairs)
    forms = list(evidence.candidates(aligner).values())
    if len(pairs) < evidence.FEWEST_SEEDS:  # the prior is taken, without a trial
        forms = forms[:1]
    compare = _seconds_a_comparison(source, target, aligner.device)
    timed = forms[0].timed_seconds(source, target, pairs)
    unit = timed / forms[0].timed_comparisons(*sizes) if timed else 0.0
    # Which form will be taken is not known yet: the mean.
    total = mean(unit * form.timed_comparisons(*sizes) + compare * form.comparisons(*sizes) for form in forms)
    total += compare * len(source) * len(target)  # CSLS's terms of every word
    tried = len(pairs) >= evidence.FEWEST_SEEDS and (len(forms) > 1 or calibrate)
    return total + (_trial_seconds(forms, *sizes, unit, compare, calibrate) if tried else 0.0)


def _trial_seconds(
    forms: list[Aligner],
    source: int,
    target: int,
    pairs: int,
    unit: float,
    compare: float,
    calibrate: bool,
) -> float:
    """Seconds of the held-out trial (`bilex.fit.trial`).

    Args:
        forms: What it compares.
        source: Source words.
        target: Target words.
        pairs: Usable seed pairs.
        unit: Seconds for one of `timed_comparisons`.
        compare: Seconds for one of `comparisons`.
        calibrate: Whether confidences are learned.
    """
    few_source, few_target = (min(words, evidence.WORDS + pairs) for words in (source, target))
    total = compare * (source + target) * evidence.WORDS if calibrate else 0.0
    for form in forms:
        candidate = evidence.shortened(form.pinned(pairs, min(source, target)), pairs, min(source, target))
        total += unit * candidate.timed_comparisons(few_source, few_target, pairs)
        total += compare * (candidate.comparisons(few_source, few_target, pairs) + few_source * few_target)
        if (few_source, few_target) == (source, target):
            total -= compare * candidate.shared_comparisons(source, target)
    return total


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
