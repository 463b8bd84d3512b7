"""Where the words of a list stand in a vocabulary sorted by frequency."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

BAND_ENDS = (1_000, 5_000, 20_000, 50_000)
BANDS = ("1-1000", "1001-5000", "5001-20000", "20001-50000", "50001+")


def band_of(row: int) -> str:
    """The frequency band of a vocabulary row (row 0 is rank 1)."""
    return BANDS[bisect.bisect_left(BAND_ENDS, row + 1)]


@dataclass(frozen=True)
class RankSummary:
    """The frequency ranks (1 is the most frequent word) of a list's distinct words.

    Attributes:
        words: Distinct words of the list that the vocabulary knows.
        missing: Distinct words that it lacks.
        lowest: The rank of the most frequent one; None, as the others, when no word is known.
        first_quartile: A quarter of the known words are at least as frequent.
        median: Half of them are.
        third_quartile: Three quarters are.
        highest: The rank of the rarest.
        bands: Known words in each frequency band.
    """

    words: int
    missing: int
    lowest: float | None
    first_quartile: float | None
    median: float | None
    third_quartile: float | None
    highest: float | None
    bands: dict[str, int]


def summarise_ranks(words: Iterable[str], vocabulary: Mapping[str, int]) -> RankSummary:
    """Describe how frequent a list's words are.

    Args:
        words: The words; repeats count once.
        vocabulary: Word to row, most frequent first.
    """
    distinct = dict.fromkeys(words)
    rows = [vocabulary[word] for word in distinct if word in vocabulary]
    quartiles = np.quantile(np.array(rows) + 1, [0, 0.25, 0.5, 0.75, 1]).tolist() if rows else [None] * 5
    bands = dict.fromkeys(BANDS, 0)
    for row in rows:
        bands[band_of(row)] += 1
    lowest, first, median, third, highest = quartiles
    return RankSummary(len(rows), len(distinct) - len(rows), lowest, first, median, third, highest, bands)
