"""Frequency bands and confidence bands: how the table, the audit and the status divide entries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

_CUTS = (1_000, 5_000, 20_000, 50_000, 100_000)
CONFIDENCE_CUTS = (0.2, 0.5, 0.8)


@dataclass(frozen=True)
class Band:
    """A range of frequency ranks, both ends included."""

    name: str
    first: int
    last: int


def frequency_bands(words: int) -> list[Band]:
    """The bands of a vocabulary; the last ends with its last word."""
    found, first = [], 1
    for cut in (*(cut for cut in _CUTS if cut < words), words):
        found.append(Band(f"{first}-{cut}", first, cut))
        first = cut + 1
    return found


def band_of(rank: int, bands: list[Band]) -> str:
    """The name of the band that a rank is in."""
    return next((band.name for band in bands if rank <= band.last), bands[-1].name)


def confidence_band(confidence: float | None) -> str:
    """The name of a confidence's band, such as "0.5-0.8"; "none" without a confidence."""
    if confidence is None:
        return "none"
    ends = (0.0, *CONFIDENCE_CUTS, 1.0)
    for low, high in pairwise(ends):
        if confidence < high or high == 1.0:
            return f"{low:g}-{high:g}"
    raise AssertionError


def confidence_bands() -> list[str]:
    """All names, lowest first."""
    ends = (0.0, *CONFIDENCE_CUTS, 1.0)
    return [f"{low:g}-{high:g}" for low, high in pairwise(ends)]
