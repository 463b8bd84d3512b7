"""A whole dictionary out of a space: word by word, or one entry per lemma with senses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage

from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.core.tables import Tabular
from bilex.lexicon import Entry, Lexicon
from bilex.lexicon.entries import NUMBERS, TEXTS, Dictionary, Languages
from bilex.lexicon.formats import WriteOptions, WriteReport, text_of, write
from bilex.lexicon.lemmas import Lemmatiser, lemmatiser
from bilex.model.known import Proposals, Truths
from bilex.model.space import Direction, Floats, Retrieval, Rows, Side
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.model.filters import Keep
    from bilex.model.translator import Translator


_WORDS_PER_BLOCK = 16384
_SHOWN_PAIRS, _SHOWN_ROWS = 3, 10
_TYPES = {part.name: NUMBERS.get(part.name, bool if part.name == "known" else str) for part in fields(Entry)}
_BACK: dict[Direction, Direction] = {"forward": "backward", "backward": "forward"}
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
        shown = ", ".join(f"{entry.source}–{entry.target}" for entry in self.entries[:_SHOWN_PAIRS])
        more = ", ..." if len(self) > _SHOWN_PAIRS else ""
        return f"InducedLexicon({len(self):,} pairs: {shown}{more})"

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
        self, form: str, *, languages: Languages = (None, None), options: WriteOptions | None = None
    ) -> str:
        """The whole dictionary as text, the translated words first.

        Args:
            form: "tsv" (both words, score, confidence, "known" or "found"; no header), "csv" (with a header),
                "jsonl" or another format that is text.
            languages: Codes of the two languages, for formats that mark words with them.
            options: How to write.
        """
        return text_of(self.dictionary(languages), form, options)[0]

    def save(
        self,
        path: str | Path,
        form: str | None = None,
        *,
        languages: Languages = (None, None),
        options: WriteOptions | None = None,
    ) -> WriteReport:
        """Write the dictionary, atomically, in the format named or the one that the file's name says."""
        return write(path, self.dictionary(languages), form, options)


@dataclass(frozen=True)
class _Pairs:
    """Queries and their answers, rows of words or numbers of lemmas, one query after another."""

    query: Rows
    answer: Rows
    score: npt.NDArray[np.floating[Any]]
    confidence: npt.NDArray[np.float64]
    known: Truths

    def only(self, chosen: Truths | Rows) -> _Pairs:
        return _Pairs(*(part[chosen] for part in vars(self).values()))

    def best(self, k: int) -> _Pairs:
        """The first k answers of each query."""
        starts = np.flatnonzero(np.r_[True, self.query[1:] != self.query[:-1]])
        place = np.arange(len(self.query)) - np.repeat(starts, np.diff(np.r_[starts, len(self.query)]))
        return self.only(place < k)

    def ranked(self) -> _Pairs:
        """By query, known answers first, then by falling score."""
        return self.only(np.lexsort((self.answer, -self.score, ~self.known, self.query)))


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
        calibration, ranks = self.translator.calibration, self.ranks
        if self.min_confidence is not None and any(
            (side, self.retrieval) not in calibration.parts for side in self._directions
        ):
            raise BilexError(
                f"a least confidence was asked for, but this model has none ({calibration.note}); "
                "use a least score instead."
            )
        if ranks[0] < 1 or (ranks[1] is not None and ranks[1] < ranks[0]) or self.k < 1:
            raise BilexError(
                f"ranks {ranks[0]} to {ranks[1]} with {self.k} translations per word name no words; "
                "ranks count from 1, and at least 1 translation is needed."
            )

    @property
    def _directions(self) -> tuple[Direction, ...]:
        return ("forward", "backward") if self.direction == "both" else (self.direction,)

    def by_word(self) -> InducedLexicon:
        """Every word with its best translations."""
        first = self._directions[0]
        lists = []
        for direction in self._directions:
            pairs = self._best_answers(direction)
            if self.mutual:
                distinct, place = np.unique(pairs.answer, return_inverse=True)
                best = self._answers(distinct, 1, _BACK[direction]).rows
                pairs = pairs.only(best[place.reshape(-1), 0] == pairs.query)
            lists.append(
                pairs if direction == first else replace(pairs, query=pairs.answer, answer=pairs.query)
            )
        whole = _Pairs(*map(np.concatenate, zip(*(vars(one).values() for one in lists), strict=True)))
        count = len(self.translator.whole_space.sides(first)[1])
        _, once = np.unique(whole.query * count + whole.answer, return_index=True)
        return self._lexicon(whole.only(np.sort(once)).ranked(), first)

    def by_lemma(self, languages: tuple[str, str] | None) -> InducedLexicon:
        """Every lemma with its best translations: its forms' votes joined, senses kept apart."""
        if self.direction == "both":
            raise BilexError("a dictionary by lemmas has one direction; choose forward or backward.")
        direction, space = self.direction, self.translator.whole_space
        codes = languages or self.translator.provenance.languages
        with self.progress.task("Finding lemmas", 2) as task:
            lemmas = []
            for words, code in zip((space.source, space.target), codes, strict=True):
                lemmas.append(Lemmas.of(words, lemmatiser(code)))
                task.advance()
        query_side, key_side = lemmas if direction == "forward" else lemmas[::-1]
        pairs = self._votes(direction, query_side, key_side)
        if self.mutual:
            all_words = replace(self, ranks=(1, None))
            others = all_words._votes(_BACK[direction], key_side, query_side).best(1)
            first = dict(zip(others.query.tolist(), others.answer.tolist(), strict=True))
            pairs = pairs.best(1)
            both = zip(pairs.query.tolist(), pairs.answer.tolist(), strict=True)
            pairs = pairs.only(np.array([first.get(b) == a for a, b in both], bool))
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
            source, target = (query, answer) if direction == "forward" else (answer, query)
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
        return InducedLexicon(tuple(entries), "source" if direction == "forward" else "target")

    def _best_answers(self, direction: Direction) -> _Pairs:
        """The k best answers of every query word within the range of ranks."""
        queries = self._queries(direction)
        found = self._answers(queries, 1 if self.mutual else self.k, direction)
        scores, answer, confidence, known = (part.reshape(-1) for part in vars(found).values())
        chosen = answer >= 0
        if self.keep is not None:
            chosen &= self._may_answer(self.keep, direction)[answer] | known
        query = np.repeat(queries, found.rows.shape[1])
        return _Pairs(query, answer, scores, confidence, known).only(chosen)

    def _queries(self, direction: Direction) -> Rows:
        """The rows of the words to translate: those within the ranks that the filters keep."""
        words = self.translator.whole_space.sides(direction)[0].index_to_key
        first, last = self.ranks
        queries = np.arange(first - 1, min(last or len(words), len(words)), dtype=np.int64)
        if not len(queries):
            raise BilexError(f"there are {len(words)} words and none of rank {first} or above; ask for less.")
        if self.keep is not None:
            side: Side = "source" if direction == "forward" else "target"
            queries = queries[[self.keep(words[row], side) for row in queries.tolist()]]
            if not len(queries):
                raise BilexError("the filters leave no word to translate; ask for less.")
        return queries

    def _may_answer(self, keep: Keep, direction: Direction) -> Truths:
        """Of each word of the key language, whether the filters keep it."""
        words = self.translator.whole_space.sides(direction)[1].index_to_key
        side: Side = "target" if direction == "forward" else "source"
        return np.array([keep(word, side) for word in words], bool)

    def _answers(self, queries: Rows, k: int, direction: Direction) -> Proposals:
        """The answers of many words, some thousand at a time, for progress and so that no more are copied."""
        propose = self.translator.proposer(direction, self.retrieval, model_only=self.model_only)
        blocks = []
        with self.progress.task(f"Translating {direction}", len(queries)) as task:
            for start in range(0, len(queries), _WORDS_PER_BLOCK):
                block = queries[start : start + _WORDS_PER_BLOCK]
                blocks.append(propose(block, k))
                task.advance(len(block))
        return Proposals(*map(np.concatenate, zip(*(vars(one).values() for one in blocks), strict=True)))

    def _votes(self, direction: Direction, query_side: Lemmas, key_side: Lemmas) -> _Pairs:
        """The votes of all forms within the ranks for lemmas of the other language, ranked.

        Each form has one vote, which it divides among its answers by exp(score / 0.05). The headword's vote
        counts fully, that of every other form 0.3. Known translations come before all others.
        """
        queries = self._queries(direction)
        found = self._answers(queries, _VOTING_ANSWERS, direction)
        there = found.rows >= 0
        if self.keep is not None:
            there &= self._may_answer(self.keep, direction)[found.rows] | found.known
        scores = np.where(there, found.scores, -np.inf)
        best = scores.max(axis=1, keepdims=True)
        shares = np.exp((scores - np.where(np.isfinite(best), best, 0)) / _SOFTNESS)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(shares.dtype).tiny)
        own = query_side.number[queries]
        weight = np.where(query_side.heads[own] == queries, 1.0, _WEIGHT_OF_A_FORM)
        lemma = np.repeat(own, found.rows.shape[1])[there.reshape(-1)]
        keys = lemma * len(key_side.heads) + key_side.number[found.rows[there]]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
        vote = np.add.reduceat((shares * weight[:, None])[there][order], starts)
        known = np.logical_or.reduceat(found.known[there][order], starts)
        confidence = np.fmax.reduceat(found.confidence[there][order], starts)
        first, second = np.divmod(keys[starts], len(key_side.heads))
        return _Pairs(first, second, vote, confidence, known).ranked()

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
            begins = np.cumsum(counts) - counts
            top = np.maximum.reduceat(allowed, begins)
            is_best = allowed == np.repeat(top, counts)
            first = np.minimum.reduceat(np.where(is_best, np.arange(len(scores)), len(scores)), begins)
            rows[block], best[block] = every[first], top
        return rows, best


def sense_numbers(queries: Rows, answers: Rows, words: WordVectors) -> npt.NDArray[np.int64]:
    """The number of each answer's sense, from 1 in order of the answers; 0 where there is one sense only.

    Answers to one query, which stand together, are joined by average linkage while the mean cosine of two
    groups is at least 0.3. `answers` are rows of the vocabulary `words`.
    """
    numbers = np.zeros(len(queries), np.int64)
    if not len(queries):
        return numbers
    bounds = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1], True])
    for start, end in pairwise(bounds.tolist()):
        if end - start > 1:
            numbers[start:end] = _groups(np.asarray(words.vectors[answers[start:end]], np.float64))
    return numbers


def _groups(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    distance = np.maximum(1 - (units @ units.T)[np.triu_indices(len(units), 1)], 0)
    labels = fcluster(linkage(distance, "average"), 1 - _SAME_SENSE, "distance")
    order = {label: place for place, label in enumerate(dict.fromkeys(labels.tolist()), 1)}
    if len(order) == 1:
        return np.zeros(len(labels), np.int64)
    return np.array([order[label] for label in labels.tolist()], np.int64)


@dataclass(frozen=True)
class Lemmas:
    """The lemmas of a vocabulary.

    Attributes:
        number: The number of each word's lemma.
        heads: The row of each lemma's headword: the lemma itself if the vocabulary has it, else its most
            frequent form.
        cited: Whether the headword of each lemma is the lemma itself.
        order: The rows of all words, lemma by lemma.
        starts: Where each lemma begins in `order`; one more number ends the last.
    """

    number: Rows
    heads: Rows
    cited: Truths
    order: Rows
    starts: Rows

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
