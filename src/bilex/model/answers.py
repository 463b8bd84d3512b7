"""What a translator answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Translation:
    """One proposed translation.

    Args:
        word: The proposed word.
        score: CSLS or similarity, as asked for.
        confidence: The probability that a dictionary would agree, or None where none was calibrated.
        rank: The word's place in its vocabulary by frequency, from 1.
        known: Whether it is a translation that the seeds or the corrections give, not one that was found.
        composed: Whether it is a phrase of the seeds whose vector was composed of its words' vectors.
    """

    word: str
    score: float
    confidence: float | None
    rank: int
    known: bool = False
    composed: bool = False


def _shown(found: Translation) -> str:
    sure = " (known)" if found.known else "" if found.confidence is None else f" ({found.confidence:.0%})"
    return f"{found.word}{sure}"


@dataclass(frozen=True, repr=False)
class Answer:
    """All that is known about one word: a sequence of `Translation`s, known ones first, then best first.

    Args:
        word: The word that was asked for.
        translations: Its translations; none if the word is unknown.
        origin: Where the word's vector came from: "vocabulary", the kind of an out-of-vocabulary
            source ("subwords", ...), "composed" for a phrase whose vector is made of its words', or None for
            an unknown word.
        unknown_words: The words that keep a phrase from being composed.
    """

    word: str
    translations: tuple[Translation, ...]
    origin: str | None
    unknown_words: tuple[str, ...] = ()
    _spellings: Callable[[], list[str]] = field(repr=False, compare=False, default=list)

    def __len__(self) -> int:
        return len(self.translations)

    def __repr__(self) -> str:
        shown = ", ".join(_shown(translation) for translation in self)
        return f"Answer({self.word}: {shown or 'unknown'})"

    def _repr_html_(self) -> str:
        from bilex.core.notebook import html_table

        rows = [(t.word, t.score, "known" if t.known else t.confidence) for t in self]
        return html_table(("translation", "score", "confidence"), rows, len(rows), self.word)

    def __iter__(self) -> Iterator[Translation]:
        return iter(self.translations)

    def __getitem__(self, index: int) -> Translation:
        return self.translations[index]

    @property
    def known(self) -> bool:
        """Whether the word has a vector."""
        return self.origin is not None

    @property
    def from_subwords(self) -> bool:
        """Whether the word is out of vocabulary and was answered through its character n-grams."""
        return self.origin == "subwords"

    @property
    def composed(self) -> bool:
        """Whether the word is a phrase whose vector was composed of its words' vectors."""
        return self.origin == "composed"

    @cached_property
    def suggestions(self) -> list[str]:
        """The closest known spellings of an unknown word, sought when first asked for."""
        return self._spellings()

    def sentence(self) -> str:
        """One sentence for a word that could not be translated."""
        if self.known:
            return f"'{self.word}' has {len(self)} translations."
        if self.unknown_words:
            lacking = ", ".join(f"'{word}'" for word in self.unknown_words)
            return f"'{self.word}' is not in the vocabulary, and cannot be composed without {lacking}."
        if not self.suggestions:
            return f"'{self.word}' is not in the vocabulary, and no known word is spelt like it."
        near = ", ".join(f"'{word}'" for word in self.suggestions)
        return f"'{self.word}' is not in the vocabulary; known words spelt like it: {near}."

    def as_dict(self) -> dict[str, Any]:
        """The answer for JSON."""
        answer: dict[str, Any] = {
            "word": self.word,
            "origin": self.origin,
            "composed": self.composed,
            "translations": [vars(translation) for translation in self.translations],
        }
        if self.unknown_words:
            answer["unknown_words"] = list(self.unknown_words)
        if not self.known:
            answer["suggestions"] = self.suggestions
        return answer
