"""Whole dictionaries: word by word, or one entry per lemma with senses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage

from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.core.tables import Tabular
from bilex.core.text import listed
from bilex.lexicon import Entry, Lexicon
from bilex.lexicon.entries import NUMBERS, TEXTS, Dictionary, Languages
from bilex.lexicon.formats import WriteOptions, WriteReport, text_of, write
from bilex.lexicon.lemmas import Lemmatiser, lemmatiser
from bilex.model.answers import Columns, Proposals, Truths
from bilex.model.space import OPPOSITE, SIDES, Direction, Floats, Retrieval, Rows, Side, directed
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.model.filters import Keep
    from bilex.model.translator import Translator


_WORDS_PER_BLOCK = 16384
_SHOWN_PAIRS, _SHOWN_ROWS = 3, 10
_TYPES = {part.name: NUMBERS.get(part.name, bool if part.name == "known" else str) for part in fields(Entry)}
# Translations of different senses are less similar to each other than this, on average.
_SAME_SENSE = 0.3
# How sharply a form's vote falls with the score behind its best answer, in units of CSLS.
_SOFTNESS = 0.05
# What a form weighs beside the headword itself, and how many answers of each form vote.
_WEIGHT_OF_A_FORM, _VOTING_ANSWERS = 0.3, 15
_PAIRS_AT_ONCE = 50_000


@dataclass(frozen=True, repr=False)
class InducedLexicon(Tabular):
    """Pairs with their scores, in order of the frequency of the translated words, best translation first.

    Args:
        entries: The pairs.
        query_side: Whose words were translated; their column is written first.
    """

    entries: tuple[Entry, ...]
    query_side: Side = "source"

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def pairs(self) -> Lexicon:
        """The pairs alone, as a word list that an aligner can learn from."""
        return Lexicon([(entry.source, entry.target) for entry in self.entries], "the induced dictionary")

    def __repr__(self) -> str:
        pairs = (f"{entry.source}–{entry.target}" for entry in self.entries)
        return f"InducedLexicon({len(self):,} pairs: {listed(pairs, _SHOWN_PAIRS)})"

    def _repr_html_(self) -> str:
        from bilex.core.tables import html_table

        rows = [(e.source, e.target, e.score, "known" if e.known else e.confidence) for e in self.entries]
        return html_table(
            ("source", "target", "score", "confidence"), rows, _SHOWN_ROWS, f"{len(self):,} pairs"
        )

    def columns(self) -> dict[str, list[Any]]:
        """The fields of the entries, less texts that none of them has."""
        texts = (*TEXTS, "sense")
        unused = [name for name in texts if not any(getattr(entry, name) for entry in self.entries)]
        names = [name for name in _TYPES if name not in unused]
        return {name: [getattr(entry, name) for entry in self.entries] for name in names}

    def column_types(self) -> dict[str, type]:
        """The type of every field that an entry may have."""
        return _TYPES

    def dictionary(self, languages: Languages = (None, None)) -> Dictionary:
        """The entries for a file, the translated words first; `languages` are codes, where known."""
        if self.query_side == "source":
            return Dictionary(self.entries, languages, units=True)
        swapped = tuple(entry.swapped() for entry in self.entries)
        return Dictionary(swapped, (languages[1], languages[0]), ("target", "source"), units=True)

    def text(
        self, format: str, *, languages: Languages = (None, None), options: WriteOptions | None = None
    ) -> str:
        """The whole dictionary as text, the translated words first.

        Args:
            format: "tsv" (both words, score, confidence, "known" or "found"; no header), "csv" (with a
                header), "jsonl" or another format that is text.
            languages: Codes of the two languages, for formats that mark words with them.
            options: How to write.
        """
        return text_of(self.dictionary(languages), format, options)[0]

    def save(
        self,
        path: str | Path,
        format: str | None = None,
        *,
        languages: Languages = (None, None),
        options: WriteOptions | None = None,
    ) -> WriteReport:
        """Write the dictionary, atomically, in the format named or the one that the file's name says."""
        return write(path, self.dictionary(languages), format, options)


@dataclass(frozen=True)
class _Pairs(Columns):
    """Queries and their answers, rows of words or numbers of lemmas, one query after another."""

    query: Rows
    answer: Rows
    score: npt.NDArray[np.floating[Any]]
    confidence: npt.NDArray[np.float64]
    known: Truths

    def only(self, chosen: Truths | Rows) -> _Pairs:
        return self.each(lambda part: part[chosen])

    def best(self, k: int) -> _Pairs:
        """The first k answers of each query."""
        starts, counts = _groups(self.query)
        return self.only(np.arange(len(self.query)) - np.repeat(starts, counts) < k)

    def ranked(self) -> _Pairs:
        """By query, known answers first, then by falling score."""
        return self.only(np.lexsort((self.answer, -self.score, ~self.known, self.query)))


def _joined(*parts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate(parts)


def _groups(values: Rows) -> tuple[Rows, Rows]:
    """Where each run of equal values starts, and how long it is."""
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])[: len(values)]
    return starts, np.diff(np.r_[starts, len(values)])


@dataclass(frozen=True, kw_only=True)
class Induction:
    """Makes a dictionary; the fields are the arguments of `Translator.lexicon`."""

    translator: Translator
    k: int
    direction: Literal["forward", "backward", "both"]
    retrieval: Retrieval
    mutual: bool
    min_score: float | None
    min_confidence: float | None
    ranks: tuple[int, int | None]
    model_only: bool
    keep: Keep | None
    progress: Progress

    def __post_init__(self) -> None:
        calibration, (first, last) = self.translator.calibration, self.ranks
        lacking = any((direction, self.retrieval) not in calibration.parts for direction in self._directions)
        if self.min_confidence is not None and lacking:
            raise BilexError(
                f"a least confidence was given, but this model has no confidences ({calibration.note}); "
                "use a least score instead."
            )
        if first < 1 or (last is not None and last < first) or self.k < 1:
            raise BilexError(
                f"ranks {first} to {last} with {self.k} translations per word name no words; ranks count "
                "from 1, and at least 1 translation is needed."
            )

    @property
    def _directions(self) -> tuple[Direction, ...]:
        return tuple(OPPOSITE) if self.direction == "both" else (self.direction,)

    def by_word(self) -> InducedLexicon:
        """Every word with its best translations."""
        first = self._directions[0]
        lists = []
        for direction in self._directions:
            pairs = self._pairs(direction, 1 if self.mutual else self.k)
            if self.mutual:
                distinct, place = np.unique(pairs.answer, return_inverse=True)
                best = self._answers(distinct, 1, OPPOSITE[direction]).rows
                pairs = pairs.only(best[place.reshape(-1), 0] == pairs.query)
            if direction != first:
                pairs = replace(pairs, query=pairs.answer, answer=pairs.query)
            lists.append(pairs)
        whole = lists[0].each(_joined, *lists[1:])
        count = len(self.translator.whole_space.sides(first)[1])
        _, once = np.unique(whole.query * count + whole.answer, return_index=True)
        return self._lexicon(whole.only(np.sort(once)).ranked(), first)

    def by_lemma(self, languages: tuple[str, str] | None) -> InducedLexicon:
        """Every lemma with its best translations: the votes of its forms added up, senses kept apart."""
        if self.direction == "both":
            raise BilexError("a dictionary by lemmas has one direction; choose forward or backward.")
        direction, space = self.direction, self.translator.whole_space
        codes = languages or self.translator.provenance.languages
        with self.progress.task("Finding lemmas", 2) as task:
            lemmas = []
            for words, code in zip((space.source, space.target), codes, strict=True):
                lemmas.append(Lemmas.of(words, lemmatiser(code)))
                task.advance()
        query_side, key_side = directed((lemmas[0], lemmas[1]), direction)
        pairs = self._votes(direction, query_side, key_side)
        if self.mutual:
            others = replace(self, ranks=(1, None))._votes(OPPOSITE[direction], key_side, query_side).best(1)
            back = set(zip(others.answer.tolist(), others.query.tolist(), strict=True))
            pairs = pairs.best(1)
            both = zip(pairs.query.tolist(), pairs.answer.tolist(), strict=True)
            pairs = pairs.only(np.array([pair in back for pair in both], bool))
        pairs = pairs.best(self.k)
        with self.progress.task("Writing entries", len(pairs.query)) as task:
            rows, scores = self._chosen_forms(direction, pairs, query_side, key_side)
            senses = sense_numbers(pairs.query, key_side.heads[pairs.answer], space.sides(direction)[1])
            heads = query_side.heads[pairs.query]
            made = self._lexicon(replace(pairs, query=heads, answer=rows, score=scores), direction, senses)
            task.advance(len(pairs.query))
        return made

    def _lexicon(self, pairs: _Pairs, direction: Direction, senses: Rows | None = None) -> InducedLexicon:
        """The pairs that are known, or whose scores and confidences are high enough."""
        chosen = np.ones(len(pairs.query), bool)
        if self.min_score is not None:
            chosen &= pairs.score >= self.min_score
        if self.min_confidence is not None:
            chosen &= pairs.confidence >= self.min_confidence
        chosen |= pairs.known
        numbers = np.zeros(len(chosen), np.int64) if senses is None else senses
        columns = (part[chosen].tolist() for part in (*vars(pairs).values(), numbers))
        space = self.translator.whole_space
        entries = []
        for query, answer, score, confidence, known, sense in zip(*columns, strict=True):
            source, target = directed((query, answer), direction)
            entries.append(
                Entry(
                    source=space.source.index_to_key[source],
                    target=space.target.index_to_key[target],
                    score=score,
                    confidence=None if known or np.isnan(confidence) else confidence,
                    source_rank=source + 1,
                    target_rank=target + 1,
                    known=known,
                    sense=sense or None,
                )
            )
        return InducedLexicon(tuple(entries), directed(SIDES, direction)[0])

    def _pairs(self, direction: Direction, k: int) -> _Pairs:
        """The k best answers of every query word within the ranks, those that the filter keeps."""
        query_side, key_side = (side.index_to_key for side in self.translator.whole_space.sides(direction))
        own, other = directed(SIDES, direction)
        first, last = self.ranks
        queries = np.arange(first - 1, min(last or len(query_side), len(query_side)), dtype=np.int64)
        if not len(queries):
            raise BilexError(f"there are {len(query_side)} words, none of rank {first} or above; lower it.")
        if self.keep is not None:
            queries = queries[[self.keep(query_side[row], own) for row in queries.tolist()]]
            if not len(queries):
                raise BilexError("the filters leave no word to translate; filter less.")
        found = self._answers(queries, k, direction)
        score, answer, confidence, known = (part.reshape(-1) for part in vars(found).values())
        chosen = answer >= 0
        if self.keep is not None:
            chosen &= np.array([self.keep(word, other) for word in key_side], bool)[answer] | known
        return _Pairs(np.repeat(queries, found.rows.shape[1]), answer, score, confidence, known).only(chosen)

    def _answers(self, queries: Rows, k: int, direction: Direction) -> Proposals:
        """The answers of many words, in blocks, for progress and so that no more rows are copied at once."""
        propose = self.translator.proposer(direction, self.retrieval, model_only=self.model_only)
        blocks = []
        with self.progress.task(f"Translating {direction}", len(queries)) as task:
            for start in range(0, len(queries), _WORDS_PER_BLOCK):
                block = queries[start : start + _WORDS_PER_BLOCK]
                blocks.append(propose(block, k))
                task.advance(len(block))
        return blocks[0].each(_joined, *blocks[1:])

    def _votes(self, direction: Direction, query_side: Lemmas, key_side: Lemmas) -> _Pairs:
        """The votes of all forms within the ranks for lemmas of the other language, ranked.

        Each form has one vote, which it divides among its answers by exp(score / 0.05). The headword's vote
        counts fully, that of every other form 0.3. Known translations come before all others.
        """
        pairs = self._pairs(direction, _VOTING_ANSWERS)
        starts, counts = _groups(pairs.query)
        if not len(starts):
            return pairs
        best = np.repeat(np.maximum.reduceat(pairs.score, starts), counts)
        shares = np.exp((pairs.score - best) / _SOFTNESS)
        shares /= np.repeat(np.add.reduceat(shares, starts), counts)
        lemma = query_side.number[pairs.query]
        votes = shares * np.where(query_side.heads[lemma] == pairs.query, 1.0, _WEIGHT_OF_A_FORM)
        keys = lemma * len(key_side.heads) + key_side.number[pairs.answer]
        order = np.argsort(keys, kind="stable")
        starts, _ = _groups(keys[order])
        query, answer = np.divmod(keys[order][starts], len(key_side.heads))
        return _Pairs(
            query,
            answer,
            np.add.reduceat(votes[order], starts),
            np.fmax.reduceat(pairs.confidence[order], starts),
            np.logical_or.reduceat(pairs.known[order], starts),
        ).ranked()

    def _chosen_forms(
        self, direction: Direction, pairs: _Pairs, query_side: Lemmas, key_side: Lemmas
    ) -> tuple[Rows, Floats]:
        """The form of each key lemma that agrees with the headword, and its score.

        A headword that is the lemma itself gets the other lemma itself. Where one of the two is not in its
        vocabulary, the form with the highest CSLS to the headword is taken: forms of the same inflection are
        the nearest to each other, so that "dogs" finds "koirat".
        """
        rows, best = np.empty(len(pairs.query), np.int64), np.empty(len(pairs.query), np.float32)
        for start in range(0, len(rows), _PAIRS_AT_ONCE):
            block = slice(start, start + _PAIRS_AT_ONCE)
            query, answer = pairs.query[block], pairs.answer[block]
            forms = [key_side.forms(lemma) for lemma in answer.tolist()]
            counts = np.array([len(found) for found in forms])
            every = np.concatenate(forms)
            heads = np.repeat(query_side.heads[query], counts)
            scores = self.translator.whole_space.scores(heads, every, direction=direction)
            both = query_side.cited[query] & key_side.cited[answer]
            lemma = np.repeat(np.where(both, key_side.heads[answer], -1), counts)
            allowed = np.where((lemma < 0) | (every == lemma), scores, -np.inf)
            of_pair = np.repeat(np.arange(len(counts)), counts)
            first = np.lexsort((-allowed, of_pair))[np.cumsum(counts) - counts]  # the best form of each pair
            rows[block], best[block] = every[first], allowed[first]
        return rows, best


def sense_numbers(queries: Rows, answers: Rows, words: WordVectors) -> npt.NDArray[np.int64]:
    """The number of each answer's sense, from 1 in order of the answers; 0 where there is one sense only.

    Answers to one query, which are adjacent, are joined by average linkage while the mean cosine of two
    groups is at least 0.3. `answers` are rows of the vocabulary `words`.
    """
    numbers = np.zeros(len(queries), np.int64)
    for start, count in zip(*(part.tolist() for part in _groups(queries)), strict=True):
        if count > 1:
            units = np.asarray(words.vectors[answers[start : start + count]], np.float64)
            units = units / np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
            distance = np.maximum(1 - (units @ units.T)[np.triu_indices(count, 1)], 0)
            labels = fcluster(linkage(distance, "average"), 1 - _SAME_SENSE, "distance").tolist()
            order = {label: place for place, label in enumerate(dict.fromkeys(labels), 1)}
            if len(order) > 1:
                numbers[start : start + count] = [order[label] for label in labels]
    return numbers


@dataclass(frozen=True)
class Lemmas:
    """The lemmas of a vocabulary."""

    number: Rows  # the number of each word's lemma
    heads: Rows  # the row of each lemma, or of its most frequent form if it is not in the vocabulary
    cited: Truths  # whether the headword of each lemma is the lemma itself
    order: Rows  # the rows of all words, lemma by lemma
    starts: Rows  # where each lemma begins in `order`; one more number ends the last

    @classmethod
    def of(cls, words: WordVectors, lemma: Lemmatiser) -> Lemmas:
        """The lemmas of a vocabulary, numbered by their most frequent form.

        A word that is another word's lemma is its own: "left" has an entry beside "leave", since "lefts"
        needs one.
        """
        found = [lemma(word) for word in words.index_to_key]
        citations = set(found)
        both = zip(words.index_to_key, found, strict=True)
        texts = [word if word in citations else text for word, text in both]
        known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        number = np.array([known[text] for text in texts], np.int64)
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(len(known) + 1))
        rows = words.key_to_index
        heads = np.array([rows.get(text, order[starts[n]]) for text, n in known.items()], np.int64)
        return cls(number, heads, np.array([text in rows for text in known], bool), order, starts)

    def forms(self, lemma: int) -> Rows:
        """The rows of a lemma's forms, most frequent first."""
        return self.order[self.starts[lemma] : self.starts[lemma + 1]]
