"""Frequency and confidence bands, and a share with its 95 % interval from a stratified sample."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bilex.evaluation.without_gold import wilson_interval

_BAND_ENDS = (1_000, 5_000, 20_000, 50_000, 100_000)
_CONFIDENCE_CUTS = (0.2, 0.5, 0.8)
CONFIDENCE_BANDS = [f"{low:g}-{high:g}" for low, high in pairwise((0, *_CONFIDENCE_CUTS, 1))]


@dataclass(frozen=True)
class FrequencyBand:
    """A range of frequency ranks, both ends included."""

    name: str
    first: int
    last: int


def frequency_bands(words: int) -> list[FrequencyBand]:
    """The bands of a vocabulary; the last ends with its last word."""
    ends = (*(end for end in _BAND_ENDS if end < words), words)
    return [FrequencyBand(f"{before + 1}-{end}", before + 1, end) for before, end in pairwise((0, *ends))]


def band_of(rank: int, bands: list[FrequencyBand]) -> str:
    """The name of the band of a rank."""
    return next((band.name for band in bands if rank <= band.last), bands[-1].name)


def confidence_band(confidence: float | None) -> str:
    """The name of a confidence's band, such as "0.5-0.8"; "none" without a confidence."""
    return "none" if confidence is None else CONFIDENCE_BANDS[bisect_right(_CONFIDENCE_CUTS, confidence)]


@dataclass(frozen=True)
class Stratum:
    """How many entries a stratum has, how many of those were drawn and decided, and how many are right."""

    entries: int
    decided: int
    right: int


@dataclass(frozen=True)
class Estimate:
    """A share with its 95 % interval."""

    share: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The width of the interval."""
        return self.high - self.low


def wilson(share: float, decisions: float) -> Estimate:
    """Wilson's interval of a share found in a number of independent decisions, which need not be whole."""
    return Estimate(share, *wilson_interval(share, decisions))


def estimate(strata: Sequence[Stratum]) -> Estimate | None:
    """The share of right entries over all strata; None without a decision.

    Each stratum counts by its entries, not by how many were drawn. The interval is Wilson's for the number
    of simple random decisions that would be as informative: with the variance Σ W²·p(1−p)/n of the weighted
    share (p with one right and one wrong added in each stratum, so that a stratum without a mistake is not
    taken for certain). Strata without a decision are left out, and their weight with them.
    """
    known = [one for one in strata if one.decided and one.entries]
    if not known:
        return None
    share = sum(one.entries * one.right / one.decided for one in known) / sum(one.entries for one in known)
    return wilson(share, _effective_decisions(known))


def _effective_decisions(known: Sequence[Stratum]) -> float:
    """How many simple random decisions are as informative as these."""
    decided, entries = sum(one.decided for one in known), sum(one.entries for one in known)
    variance, pooled = 0.0, 0.0
    for one in known:
        weight, p = one.entries / entries, (one.right + 1) / (one.decided + 2)
        variance += weight * weight * p * (1 - p) / one.decided
        pooled += weight * p
    return min(decided, pooled * (1 - pooled) / variance)


def more_decisions(strata: Sequence[Stratum], width: float) -> int | None:
    """How many more decisions would narrow the interval to a width, if they turn out like those so far."""
    current = estimate(strata)
    if current is None:
        return None
    if current.width <= width:
        return 0
    known = [one for one in strata if one.decided and one.entries]
    decided = sum(one.decided for one in known)
    efficiency = _effective_decisions(known) / decided
    possible = range(decided, 1 << 40)
    return bisect_left(
        possible, True, key=lambda total: wilson(current.share, efficiency * total).width <= width
    )


def allocate(entries: Sequence[int], size: int, least: int = 2) -> list[int]:
    """How many to draw from each stratum: in proportion to its entries, but at least a few from each."""
    size, total = min(size, sum(entries)), sum(entries)
    drawn = [min(count, least) for count in entries]
    while sum(drawn) > size:
        drawn[drawn.index(max(drawn))] -= 1
    while sum(drawn) < size:
        gaps = [
            size * count / total - got if got < count else -math.inf
            for count, got in zip(entries, drawn, strict=True)
        ]
        drawn[gaps.index(max(gaps))] += 1
    return drawn


def or_none(value: float) -> float | None:
    """A number for SQLite and JSON: None instead of NaN."""
    return None if math.isnan(value) else float(value)
