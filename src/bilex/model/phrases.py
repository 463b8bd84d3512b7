"""Phrases as queries, and phrases of the seeds as words of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from bilex.lexicon import Lexicon
from bilex.model.answers import Translation
from bilex.model.composed import missing_phrases, with_phrases
from bilex.model.space import Space
from bilex.model.unknown import Floats, OutOfVocabulary, Side
from bilex.vectors import WordVectors
from bilex.vectors.phrases import composed, composing_weights, is_phrase, words_of

if TYPE_CHECKING:
    from bilex.model.translator import Translator

COMPOSED = "composed"


@runtime_checkable
class ReadsPhrases(Protocol):
    """An out-of-vocabulary source that reads a phrase whole, as a language model does."""

    def phrase_vectors(self, phrases: Sequence[str], composed: Sequence[Floats]) -> list[Floats]:
        """The vector of each phrase, given the one that was composed of its words."""


class PhraseReader:
    """Gives vectors to phrases that a vocabulary lacks.

    The vector is the mean of the words' vectors by smooth inverse frequency; a word outside the vocabulary is
    read by the out-of-vocabulary sources and weighs fully. A source that reads phrases whole is asked too.

    Args:
        space: The two vocabularies.
        unknown: The out-of-vocabulary sources.
    """

    def __init__(self, space: Space, unknown: Sequence[OutOfVocabulary]) -> None:
        self._sides: dict[Side, WordVectors] = {"source": space.source, "target": space.target}
        self._unknown = unknown

    def vectors(self, phrases: Sequence[str], side: Side) -> list[Floats | None]:
        """The vector of each phrase in the common space; None where a word of it has none."""
        found = [self._composed(phrase, side) for phrase in phrases]
        places = [place for place, vector in enumerate(found) if vector is not None]
        for source in self._unknown:
            if isinstance(source, ReadsPhrases) and places:
                mixed = source.phrase_vectors(
                    [" ".join(words_of(phrases[place])) for place in places],
                    [vector for vector in found if vector is not None],
                )
                for place, vector in zip(places, mixed, strict=True):
                    found[place] = vector
                break
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


class SeedPhrases:
    """Which words of the vocabularies are phrases of the seeds that were composed.

    Args:
        recorded: The phrases of each side, as a model remembers them.
    """

    def __init__(self, recorded: Mapping[str, Sequence[str]]) -> None:
        self._phrases = {side: frozenset(texts) for side, texts in recorded.items()}

    def origin(self, word: str, side: Side) -> str:
        """Where the vector of a word of the vocabulary came from."""
        return COMPOSED if word in self._phrases.get(side, ()) else "vocabulary"

    def marked(self, found: Iterable[Translation], side: Side) -> tuple[Translation, ...]:
        """Translations into one side with those marked that are composed."""
        phrases = self._phrases.get(side, frozenset())
        return tuple(replace(t, composed=True) if t.word in phrases else t for t in found)


def with_seed_phrases(translator: Translator, seeds: Lexicon) -> Translator:
    """A translator that knows the phrases of its seeds: composed, behind the words of each vocabulary.

    The maps were learned without them. They are candidates like words, and known translations where the seeds
    say so.

    Args:
        translator: Fitted on the seeds' words.
        seeds: All seeds, spelt as the vocabularies spell them.
    """
    reader = PhraseReader(translator.space, translator.unknown)
    space, added = with_phrases(translator.space, missing_phrases(seeds, translator.space), reader.vectors)
    if not added:
        return translator
    recorded: dict[str, tuple[str, ...]] = {side: tuple(phrases) for side, phrases in added.items()}
    return translator.with_parts(space=space, provenance=replace(translator.provenance, composed=recorded))
