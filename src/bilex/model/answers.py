"""What a translator answers, from its vocabulary or from readers of other words and phrases."""

from __future__ import annotations

import difflib
import heapq
import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from bilex.model.known import Proposals, own_proposer
from bilex.model.phrases import COMPOSED
from bilex.model.space import Direction, Floats, Retrieval, Side
from bilex.vectors.phrases import is_phrase, unit_of

if TYPE_CHECKING:
    from bilex.model.filters import Keep
    from bilex.model.translator import Translator


@dataclass(frozen=True)
class Translation:
    """One proposed translation.

    Args:
        word: The proposed word.
        score: CSLS or similarity.
        confidence: The probability that a dictionary would agree, or None where none was calibrated.
        rank: The word's place in its vocabulary by frequency, from 1.
        known: Whether the seeds or the corrections give it.
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
        word: The query.
        translations: Its translations; none if the word is unknown.
        origin: Where its vector came from: "vocabulary", "subwords", "encoder", "composed" for a phrase whose
            vector is made of its words', or None for an unknown word.
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
        from bilex.core.tables import html_table

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


_SHORTLIST = 200
_LIKENESS = 0.6


def closest_spellings(word: str, vocabulary: Sequence[str], n: int = 3) -> list[str]:
    """At most n words of a vocabulary that are spelt most like `word`, the frequent first where equally near.

    Comparing edit by edit with 200,000 words would take seconds, so two cheap filters come first: words of
    about the same length, and of those the ones that share most character pairs.
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
    """The words that hold most of the letter pairs of `plain`; the first letter counts as one more."""
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
    """One answer per word; the arguments are those of `Translator.translate`.

    Words and phrases are looked up as they are typed, lower-cased, or joined as the vocabulary's phrases are.
    """
    query_side, key_side = translator.whole_space.sides(direction)
    sides: tuple[Side, Side] = ("source", "target")
    own_side, side = sides if direction == "forward" else sides[::-1]
    own_composed, composed = (translator.provenance.composed.get(name, ()) for name in (own_side, side))
    depth = k if keep is None else k + _TO_CHOOSE_FROM
    texts = [word.lower() for word in words] if translator.lowercase else words
    rows = query_side.key_to_index
    units = [unit_of(word, rows) or unit_of(text, rows) for word, text in zip(words, texts, strict=True)]

    def translations(found: Proposals, query: int) -> tuple[Translation, ...]:
        """One query's first k answers of those that may be given."""
        columns = (found.rows, found.scores, found.confidence, found.known)
        every = (
            Translation(
                word=key_side.index_to_key[row],
                score=score,
                confidence=None if math.isnan(confidence) else confidence,
                rank=row + 1,
                known=known,
                composed=key_side.index_to_key[row] in composed,
            )
            for row, score, confidence, known in zip(*(part[query].tolist() for part in columns), strict=True)
            if row >= 0
        )
        given = (t for t in every if keep is None or t.known or keep(t.word, side))
        return tuple(islice(given, min(k, len(key_side))))

    made: dict[int, Answer] = {}
    inside = {place: unit for place, unit in enumerate(units) if unit is not None}
    if inside:
        queries = np.array([rows[unit] for unit in inside.values()], np.int64)
        found = translator.proposer(direction, retrieval, model_only=model_only)(queries, depth)
        for number, (place, unit) in enumerate(inside.items()):
            origin = COMPOSED if unit in own_composed else "vocabulary"
            made[place] = Answer(words[place], translations(found, number), origin)
    outside = {place: text for place, text in enumerate(texts) if place not in inside}
    for place, (vector, origin) in _read_unknown(translator, outside, own_side).items():
        whole = translator.whole_space if origin == COMPOSED else translator.space
        propose = own_proposer(whole, whole, translator.calibration, direction, retrieval)
        made[place] = Answer(words[place], translations(propose(vector[None], depth), 0), origin)
    for place, text in outside.items():
        if place not in made:
            lacking = translator.phrase_reader.unknown_words(text, own_side)
            near = partial(
                closest_spellings, lacking[0] if lacking else words[place], query_side.index_to_key
            )
            made[place] = Answer(words[place], (), None, tuple(lacking), near)
    return [made[place] for place in range(len(words))]


def _read_unknown(
    translator: Translator, texts: Mapping[int, str], side: Side
) -> dict[int, tuple[Floats, str]]:
    """The vectors of words outside the vocabulary, by place, with the kind of source that gave them."""
    found: dict[int, tuple[Floats, str]] = {}
    phrases = [place for place, text in texts.items() if is_phrase(text)]
    vectors = translator.phrase_vectors([texts[place] for place in phrases], side)
    for place, vector in zip(phrases, vectors, strict=True):
        if vector is not None:
            found[place] = (vector, COMPOSED)
    for source in translator.unknown:
        waiting = [place for place in texts if place not in found and place not in phrases]
        read = source.vectors([texts[place] for place in waiting], side) if waiting else []
        for place, vector in zip(waiting, read, strict=True):
            if vector is not None:
                found[place] = (vector, source.kind)
    return found
