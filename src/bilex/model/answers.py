"""What a translator answers: known translations first, rejected ones never, then what the model finds."""

from __future__ import annotations

import difflib
import heapq
import math
import unicodedata
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.fit.calibration import Candidates, Numbers
from bilex.model.space import SIDES, Direction, Floats, Retrieval, Rows, Searcher, directed
from bilex.model.unknown import COMPOSED
from bilex.vectors.phrases import unit_of

if TYPE_CHECKING:
    from typing import Self

    from bilex.model.filters import Keep
    from bilex.model.translator import Translator

Truths = npt.NDArray[np.bool_]
Kept = tuple["Translation", ...]
_Search = Callable[[Rows, int], "Proposals"]
_SHORTLIST, _LIKENESS = 200, 0.6
# With a filter, further candidates per query are searched, and this many times more until enough are kept; at
# most this number of candidates is in memory at once.
_MORE_TO_FILTER, _DEEPER, _CANDIDATES_AT_ONCE = 50, 8, 1 << 22


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

    def __str__(self) -> str:
        sure = "" if self.confidence is None else f" ({self.confidence:.0%})"
        return f"{self.word}{' (known)' if self.known else sure}"


@dataclass(frozen=True, repr=False)
class Answer:
    """The answer to one word: a sequence of `Translation`s, known ones first, then best first.

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
        return f"Answer({self.word}: {', '.join(map(str, self)) or 'unknown'})"

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
        """The closest known spellings of an unknown word, found at the first use."""
        return self._spellings()

    def confident(self, least: float) -> Answer:
        """The answer without translations of less confidence; known ones stay."""
        kept = (t for t in self.translations if t.known or (t.confidence or 0) >= least)
        return replace(self, translations=tuple(kept))

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
    own_side, side = directed(SIDES, direction)
    own_composed, composed = (translator.provenance.composed.get(name, ()) for name in (own_side, side))
    rows, reader = query_side.key_to_index, translator.phrase_reader

    def first_kept(search: Callable[[Any, int], Proposals], queries: Rows | Floats) -> list[Kept]:
        """The first k answers of each query; with a filter, ever more keys are searched."""
        kept: list[Kept] = [()] * len(queries)
        left = np.arange(len(queries))
        depth = min(k if keep is None else k + _MORE_TO_FILTER, len(key_side))
        while len(left):
            for block in np.array_split(left, -(-len(left) * depth // _CANDIDATES_AT_ONCE)):
                found = search(queries[block], depth)
                for number, query in enumerate(block.tolist()):
                    every = found.translations(number, key_side.index_to_key, composed)
                    allowed = (t for t in every if keep is None or t.known or keep(t.word, side))
                    kept[query] = tuple(islice(allowed, min(k, len(key_side))))
            if keep is None or depth == len(key_side):
                break
            left = left[[len(kept[query]) < k for query in left]]
            depth = min(_DEEPER * depth, len(key_side))
        return kept

    texts = [word.lower() for word in words] if translator.lowercase else list(words)
    units = [unit_of(word, rows) or unit_of(text, rows) for word, text in zip(words, texts, strict=True)]
    inside = np.array([rows[unit] for unit in units if unit is not None], np.int64)
    outside = dict.fromkeys(text for text, unit in zip(texts, units, strict=True) if unit is None)
    read = reader.read(list(outside), own_side)
    if len(inside) or read:
        propose = translator.proposer(direction, retrieval, model_only=model_only)
    of_units = iter(first_kept(propose, inside) if len(inside) else ())
    made = []
    for word, text, unit in zip(words, texts, units, strict=True):
        if unit is not None:
            origin = COMPOSED if unit in own_composed else "vocabulary"
            made.append(Answer(word, next(of_units), origin))
        elif text in read:
            vector, origin = read[text]
            search = partial(propose.for_vectors, phrases=origin == COMPOSED)
            made.append(Answer(word, first_kept(search, vector[None])[0], origin))
        else:
            lacking = reader.unknown_words(text, own_side)
            near = partial(closest_spellings, lacking[0] if lacking else word, query_side.index_to_key)
            made.append(Answer(word, (), None, tuple(lacking), near))
    return made


@dataclass(frozen=True)
class Columns:
    """A base of records whose fields are arrays with one row, or one cell, for each thing."""

    def each(self, work: Callable[..., Any], *others: Self) -> Self:
        """The results of a function for each column, with the same columns of others."""
        columns = zip(*(vars(one).values() for one in (self, *others)), strict=True)
        return type(self)(*(work(*column) for column in columns))


@dataclass(frozen=True)
class Proposals(Columns):
    """The best answers of some queries, one query per row.

    `scores` fall along a row among known and among other answers; `rows` are of the key vocabulary, −1 where
    a query has no further answer; the confidence is NaN for known answers and where none was learned.
    """

    scores: Floats
    rows: Rows
    confidence: Numbers
    known: Truths

    def translations(
        self, query: int, words: Sequence[str], composed: Container[str]
    ) -> Iterator[Translation]:
        """The answers of one query; `words` are the key vocabulary, `composed` its composed phrases."""
        columns = (self.rows, self.scores, self.confidence, self.known)
        for row, score, confidence, known in zip(*(part[query].tolist() for part in columns), strict=True):
            if row >= 0:
                sure = None if math.isnan(confidence) else confidence
                yield Translation(words[row], score, sure, row + 1, known, words[row] in composed)

    @classmethod
    def blank(cls, queries: int, width: int) -> Proposals:
        """No answers yet."""
        none = np.full((queries, width), np.nan)
        return cls(none.astype(np.float32), np.full(none.shape, -1), none, np.zeros(none.shape, bool))

    def put(self, places: Truths, found: Proposals) -> None:
        """Set the answers of the queries at some places."""
        width = min(self.rows.shape[1], found.rows.shape[1])
        for name, part in vars(self).items():
            part[places, :width] = getattr(found, name)[:, :width]


def by_query(pairs: Rows) -> dict[int, list[int]]:
    """The answers of each query of some pairs of rows, each once."""
    found: dict[int, list[int]] = {}
    for query, answer in dict.fromkeys(map(tuple, pairs.tolist())):
        found.setdefault(query, []).append(answer)
    return found


class Proposer:
    """Proposes answers to rows of a vocabulary: known ones by falling score, then the model's, none rejected.

    Words are answered by words; composed phrases, whose rows come after those of the words, by phrases too.
    Confidences are those of the model's own ranking; leaving rejected words out changes none.
    """

    def __init__(
        self, translator: Translator, direction: Direction, retrieval: Retrieval, *, model_only: bool
    ) -> None:
        words, space = translator.space, translator.whole_space
        self._space, self._direction, self._retrieval = space, direction, retrieval
        self._calibrated = translator.calibration.parts.get((direction, retrieval))
        self._by_words = self._by_all = words.searcher(direction=direction, retrieval=retrieval)
        if words is not space:
            self._by_all = space.searcher(direction=direction, retrieval=retrieval)
        self._words, self._keys = len(words.sides(direction)[0]), len(space.sides(direction)[1])
        self._right, self._wrong = ({}, {}) if model_only else translator.known_pairs[direction]

    def __call__(self, queries: Rows, k: int) -> Proposals:
        """The k best answers of each query."""
        decided = [row in self._right or row in self._wrong for row in queries.tolist()]
        return self._either(np.array(decided, bool), self._known_first, self._own, queries, k)

    def for_vectors(self, vectors: Floats, k: int, *, phrases: bool) -> Proposals:
        """The k best answers to vectors in the space; phrases are among them only if `phrases`."""
        return self._searched(self._by_all if phrases else self._by_words, vectors, k)

    def _own(self, queries: Rows, k: int) -> Proposals:
        """The model's answers, as if no word were known."""
        by_all, by_words = (partial(self._searched, search) for search in (self._by_all, self._by_words))
        return self._either(queries >= self._words, by_all, by_words, queries, k)

    def _either(self, chosen: Truths, one: _Search, other: _Search, queries: Rows, k: int) -> Proposals:
        """What `one` finds for the chosen queries and `other` for the rest."""
        if not chosen.any():
            return other(queries, k)
        found = Proposals.blank(len(queries), min(k, self._keys))
        for places, search in ((chosen, one), (~chosen, other)):
            if places.any():
                found.put(places, search(queries[places], k))
        return found

    def _searched(self, search: Searcher, queries: Rows | Floats, k: int) -> Proposals:
        """What a search finds; only words of the vocabulary have confidences, vectors have none."""
        scores, rows = search(queries, max(k, 2))
        found = Proposals.blank(len(rows), min(k, self._keys))
        width = min(found.rows.shape[1], rows.shape[1])
        found.scores[:, :width], found.rows[:, :width] = scores[:, :width], rows[:, :width]
        if queries.ndim == 1 and self._calibrated is not None:
            words = np.asarray(queries, np.int64)
            density = self._space.density(words, rows[:, 0], direction=self._direction)
            confidence = self._calibrated.model(Candidates(scores, rows, words, density))
            found.confidence[:, :width] = confidence[:, :width]
        return found

    def _known_first(self, queries: Rows, k: int) -> Proposals:
        """The answers of queries that have known or rejected ones."""
        known = _padded([self._right.get(row, []) for row in queries.tolist()])
        wrong = _padded([self._wrong.get(row, []) for row in queries.tolist()])
        decided = np.concatenate([known, wrong], axis=1)
        found = self._own(queries, k + int((decided >= 0).sum(axis=1).max()))
        repeated = [np.isin(*both) for both in zip(found.rows, decided, strict=True)]
        found.rows[np.array(repeated)] = -1
        first = Proposals.blank(*known.shape)
        there = known >= 0
        first.rows[:], first.known[:] = known, there
        first.scores[there] = self._space.scores(
            np.repeat(queries, there.sum(axis=1)),
            known[there],
            direction=self._direction,
            retrieval=self._retrieval,
        )
        both = first.each(lambda *parts: np.concatenate(parts, axis=1), found)
        order = np.lexsort((-both.scores, ~both.known, both.rows < 0), axis=1)
        kept = both.each(lambda part: np.take_along_axis(part, order, axis=1))
        kept.scores[kept.rows < 0] = kept.confidence[kept.rows < 0] = np.nan
        return kept


def _padded(rows: Sequence[Sequence[int]]) -> Rows:
    """Lists of rows as a matrix, padded with −1."""
    most = max(map(len, rows))
    return np.array([[*row, *[-1] * (most - len(row))] for row in rows], np.int64).reshape(len(rows), most)


def closest_spellings(word: str, vocabulary: Sequence[str], n: int = 3) -> list[str]:
    """At most n words of a vocabulary that are spelt most like `word`, the frequent first where equally near.

    Comparing edit by edit with 200,000 words would take seconds, so two cheap filters come first: words of
    about the same length, and of those the ones that share most letter pairs; the first letter counts as one.
    """
    plain = _plain(word)
    if not plain or n < 1:
        return []
    longest_gap = max(1, len(word) // 4)
    pairs = {plain[i : i + 2] for i in range(len(plain) - 1)} or {plain}
    scored = []
    for place, known in enumerate(vocabulary):
        if abs(len(known) - len(word)) <= longest_gap:
            low = known.lower()
            shared = sum(pair in low for pair in pairs) + (low[:1] == plain[:1])
            if shared:
                scored.append((shared, -place, known))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(plain)
    near = []
    for place, (_, _, known) in enumerate(heapq.nlargest(_SHORTLIST, scored)):
        matcher.set_seq1(_plain(known))
        if (likeness := matcher.ratio()) >= _LIKENESS:
            near.append((-likeness, place, known))
    return [known for _, _, known in sorted(near)[:n]]


def _plain(word: str) -> str:
    """A word without case and accents."""
    decomposed = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


@dataclass(frozen=True)
class DoubtfulSeed:
    """A seed pair, its CSLS score, and the model's own answers to its two words."""

    source: str
    target: str
    score: float
    own_target: str
    own_source: str


def doubtful_seeds(translator: Translator, count: int = 20) -> list[DoubtfulSeed]:
    """At most `count` seed pairs that neither word's first answer agrees with, the lowest score first."""
    space = translator.space
    pairs = np.unique(translator.seeds.index(*space.places), axis=0)
    if not len(pairs):
        return []
    scores = space.scores(pairs[:, 0], pairs[:, 1])
    forward, backward = space.first_answers(pairs[:, 0]), space.first_answers(pairs[:, 1], "backward")
    disputed = np.flatnonzero((forward != pairs[:, 1]) & (backward != pairs[:, 0]))
    order = disputed[np.argsort(scores[disputed], kind="stable")][:count]
    words, answers = space.source.index_to_key, space.target.index_to_key
    return [
        DoubtfulSeed(words[a], answers[b], float(scores[row]), answers[forward[row]], words[backward[row]])
        for row, (a, b) in zip(order.tolist(), pairs[order].tolist(), strict=True)
    ]
