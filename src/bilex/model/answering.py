"""How a translator answers: from the vocabulary, from what reads other words and phrases, or by spellings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from bilex.model.answers import Answer, Translation
from bilex.model.known import Proposals, own_proposer
from bilex.model.phrases import COMPOSED
from bilex.model.space import Direction, Floats, Retrieval
from bilex.model.spelling import closest_spellings
from bilex.model.unknown import Side
from bilex.vectors import WordVectors
from bilex.vectors.phrases import is_phrase, unit_of

if TYPE_CHECKING:
    from bilex.model.filters import Keep
    from bilex.model.translator import Translator

# How many more answers are looked at where some of them may not be given.
_TO_CHOOSE_FROM = 50


def answers(
    translator: Translator,
    words: Sequence[str],
    k: int,
    direction: Direction,
    retrieval: Retrieval,
    *,
    model_only: bool,
    keep: Keep | None,
) -> list[Answer]:
    """One answer a word; the arguments are those of `Translator.translate`."""
    query_side, key_side = translator.space.sides(direction)
    own_side, side = _sides(direction)
    rows = [_row(translator, query_side, word) for word in words]
    known = [place for place, row in enumerate(rows) if row is not None]
    may = None if keep is None else (lambda word: keep(word, side))
    depth = k if may is None else k + _TO_CHOOSE_FROM
    phrases = translator.seed_phrases
    found: dict[int, Answer] = {}
    if known:
        queries = np.array([rows[place] for place in known], np.int64)
        proposals = translator.proposer(direction, retrieval, model_only=model_only)(queries, depth)
        for number, place in enumerate(known):
            chosen = _translations(proposals, number, key_side, k, may)
            origin = phrases.origin(query_side.index_to_key[queries[number]], own_side)
            found[place] = Answer(words[place], phrases.marked(chosen, side), origin)
    beyond = _read_unknown(translator, words, rows, own_side)
    if beyond:
        propose = own_proposer(
            translator.space, translator.calibration, direction, retrieval, confident=False
        )
    for place, (vector, origin) in beyond.items():
        chosen = _translations(propose(vector[None], depth), 0, key_side, k, may)
        found[place] = Answer(words[place], phrases.marked(chosen, side), origin)
    return [
        found[place] if place in found else _unknown_answer(translator, word, query_side, own_side)
        for place, word in enumerate(words)
    ]


def _sides(direction: Direction) -> tuple[Side, Side]:
    return ("source", "target") if direction == "forward" else ("target", "source")


def _row(translator: Translator, query_side: WordVectors, word: str) -> int | None:
    """The row of a word or of a phrase, as it is typed, lower-cased, or joined as its phrases are."""
    unit = unit_of(word, query_side.key_to_index)
    if unit is None and translator.lowercase:
        unit = unit_of(word.lower(), query_side.key_to_index)
    return None if unit is None else query_side.key_to_index[unit]


def _unknown_answer(translator: Translator, word: str, query_side: WordVectors, side: Side) -> Answer:
    """What there is to say about a word without a vector."""
    typed = word.lower() if translator.lowercase else word
    lacking = translator.phrase_reader.unknown_words(typed, side)
    near = partial(closest_spellings, lacking[0] if lacking else word, query_side.index_to_key)
    return Answer(word, (), None, tuple(lacking), near)


def _read_unknown(
    translator: Translator, words: Sequence[str], rows: Sequence[int | None], side: Side
) -> dict[int, tuple[Floats, str]]:
    """The vectors of the words without a row, by place, with the kind of source that gave them."""
    found: dict[int, tuple[Floats, str]] = {}
    texts = [word.lower() for word in words] if translator.lowercase else words
    missing = [place for place, row in enumerate(rows) if row is None]
    phrases = [place for place in missing if is_phrase(words[place])]
    vectors = translator.phrase_vectors([texts[place] for place in phrases], side)
    for place, vector in zip(phrases, vectors, strict=True):
        if vector is not None:
            found[place] = (vector, COMPOSED)
    single = [place for place in missing if place not in set(phrases)]
    for source in translator.unknown:
        waiting = [place for place in single if place not in found]
        spelt = [texts[place] for place in waiting]
        for place, vector in zip(waiting, source.vectors(spelt, side) if spelt else [], strict=True):
            if vector is not None:
                found[place] = (vector, source.kind)
    return found


def _translations(
    proposals: Proposals, query: int, key_side: WordVectors, k: int, may: Callable[[str], bool] | None
) -> tuple[Translation, ...]:
    """One query's first k answers of those that may be given, as a user meets them."""
    confidence = proposals.confidence[query]
    found = (
        Translation(
            word=key_side.index_to_key[row],
            score=float(proposals.scores[query, place]),
            confidence=None if np.isnan(confidence[place]) else float(confidence[place]),
            rank=int(row) + 1,
            known=bool(proposals.known[query, place]),
        )
        for place, row in enumerate(proposals.rows[query])
        if row >= 0
    )
    return tuple(islice((t for t in found if may is None or t.known or may(t.word)), min(k, len(key_side))))
