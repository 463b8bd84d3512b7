"""How much of a word list two vocabularies know, and what would make them know more."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from bilex.lexicon.entries import Pair
from bilex.lexicon.reading import respelt

_LOW = 0.2
_FREQUENT = 500
_CLEAR_GAIN, _CLEAR_COUNT, _SEVERAL_TIMES = 0.1, 100, 3


@dataclass(frozen=True)
class Coverage:
    """How many pairs have both words in the vocabularies.

    Attributes:
        pairs: All pairs, repeats counted.
        covered: Those with both words known.
        source_words: Distinct source words.
        target_words: Distinct target words.
        source_missing: Source words that the vocabulary lacks, in file order.
        target_missing: Target words likewise.
        frequent_missing: Whether the list lacks most frequent words of a vocabulary. A large dictionary has
            many rare words, so that few of its pairs are covered although all is well.
        alternatives: What would be covered if the list were read otherwise, by what to do.
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
        """Whether so few pairs are covered that something is probably wrong (under 20 %)."""
        return self.fraction < _LOW

    def sentence(self) -> str:
        """One clause with the figures."""
        return f"{self.covered} of {self.pairs} pairs have both words in the vectors"

    def advice(self) -> str:
        """A sentence (with a leading space) on what would cover clearly more, or nothing.

        "Clearly" is a gain of a tenth of all pairs, or, where a dictionary is much larger than the
        vocabularies, three times as many pairs and a hundred more.
        """
        if not self.alternatives:
            return ""
        remedy, covered = max(self.alternatives.items(), key=lambda item: item[1])
        gain = covered - self.covered
        several_times = gain >= _CLEAR_COUNT and covered >= _SEVERAL_TIMES * self.covered
        if gain < max(1, _CLEAR_GAIN * self.pairs) and not several_times:
            return ""
        return f" {covered} pairs would be covered if you {remedy}."


def measure(
    pairs: Sequence[Pair], spelt: Sequence[Pair], source: Collection[str], target: Collection[str]
) -> Coverage:
    """Compare a word list with two vocabularies.

    Args:
        pairs: The pairs as they are used.
        spelt: The same pairs as their file spells them.
        source: The source vocabulary.
        target: The target vocabulary.
    """
    sources = dict.fromkeys(a for a, _ in pairs)
    targets = dict.fromkeys(b for _, b in pairs)
    original = list(spelt)
    others = {
        "read the dictionary lower-cased": respelt(original, lowercase=True, normal_form="NFC"),
        "keep the dictionary's upper case": respelt(original, lowercase=False, normal_form="NFC"),
        "read the dictionary in Unicode form NFD": respelt(list(pairs), lowercase=False, normal_form="NFD"),
        "swap source and target (the two vector files, or the dictionary's columns)": [
            (b, a) for a, b in pairs
        ],
    }
    return Coverage(
        pairs=len(pairs),
        covered=_covered(pairs, source, target),
        source_words=len(sources),
        target_words=len(targets),
        source_missing=tuple(word for word in sources if word not in source),
        target_missing=tuple(word for word in targets if word not in target),
        frequent_missing=_lacks_frequent(sources, source) or _lacks_frequent(targets, target),
        alternatives={remedy: _covered(other, source, target) for remedy, other in others.items()},
    )


def _lacks_frequent(words: Collection[str], vocabulary: Collection[str]) -> bool:
    """Whether most of the frequent words of a vocabulary, most frequent first, are not in a list."""
    frequent = [word for word in itertools.islice(vocabulary, _FREQUENT) if word.isalpha() and len(word) > 2]
    return 2 * sum(word in words for word in frequent) < len(frequent)


def _covered(pairs: Sequence[Pair], source: Collection[str], target: Collection[str]) -> int:
    return sum(a in source and b in target for a, b in pairs)
