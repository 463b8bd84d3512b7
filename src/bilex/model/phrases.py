"""Phrases: composed of their words' vectors where the vocabulary lacks them.

A composed phrase is the mean of its words' vectors in the space, weighted by smooth inverse frequency. It can
be a query, and a candidate of phrases, but it is never a neighbour, and never an answer to a word unless the
seeds say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from bilex.lexicon import Lexicon
from bilex.model.space import CSLS_NEIGHBOURS, Floats, Side, Space
from bilex.model.unknown import OutOfVocabulary
from bilex.search import mean_of_best
from bilex.vectors import WordVectors
from bilex.vectors.phrases import composed, composing_weights, is_phrase, words_of

if TYPE_CHECKING:
    from bilex.model.translator import Translator

COMPOSED = "composed"
Composer = Callable[[Sequence[str], Side], list[Floats | None]]


@runtime_checkable
class ReadsPhrases(Protocol):
    """A reader of unknown words that reads a phrase whole, as a language model does."""

    def phrase_vectors(self, phrases: Sequence[str], composed: Sequence[Floats]) -> list[Floats]:
        """The vector of each phrase, given the one that was composed of its words."""


class PhraseReader:
    """Gives vectors to phrases that a vocabulary lacks.

    A word outside the vocabulary is read by the readers of unknown words and weighs fully. A reader that
    reads phrases whole is used too.
    """

    def __init__(self, space: Space, unknown: Sequence[OutOfVocabulary] = ()) -> None:
        self._sides: dict[Side, WordVectors] = {"source": space.source, "target": space.target}
        self._unknown = unknown

    def vectors(self, phrases: Sequence[str], side: Side) -> list[Floats | None]:
        """The vector of each phrase in the common space; None where a word of it has none."""
        found = [self._composed(phrase, side) for phrase in phrases]
        places = [place for place, vector in enumerate(found) if vector is not None]
        whole = next((source for source in self._unknown if isinstance(source, ReadsPhrases)), None)
        if whole is not None and places:
            mixed = whole.phrase_vectors(
                [" ".join(words_of(phrases[place])) for place in places],
                [vector for vector in found if vector is not None],
            )
            for place, vector in zip(places, mixed, strict=True):
                found[place] = vector
        return found

    def unknown_words(self, phrase: str, side: Side) -> list[str]:
        """The words of a phrase that have no vector; none for a single word."""
        if not is_phrase(phrase):
            return []
        return [word for word in words_of(phrase) if self._word(word, side) is None]

    def _composed(self, phrase: str, side: Side) -> Floats | None:
        rows = self._sides[side].key_to_index
        words = words_of(phrase)
        vectors = [self._word(word, side) for word in words]
        found = [vector for vector in vectors if vector is not None]
        if len(found) < len(words) or not found:
            return None
        known = [rows.get(word, len(rows)) for word in words]
        return composed(np.array(found), composing_weights(known, len(rows)))

    def _word(self, word: str, side: Side) -> Floats | None:
        vocabulary = self._sides[side]
        row = vocabulary.key_to_index.get(word)
        if row is not None:
            return np.asarray(vocabulary.vectors[row])
        for source in self._unknown:
            vector = source.vectors([word], side)[0]
            if vector is not None:
                return vector
        return None


def missing_phrases(lexicon: Lexicon, space: Space) -> dict[Side, list[str]]:
    """The phrases of a word list (see `Lexicon.as_units`) that the vocabularies lack, each once."""
    sources, targets = (dict.fromkeys(pair[place] for pair in lexicon.pairs) for place in (0, 1))
    return {
        "source": [text for text in sources if text not in space.source and is_phrase(text)],
        "target": [text for text in targets if text not in space.target and is_phrase(text)],
    }


def with_phrases(
    space: Space, phrases: Mapping[Side, list[str]], compose: Composer, neighbours: int = CSLS_NEIGHBOURS
) -> tuple[Space, dict[Side, list[str]]]:
    """A space with phrases behind the words of each side, and which could be composed and were added."""
    found: dict[Side, list[str]] = {}
    sides: dict[Side, WordVectors] = {"source": space.source, "target": space.target}
    terms = dict(zip(sides, space.neighbourhoods(neighbours), strict=True)) if any(phrases.values()) else {}
    for side, texts in phrases.items():
        vectors = compose(texts, side) if texts else []
        known = {text: row for text, row in zip(texts, vectors, strict=True) if row is not None}
        if not known:
            continue
        rows = np.array(list(known.values()), np.float32)
        if sides[side].preprocessing[-1:] == ("unit",):
            rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        others = space.target if side == "source" else space.source
        means = mean_of_best(rows, others.vectors, neighbours, device=space.device)
        words = sides[side]
        joined = np.concatenate([np.asarray(words.vectors), rows])
        sides[side] = WordVectors([*words.index_to_key, *known], joined, words.preprocessing)
        terms[side] = np.concatenate([terms[side], means])
        found[side] = list(known)
    if not found:
        return space, {}
    wider = Space(sides["source"], sides["target"], space.metric, space.device)
    wider.keep_neighbourhoods(terms["source"], terms["target"], neighbours)
    return wider, found


def without_phrases(space: Space, composed: Mapping[str, Sequence[str]]) -> Space:
    """The words alone of a space that `with_phrases` made; `composed` are the phrases of each side."""
    if not any(composed.values()):
        return space
    source = space.source.head(len(space.source) - len(composed.get("source", ())))
    target = space.target.head(len(space.target) - len(composed.get("target", ())))
    words = Space(source, target, space.metric, space.device)
    r_source, r_target = space.neighbourhoods()
    words.keep_neighbourhoods(r_source[: len(source)], r_target[: len(target)])
    return words


def with_seed_phrases(translator: Translator) -> Translator:
    """A translator that knows the phrases of its seeds; they change no answer to a word."""
    words = translator.space
    space, added = with_phrases(
        words, missing_phrases(translator.seeds, words), translator.phrase_reader.vectors
    )
    recorded: dict[str, tuple[str, ...]] = {side: tuple(phrases) for side, phrases in added.items()}
    provenance = replace(translator.provenance, composed=recorded)
    return translator.with_parts(space=words, whole_space=space, provenance=provenance)
