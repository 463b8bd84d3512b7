"""Words of a vocabulary that begin with a text."""

from __future__ import annotations

from bisect import bisect_left

from bilex_workbench.problems import LONGEST_WORD

_MOST_COMPLETIONS = 20_000


class Completions:
    """The words of a vocabulary that begin with a text, most frequent first."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._order = sorted(range(len(words)), key=words.__getitem__)

    def __call__(self, text: str, k: int) -> list[str]:
        """At most k words."""
        words, order = self._words, self._order
        start = bisect_left(order, text, key=words.__getitem__)
        stop = bisect_left(order, text + "\U0010ffff", key=words.__getitem__)
        rows = sorted(order[start : min(stop, start + _MOST_COMPLETIONS)])
        return [words[row] for row in rows if len(words[row]) <= LONGEST_WORD][:k]
