"""Small vocabularies for trials: the most frequent words and those of the seeds."""

from __future__ import annotations

import numpy as np

from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors


def small_vocabularies(
    source: WordVectors, target: WordVectors, pairs: Lexicon, frequent: int
) -> tuple[WordVectors, WordVectors]:
    """The most frequent words of two languages and those of some pairs, in order of frequency.

    Args:
        source: Source vectors.
        target: Target vectors.
        pairs: The pairs whose words must be there.
        frequent: How many of the most frequent words of each language.
    """
    sources, targets = {a for a, _ in pairs.pairs}, {b for _, b in pairs.pairs}
    return _frequent_and(source, sources, frequent), _frequent_and(target, targets, frequent)


def _frequent_and(words: WordVectors, extra: set[str], frequent: int) -> WordVectors:
    beyond = (words.key_to_index[word] for word in extra if word in words)
    chosen = sorted({*range(min(frequent, len(words))), *beyond})
    if len(chosen) == len(words):
        return words
    return WordVectors(
        [words.index_to_key[row] for row in chosen],
        np.asarray(words.vectors[np.array(chosen)]),
        words.preprocessing,
    )
