"""Coverage of a word list by two vocabularies, leaks from another list, frequency ranks."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from bilex.lexicon.entries import Pair

BAND_ENDS = (1_000, 5_000, 20_000, 50_000)
BANDS = ("1-1000", "1001-5000", "5001-20000", "20001-50000", "50001+")
_LOW = 0.2
_FREQUENT = 500
_CLEAR_GAIN, _CLEAR_COUNT, _SEVERAL_TIMES = 0.1, 100, 3


@dataclass(frozen=True)
class Coverage:
    """How many pairs have both words in the vocabularies.

    Attributes:
        pairs: All pairs, repeats counted.
        covered: Pairs with both words in the vocabularies.
        source_words: Distinct source words.
        target_words: Distinct target words.
        source_missing: Source words that the vocabulary lacks, in file order.
        target_missing: Target words likewise.
        frequent_missing: Whether the list lacks most frequent words of a vocabulary. If it has them, low
            coverage only means that a large dictionary has many rare words.
        alternatives: How many pairs would be covered if the list were read otherwise, by what to do.
    """

    pairs: int
    covered: int
    source_words: int = 0
    target_words: int = 0
    source_missing: tuple[str, ...] = ()
    target_missing: tuple[str, ...] = ()
    frequent_missing: bool = False
    alternatives: dict[str, int] = field(default_factory=dict)

    @property
    def fraction(self) -> float:
        """Covered pairs among all; 0 for an empty list."""
        return self.covered / self.pairs if self.pairs else 0.0

    @property
    def is_low(self) -> bool:
        """Whether fewer than 20 % of the pairs are covered, so that something is probably wrong."""
        return self.fraction < _LOW

    def sentence(self) -> str:
        """One clause with the counts."""
        return f"{self.covered} of {self.pairs} pairs have both words in the vectors"

    def advice(self) -> str:
        """A sentence (with a leading space) on what would cover clearly more, or nothing.

        "Clearly" is a gain of a tenth of all pairs, or, where a dictionary is much larger than the
        vocabularies, three times as many pairs and a hundred more.
        """
        remedy, covered = max(self.alternatives.items(), key=lambda item: item[1], default=("", 0))
        gain = covered - self.covered
        several_times = gain >= _CLEAR_COUNT and covered >= _SEVERAL_TIMES * self.covered
        if gain < max(1, _CLEAR_GAIN * self.pairs) and not several_times:
            return ""
        return f" {covered} pairs would be covered if you {remedy}."


def lacks_frequent(words: Collection[str], vocabulary: Collection[str]) -> bool:
    """Whether most of the frequent words of a vocabulary, most frequent first, are not in a list."""
    frequent = [word for word in itertools.islice(vocabulary, _FREQUENT) if word.isalpha() and len(word) > 2]
    return 2 * sum(word in words for word in frequent) < len(frequent)


@dataclass(frozen=True)
class LeakReport:
    """What a test list shares with a training list, repeats not counted.

    Attributes:
        test_pairs: Distinct pairs of the test list.
        test_sources: Distinct source words of it.
        pairs: Test pairs that are also in the training list.
        reversed_pairs: Test pairs that are there with source and target swapped.
        sources: Test source words that are training source words.
        targets: Test target words that are training target words.
        touched: Test pairs that share their source or their target word with the training list.
    """

    test_pairs: int
    test_sources: int
    pairs: tuple[Pair, ...]
    reversed_pairs: tuple[Pair, ...]
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    touched: int

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def sentence(self) -> str:
        """One sentence with the counts."""
        share = len(self.pairs) / self.test_pairs if self.test_pairs else 0.0
        return (
            f"{len(self.pairs)} of {self.test_pairs} test pairs ({share:.1%}) are also in the training "
            f"dictionary; {len(self.sources)} test source words and {len(self.targets)} test target words "
            "occur there."
        )


def band_of(row: int) -> str:
    """The frequency band of a vocabulary row (row 0 is rank 1)."""
    return BANDS[bisect.bisect_left(BAND_ENDS, row + 1)]


@dataclass(frozen=True)
class RankSummary:
    """The frequency ranks (1 is the most frequent word) of a list's distinct words.

    Attributes:
        words: Distinct words of the list that the vocabulary knows.
        missing: Distinct words that it lacks.
        lowest: The rank of the most frequent one; None, as the others, if no word is known.
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

    @classmethod
    def of(cls, words: Iterable[str], vocabulary: Mapping[str, int]) -> RankSummary:
        """Summarise the ranks of the distinct words of a list in a vocabulary, most frequent word first."""
        distinct = dict.fromkeys(words)
        rows = [vocabulary[word] for word in distinct if word in vocabulary]
        quartiles = np.quantile(np.array(rows) + 1, [0, 0.25, 0.5, 0.75, 1]).tolist() if rows else [None] * 5
        bands = dict.fromkeys(BANDS, 0) | Counter(map(band_of, rows))
        lowest, first, median, third, highest = quartiles
        return cls(len(rows), len(distinct) - len(rows), lowest, first, median, third, highest, bands)
