"""Phrases by statistics: neighbours that stand together far more often than their frequencies explain.

The score of two neighbouring words a and b is their normalised pointwise mutual information,

    npmi(a, b) = ln( p(a b) / (p(a) · p(b)) ) / −ln p(a b),

where p(a b) = n(a b) / N is how often b follows a among the N tokens, and p(a) = n(a) / N. It is 1 for
words that never stand apart, 0 for independent ones. Pairs that score enough become one token, a_b,
wherever they stand; a second pass over the result finds phrases of three and four words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

Item = TypeVar("Item")
Bigram = tuple[str, str]

JOINER = "_"
_MOST = 3_000_000


class BoundedCounts(Generic[Item]):
    """Counts of items in bounded memory: when there are too many, the rarest are forgotten.

    Args:
        most: How many items are kept at the most.
    """

    def __init__(self, most: int = _MOST) -> None:
        self.counts: Counter[Item] = Counter()
        self.forgotten_below = 1
        self._most = most

    def update(self, items: Iterable[Item]) -> None:
        """Count some items."""
        self.counts.update(items)
        while len(self.counts) > self._most:
            self.forgotten_below += 1
            kept = {item: count for item, count in self.counts.items() if count >= self.forgotten_below}
            self.counts = Counter(kept)


@dataclass
class PhraseCounts:
    """What the score of phrases is computed from."""

    words: BoundedCounts[str] = field(default_factory=BoundedCounts)
    pairs: BoundedCounts[Bigram] = field(default_factory=BoundedCounts)
    tokens: int = 0

    def add(self, tokens: Sequence[str], *, pairs: bool) -> None:
        """Count the tokens of a line, and their neighbours where `pairs` are wanted."""
        self.tokens += len(tokens)
        self.words.update(tokens)
        if pairs:
            self.pairs.update(pairwise(tokens))


def npmi(together: int, first: int, second: int, tokens: int) -> float:
    """The normalised pointwise mutual information of two neighbours.

    Args:
        together: How often the second follows the first.
        first: How often the first stands anywhere.
        second: How often the second does.
        tokens: The number of tokens.
    """
    if together >= tokens:
        return 1.0
    return math.log(together * tokens / (first * second)) / -math.log(together / tokens)


def find_phrases(counts: PhraseCounts, threshold: float, least: int) -> dict[Bigram, float]:
    """The neighbours that are to become one token, with their scores.

    Args:
        counts: Of all words and all neighbours.
        threshold: The least score.
        least: How often a phrase must stand in the text.
    """
    words = counts.words.counts
    found: dict[Bigram, float] = {}
    for (first, second), together in counts.pairs.counts.items():
        if together < least or not (_has_letter(first) and _has_letter(second)):
            continue
        score = npmi(together, words[first], words[second], counts.tokens)
        if score >= threshold:
            found[first, second] = score
    return found


def join_phrases(tokens: Sequence[str], phrases: Mapping[Bigram, float]) -> list[str]:
    """Join neighbours that are a phrase; of phrases that overlap, the one with the higher score.

    Args:
        tokens: The tokens of a line.
        phrases: Scores of the phrases.
    """
    joined: list[str] = []
    place, last = 0, len(tokens) - 1
    while place <= last:
        score = phrases.get((tokens[place], tokens[place + 1])) if place < last else None
        if score is not None and place + 1 < last:
            following = phrases.get((tokens[place + 1], tokens[place + 2]))
            if following is not None and following > score:
                score = None
        if score is None:
            joined.append(tokens[place])
            place += 1
        else:
            joined.append(f"{tokens[place]}{JOINER}{tokens[place + 1]}")
            place += 2
    return joined


def _has_letter(token: str) -> bool:
    return any(char.isalpha() for char in token)
