"""Known words that are spelt like an unknown one."""

from __future__ import annotations

import difflib
import heapq
import unicodedata
from collections.abc import Iterable, Sequence

_SHORTLIST = 200
_LIKENESS = 0.6


def closest_spellings(word: str, vocabulary: Sequence[str], n: int = 3) -> list[str]:
    """The n words of a vocabulary that are spelt most like `word`.

    Comparing edit by edit with 200,000 words would take seconds, so two cheap sieves come first:
    words of about the same length, and of those the ones that share most character pairs.

    Args:
        word: The unknown word.
        vocabulary: Known words, most frequent first; of equally near ones the frequent comes first.
        n: How many at most; fewer, or none, if nothing is near.
    """
    plain = _plain(word)
    if not plain or n < 1:
        return []
    slack = max(1, len(word) // 4)
    alike = [known for known in vocabulary if abs(len(known) - len(word)) <= slack]
    shortlist = _sharing_pairs(plain, alike)
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(plain)
    near = []
    for place, known in enumerate(shortlist):
        matcher.set_seq1(_plain(known))
        if matcher.quick_ratio() >= _LIKENESS and (likeness := matcher.ratio()) >= _LIKENESS:
            near.append((-likeness, place, known))
    return [known for _, _, known in sorted(near)[:n]]


def _sharing_pairs(plain: str, words: Iterable[str]) -> list[str]:
    """The words that hold most of the neighbouring letter pairs of `plain`, in order of frequency.

    A single letter stands for its pairs, and the first letter counts as one more, so that words of
    two or three letters can be distinguished too.
    """
    pairs = {plain[i : i + 2] for i in range(len(plain) - 1)} or {plain}
    scored = []
    for place, known in enumerate(words):
        low = known.lower()
        shared = sum(pair in low for pair in pairs) + (low[:1] == plain[:1])
        if shared:
            scored.append((shared, -place, known))
    return [known for _, _, known in heapq.nlargest(_SHORTLIST, scored)]


def _plain(word: str) -> str:
    """A word without case and accents."""
    decomposed = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
