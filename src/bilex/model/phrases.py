"""Words and phrases that a vocabulary lacks: read by readers of unknown words, or composed of their words.

A composed phrase is the mean of its words' vectors in the space, weighted by smooth inverse frequency. It can
be a query, and an answer to phrases, but it is never a neighbour, and never an answer to a word unless the
seeds say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from bilex.lexicon import Lexicon
from bilex.model.space import CSLS_NEIGHBOURS, SIDES, Floats, Side, Space
from bilex.model.unknown import OutOfVocabulary
from bilex.search import mean_of_best
from bilex.vectors import WordVectors
from bilex.vectors.phrases import composed, composing_weights, is_phrase, words_of
from bilex.vectors.stored import unit_rows

if TYPE_CHECKING:
    from bilex.model.translator import Translator

COMPOSED = "composed"
Composer = Callable[[Sequence[str], Side], list[Floats | None]]


@runtime_checkable
class ReadsPhrases(Protocol):
    """A reader of unknown words that reads a phrase whole, as a language model does."""

    def phrase_vectors(self, phrases: Sequence[str], composed: Sequence[Floats]) -> list[Floats]:
        """The vector of each phrase, given the one that was composed of its words."""


@dataclass(frozen=True)
class PhraseReader:
    """Gives vectors to texts that the vocabularies of a space lack; `unknown` are readers of single words."""

    space: Space
    unknown: Sequence[OutOfVocabulary] = ()

    def read(self, texts: Sequence[str], side: Side) -> dict[str, tuple[Floats, str]]:
        """The vectors of those texts that can be read, each with its origin."""
        phrases = [text for text in texts if is_phrase(text)]
        vectors = zip(phrases, self.vectors(phrases, side), strict=True)
        found = {text: (vector, COMPOSED) for text, vector in vectors if vector is not None}
        for reader in self.unknown:
            waiting = [text for text in texts if text not in found and text not in phrases]
            read = reader.vectors(waiting, side) if waiting else []
            for text, vector in zip(waiting, read, strict=True):
                if vector is not None:
                    found[text] = (vector, reader.kind)
        return found

    def vectors(self, phrases: Sequence[str], side: Side) -> list[Floats | None]:
        """The vector of each phrase in the common space; None where a word of it has none."""
        found = [self._composed(phrase, side) for phrase in phrases]
        places = [place for place, vector in enumerate(found) if vector is not None]
        whole = next((reader for reader in self.unknown if isinstance(reader, ReadsPhrases)), None)
        if whole is not None and places:
            texts = [" ".join(words_of(phrases[place])) for place in places]
            mixed = whole.phrase_vectors(texts, [vector for vector in found if vector is not None])
            for place, vector in zip(places, mixed, strict=True):
                found[place] = vector
        return found

    def unknown_words(self, phrase: str, side: Side) -> list[str]:
        """The words of a phrase that have no vector; none for a single word."""
        words = words_of(phrase)
        return [word for word in words if self._word(word, side) is None] if len(words) > 1 else []

    def _composed(self, phrase: str, side: Side) -> Floats | None:
        """The weighted mean of a phrase's words; a word outside the vocabulary weighs fully."""
        rows = getattr(self.space, side).key_to_index
        words = words_of(phrase)
        vectors = [vector for word in words if (vector := self._word(word, side)) is not None]
        if len(vectors) < len(words) or not vectors:
            return None
        known = [rows.get(word, len(rows)) for word in words]
        return composed(np.array(vectors), composing_weights(known, len(rows)))

    def _word(self, word: str, side: Side) -> Floats | None:
        vocabulary: WordVectors = getattr(self.space, side)
        if word in vocabulary:
            return np.asarray(vocabulary.vectors[vocabulary.key_to_index[word]])
        read = (reader.vectors([word], side)[0] for reader in self.unknown)
        return next((vector for vector in read if vector is not None), None)


def missing_phrases(lexicon: Lexicon, space: Space) -> dict[Side, list[str]]:
    """The phrases of a word list (see `Lexicon.as_units`) that the vocabularies lack, each once."""
    texts = {side: dict.fromkeys(pair[place] for pair in lexicon.pairs) for place, side in enumerate(SIDES)}
    return {
        side: [text for text in texts[side] if text not in getattr(space, side) and is_phrase(text)]
        for side in SIDES
    }


def with_phrases(
    space: Space, phrases: Mapping[Side, list[str]], compose: Composer, neighbours: int = CSLS_NEIGHBOURS
) -> tuple[Space, dict[Side, list[str]]]:
    """A space with phrases after the words of each side, and the phrases that could be composed and added."""
    added: dict[Side, list[str]] = {}
    sides: dict[Side, WordVectors] = {"source": space.source, "target": space.target}
    terms = dict(zip(SIDES, space.neighbourhoods(neighbours), strict=True)) if any(phrases.values()) else {}
    for side, texts in phrases.items():
        vectors = compose(texts, side) if texts else []
        found = {text: row for text, row in zip(texts, vectors, strict=True) if row is not None}
        if not found:
            continue
        words, others = sides[side], space.target if side == "source" else space.source
        rows = np.array(list(found.values()), np.float32)
        if words.preprocessing[-1:] == ("unit",):
            rows = unit_rows(rows)
        means = mean_of_best(rows, others.vectors, neighbours, device=space.device)
        joined = np.concatenate([np.asarray(words.vectors), rows])
        sides[side] = WordVectors([*words.index_to_key, *found], joined, words.preprocessing)
        terms[side] = np.concatenate([terms[side], means])
        added[side] = list(found)
    if not added:
        return space, {}
    wider = Space(sides["source"], sides["target"], space.metric, space.device)
    wider.keep_neighbourhoods(terms["source"], terms["target"], neighbours)
    return wider, added


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
    space, added = with_phrases(words, missing_phrases(translator.seeds, words), translator.phrase_vectors)
    recorded: dict[str, tuple[str, ...]] = {side: tuple(phrases) for side, phrases in added.items()}
    provenance = replace(translator.provenance, composed=recorded)
    return translator.with_parts(space=words, whole_space=space, provenance=provenance)
