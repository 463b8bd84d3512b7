"""Phrases in a common space: composed where the vocabulary lacks them, and added as candidates.

A composed phrase is the mean of its words' vectors in the space, weighted by smooth inverse frequency. It
can be a query and a candidate, but never a neighbour: CSLS's terms of all words stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np

from bilex.lexicon import Lexicon
from bilex.model.space import CSLS_NEIGHBOURS, Floats, Space
from bilex.search import mean_of_best
from bilex.vectors import WordVectors
from bilex.vectors.phrases import composed, composing_weights, is_phrase, words_of

Side = Literal["source", "target"]
Composer = Callable[[Sequence[str], Side], list[Floats | None]]


def space_composer(space: Space) -> Composer:
    """A function that composes phrases from the words of a space; None for those with an unknown word."""
    sides: dict[Side, WordVectors] = {"source": space.source, "target": space.target}

    def compose(phrases: Sequence[str], side: Side) -> list[Floats | None]:
        return [_composed_of_words(phrase, sides[side]) for phrase in phrases]

    return compose


def _composed_of_words(phrase: str, vocabulary: WordVectors) -> Floats | None:
    rows = [vocabulary.key_to_index.get(word) for word in words_of(phrase)]
    known = [row for row in rows if row is not None]
    if len(known) < len(rows) or not known:
        return None
    vectors = np.asarray(vocabulary.vectors[np.array(known)])
    return composed(vectors, composing_weights(known, len(vocabulary)))


def missing_phrases(lexicon: Lexicon, space: Space) -> dict[Side, list[str]]:
    """The phrases of a word list that the vocabularies do not hold as units, each once.

    Args:
        lexicon: Pairs spelt as the vocabularies spell them (`Lexicon.as_units`).
        space: The two vocabularies.
    """
    sources = dict.fromkeys(source for source, _ in lexicon.pairs)
    targets = dict.fromkeys(target for _, target in lexicon.pairs)
    return {
        "source": [text for text in sources if text not in space.source and is_phrase(text)],
        "target": [text for text in targets if text not in space.target and is_phrase(text)],
    }


def with_phrases(
    space: Space, phrases: dict[Side, list[str]], compose: Composer, neighbours: int = CSLS_NEIGHBOURS
) -> tuple[Space, dict[Side, list[str]]]:
    """A space with composed phrases behind the words of each side.

    Args:
        space: The words.
        phrases: What to add to each side; phrases that cannot be composed are left out.
        compose: Gives phrases their vectors.
        neighbours: The k of CSLS's terms.

    Returns:
        The wider space, and what was added to each side.
    """
    composed_of = {side: _vectors_of(texts, compose(texts, side)) for side, texts in phrases.items() if texts}
    added = {side: words for side, words in composed_of.items() if words is not None}
    found: dict[Side, list[str]] = {side: words.index_to_key for side, words in added.items()}
    if not found:
        return space, {}
    wider = Space(
        _joined(space.source, added.get("source")),
        _joined(space.target, added.get("target")),
        space.metric,
        space.device,
    )
    r_source, r_target = space.neighbourhoods(neighbours)
    wider.keep_neighbourhoods(
        _terms(r_source, wider.source, space.target, neighbours, space.device),
        _terms(r_target, wider.target, space.source, neighbours, space.device),
        neighbours,
    )
    return wider, found


def _vectors_of(texts: Iterable[str], vectors: Sequence[Floats | None]) -> WordVectors | None:
    found = [(text, vector) for text, vector in zip(texts, vectors, strict=True) if vector is not None]
    if not found:
        return None
    return WordVectors([text for text, _ in found], np.array([row for _, row in found], np.float32))


def _joined(words: WordVectors, more: WordVectors | None) -> WordVectors:
    """Words and, behind them, phrases with rows of the same kind."""
    if more is None:
        return words
    rows = np.asarray(more.vectors)
    if words.preprocessing[-1:] == ("unit",):
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    vectors = np.concatenate([np.asarray(words.vectors), rows.astype(np.float32)])
    return WordVectors([*words.index_to_key, *more.index_to_key], vectors, words.preprocessing)


def _terms(known: Floats, wider: WordVectors, others: WordVectors, neighbours: int, device: str) -> Floats:
    """CSLS's terms of all rows: the known ones, and those of the rows behind them over the other's words."""
    new = np.asarray(wider.vectors[len(known) :])
    if not len(new):
        return known
    return np.concatenate([known, mean_of_best(new, others.vectors, neighbours, device=device)])
