"""A whole dictionary out of a space: word by word, or one entry per lemma with senses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.core.tables import Tabular
from bilex.lexicon import Entry, Lexicon
from bilex.lexicon.entries import TEXTS, Dictionary, Languages
from bilex.lexicon.formats import WriteOptions, WriteReport, text_of, write
from bilex.lexicon.lemmas import Lemmatiser, lemmatiser
from bilex.model.known import Proposals
from bilex.model.space import Direction, Floats, Retrieval, Rows, Side, Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.model.filters import Keep
    from bilex.model.translator import Translator


_WORDS_A_BLOCK = 16384
_SHOWN_PAIRS = 3
_SHOWN_ROWS = 10
_TYPES: dict[str, type] = {
    "source": str,
    "target": str,
    "score": float,
    "confidence": float,
    "source_rank": int,
    "target_rank": int,
    "known": bool,
    "part_of_speech": str,
    "status": str,
    "provenance": str,
    "sense": int,
    "gloss": str,
    "labels": str,
    "comment": str,
    "example": str,
}


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
        names = [field.name for field in fields(Entry) if field.name not in unused]
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
class LexiconOptions:
    """What to export; the fields are the arguments of `Translator.lexicon`."""

    k: int = 1
    direction: Literal["forward", "backward", "both"] = "forward"
    retrieval: Retrieval = "csls"
    mutual: bool = False
    min_score: float | None = None
    min_confidence: float | None = None
    ranks: tuple[int, int | None] = (1, None)
    model_only: bool = False
    keep: Keep | None = None

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions in which words are translated."""
        return ("forward", "backward") if self.direction == "both" else (self.direction,)


@dataclass(frozen=True)
class _Found:
    """Pairs of rows with scores and confidences, one query word after another."""

    source: Rows
    target: Rows
    score: Floats
    confidence: npt.NDArray[np.float64]
    known: npt.NDArray[np.bool_]

    def only(self, chosen: npt.NDArray[np.bool_] | Rows) -> _Found:
        return _Found(*(part[chosen] for part in vars(self).values()))


def induce(translator: Translator, options: LexiconOptions, progress: Progress = SILENT) -> InducedLexicon:
    """Every word with its best translations."""
    _check(translator, options)
    lists = []
    for direction in options.directions:
        answers = _best_answers(translator, options, direction, progress)
        if options.mutual:
            answers = answers.only(_is_mutual(translator, options, answers, direction, progress))
        lists.append(answers)
    backward = options.direction == "backward"
    found = _joined(lists, len(translator.whole_space.target), by_target=backward)
    return _lexicon(translator.whole_space, found, options)


def _lexicon(
    space: Space, found: _Found, options: LexiconOptions, senses: Rows | None = None
) -> InducedLexicon:
    """The pairs that are known, or whose scores and confidences are high enough."""
    chosen = np.ones(len(found.source), bool)
    if options.min_score is not None:
        chosen &= found.score >= options.min_score
    if options.min_confidence is not None:
        chosen &= found.confidence >= options.min_confidence
    chosen |= found.known
    kept = found.only(chosen)
    numbers = np.zeros(len(kept.source), np.int64) if senses is None else senses[chosen]
    columns = (part.tolist() for part in (*vars(kept).values(), numbers))
    entries = (
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
        for source, target, score, confidence, known, sense in zip(*columns, strict=True)
    )
    return InducedLexicon(tuple(entries), "target" if options.direction == "backward" else "source")


def _check(translator: Translator, options: LexiconOptions) -> None:
    """Refuse what makes no sense."""
    calibration, ranks = translator.calibration, options.ranks
    if options.min_confidence is not None and any(
        (side, options.retrieval) not in calibration.parts for side in options.directions
    ):
        raise BilexError(
            f"a least confidence was asked for, but this model has none ({calibration.note}); "
            "use a least score instead."
        )
    if ranks[0] < 1 or (ranks[1] is not None and ranks[1] < ranks[0]) or options.k < 1:
        raise BilexError(
            f"ranks {ranks[0]} to {ranks[1]} with {options.k} translations per word name no words; "
            "ranks count from 1, and at least 1 translation is needed."
        )


def _best_answers(
    translator: Translator, options: LexiconOptions, direction: Direction, progress: Progress
) -> _Found:
    """The k best answers of every query word within a range of ranks."""
    queries = _queries(translator, options, direction)
    found = _answers(translator, options, queries, 1 if options.mutual else options.k, direction, progress)
    scores, answer, confidence, known = (part.reshape(-1) for part in vars(found).values())
    query = np.repeat(queries, found.rows.shape[1])
    source, target = (query, answer) if direction == "forward" else (answer, query)
    chosen = answer >= 0
    if options.keep is not None:
        chosen &= _may_answer(translator, options.keep, direction)[answer] | known
    return _Found(source, target, scores, confidence, known).only(chosen)


def _queries(translator: Translator, options: LexiconOptions, direction: Direction) -> Rows:
    """The rows of the words to translate: those within the ranks that the filters keep."""
    query_side, _ = translator.whole_space.sides(direction)
    first, last = options.ranks
    queries = np.arange(first - 1, min(last or len(query_side), len(query_side)), dtype=np.int64)
    side: Side = "source" if direction == "forward" else "target"
    if options.keep is not None and len(queries):
        queries = queries[[options.keep(query_side.index_to_key[row], side) for row in queries.tolist()]]
        if not len(queries):
            raise BilexError("the filters leave no word to translate; ask for less.")
    if not len(queries):
        raise BilexError(
            f"there are {len(query_side)} words and none of rank {first} or above; ask for less."
        )
    return queries


def _may_answer(translator: Translator, keep: Keep, direction: Direction) -> npt.NDArray[np.bool_]:
    """Of each word of the key language, whether the filters keep it."""
    key_side = translator.whole_space.sides(direction)[1]
    side: Side = "target" if direction == "forward" else "source"
    return np.array([keep(word, side) for word in key_side.index_to_key], bool)


def _answers(
    translator: Translator,
    options: LexiconOptions,
    queries: Rows,
    k: int,
    direction: Direction,
    progress: Progress,
) -> Proposals:
    """The answers of many words, some thousand at a time, for progress and so that no more are copied."""
    propose = translator.proposer(direction, options.retrieval, model_only=options.model_only)
    blocks = []
    with progress.task(f"Translating {direction}", len(queries)) as task:
        for start in range(0, len(queries), _WORDS_A_BLOCK):
            block = queries[start : start + _WORDS_A_BLOCK]
            blocks.append(propose(block, k))
            task.advance(len(block))
    return Proposals(*_concatenated(blocks))


def _concatenated(blocks: Sequence[Any]) -> Iterator[Any]:
    """The fields of several records of arrays, each joined along its first axis."""
    return (np.concatenate(parts) for parts in zip(*(vars(b).values() for b in blocks), strict=True))


def _is_mutual(
    translator: Translator, options: LexiconOptions, found: _Found, direction: Direction, progress: Progress
) -> npt.NDArray[np.bool_]:
    """Whether each pair's query word is the best answer of its answer."""
    query, answer = (found.source, found.target) if direction == "forward" else (found.target, found.source)
    distinct, place = np.unique(answer, return_inverse=True)
    back: Direction = "backward" if direction == "forward" else "forward"
    best = _answers(translator, options, distinct, 1, back, progress).rows
    mutual: npt.NDArray[np.bool_] = best[place.reshape(-1), 0] == query
    return mutual


def _joined(lists: list[_Found], targets: int, *, by_target: bool) -> _Found:
    """All pairs, each once (the first list's own): by query word, known ones first, by falling score."""
    joined = _Found(*_concatenated(lists))
    _, first = np.unique(joined.source * targets + joined.target, return_index=True)
    joined = joined.only(np.sort(first))
    query_side, answer = (joined.target, joined.source) if by_target else (joined.source, joined.target)
    return joined.only(np.lexsort((answer, -joined.score, ~joined.known, query_side)))


# Translations of different senses are less similar to each other than this, on average.
_SAME_SENSE = 0.3


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


# How sharply a form's vote falls with the score behind its best answer, in units of CSLS.
_SOFTNESS = 0.05
# What a form weighs beside the headword itself.
_WEIGHT_OF_A_FORM = 0.3
# How many answers of each form vote.
VOTING_ANSWERS = 15
_PAIRS_AT_ONCE = 50_000


@dataclass(frozen=True)
class Lemmas:
    """The lemmas of a vocabulary.

    Attributes:
        number: The number of each word's lemma.
        heads: For each lemma, the row of its headword: the lemma itself if the vocabulary has it, else its
            most frequent form.
        cited: Whether the headword of each lemma is the lemma itself.
        order: The rows of all words, lemma by lemma.
        starts: Where each lemma begins in `order`; one more number ends the last.
    """

    number: Rows
    heads: Rows
    cited: npt.NDArray[np.bool_]
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
        texts = [
            word if word in citations else text for word, text in zip(words.index_to_key, found, strict=True)
        ]
        known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        number = np.array([known[text] for text in texts], np.int64)
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(len(known) + 1))
        heads = np.array(
            [words.key_to_index.get(text, order[starts[n]]) for text, n in known.items()], np.int64
        )
        cited = np.array([text in words.key_to_index for text in known], bool)
        return cls(number, heads, cited, order, starts)

    def __len__(self) -> int:
        return len(self.heads)

    def forms(self, lemma: int) -> Rows:
        """The rows of a lemma's forms, most frequent first."""
        return self.order[self.starts[lemma] : self.starts[lemma + 1]]


@dataclass(frozen=True)
class Votes:
    """Which lemmas answer which, by falling vote; one pair of lemmas an element."""

    query_side: Rows
    key_side: Rows
    vote: npt.NDArray[np.float64]
    known: npt.NDArray[np.bool_]
    confidence: npt.NDArray[np.float64]

    def best(self, k: int) -> Votes:
        """The first k answers of each query lemma."""
        starts = np.flatnonzero(np.r_[True, self.query_side[1:] != self.query_side[:-1]])
        place = np.arange(len(self.query_side)) - np.repeat(
            starts, np.diff(np.r_[starts, len(self.query_side)])
        )
        return Votes(*(part[place < k] for part in vars(self).values()))


def votes_of(queries: Rows, found: Proposals, query_side: Lemmas, key_side: Lemmas) -> Votes:
    """The votes of all forms for lemmas of the other language.

    Each form (a row of `queries`) has one vote, which it divides among its answers by exp(score / 0.05). The
    headword's vote counts fully, that of every other form 0.3. Known translations come before all others.
    """
    there = found.rows >= 0
    scores = np.where(there, found.scores, -np.inf)
    shares = np.exp((scores - scores.max(axis=1, keepdims=True)) / _SOFTNESS)
    shares /= shares.sum(axis=1, keepdims=True)
    own = query_side.number[queries]
    weight = np.where(query_side.heads[own] == queries, 1.0, _WEIGHT_OF_A_FORM)
    chosen = there.reshape(-1)
    lemma = np.repeat(own, found.rows.shape[1])[chosen]
    answer = key_side.number[found.rows.reshape(-1)[chosen]]
    keys = lemma * len(key_side) + answer
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    vote = np.add.reduceat((shares * weight[:, None]).reshape(-1)[chosen][order], starts)
    known = np.logical_or.reduceat(found.known.reshape(-1)[chosen][order], starts)
    sure = np.nan_to_num(found.confidence.reshape(-1)[chosen][order], nan=-1.0)
    confidence = np.maximum.reduceat(sure, starts)
    confidence[confidence < 0] = np.nan
    first, second = np.divmod(keys[starts], len(key_side))
    ranked = np.lexsort((second, -vote, ~known, first))
    return Votes(*(part[ranked] for part in (first, second, vote, known, confidence)))


def chosen_forms(
    translator: Translator, direction: Direction, pairs: Votes, query_side: Lemmas, key_side: Lemmas
) -> tuple[Rows, Floats]:
    """The form of each key lemma that agrees with the headword, and its score.

    A headword that is the lemma itself gets the other lemma itself. Where one of the two is not in its
    vocabulary, the form with the highest CSLS to the headword is taken: forms of the same inflection are the
    nearest to each other, so that "dogs" finds "koirat".
    """
    rows, best = np.empty(len(pairs.query_side), np.int64), np.empty(len(pairs.query_side), np.float32)
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        block = slice(start, start + _PAIRS_AT_ONCE)
        forms = [key_side.forms(lemma) for lemma in pairs.key_side[block].tolist()]
        counts = np.array([len(found) for found in forms])
        heads = np.repeat(query_side.heads[pairs.query_side[block]], counts)
        every = np.concatenate(forms)
        scores = translator.whole_space.scores(heads, every, direction=direction)
        begins = np.cumsum(counts) - counts
        top = np.maximum.reduceat(scores, begins)
        both = query_side.cited[pairs.query_side[block]] & key_side.cited[pairs.key_side[block]]
        lemma = np.repeat(np.where(both, key_side.heads[pairs.key_side[block]], -1), counts)
        top[both] = scores[(every == lemma) & (lemma >= 0)]
        is_top = np.where(lemma >= 0, every == lemma, scores == np.repeat(top, counts))
        first = np.minimum.reduceat(np.where(is_top, np.arange(len(scores)), len(scores)), begins)
        rows[block], best[block] = every[first], top
    return rows, best


def mutual_pairs(pairs: Votes, back: Votes) -> Votes:
    """The pairs whose key lemma has the query lemma as its first answer."""
    first = dict(zip(back.query_side.tolist(), back.key_side.tolist(), strict=True))
    chosen = np.array(
        [first.get(b) == a for a, b in zip(pairs.query_side.tolist(), pairs.key_side.tolist(), strict=True)],
        bool,
    )
    return Votes(*(part[chosen] for part in vars(pairs).values()))


def induce_by_lemma(
    translator: Translator,
    options: LexiconOptions,
    languages: tuple[str, str] | None = None,
    progress: Progress = SILENT,
) -> InducedLexicon:
    """Every lemma with its best translations: its forms' votes joined, senses kept apart."""
    _check(translator, options)
    if options.direction == "both":
        raise BilexError("a dictionary by lemmas has one direction; choose forward or backward.")
    direction: Direction = options.direction
    sides = translator.whole_space.source, translator.whole_space.target
    codes = languages or translator.provenance.languages
    with progress.task("Finding lemmas", 2) as task:
        lemmas = []
        for words, code in zip(sides, codes, strict=True):
            lemmas.append(Lemmas.of(words, lemmatiser(code)))
            task.advance()
    query_side, key_side = lemmas if direction == "forward" else lemmas[::-1]
    pairs = _votes(translator, options, direction, query_side, key_side, progress)
    if options.mutual:
        back: Direction = "backward" if direction == "forward" else "forward"
        others = _votes(translator, replace(options, ranks=(1, None)), back, key_side, query_side, progress)
        pairs = mutual_pairs(pairs.best(1), others.best(1))
    pairs = pairs.best(options.k)
    with progress.task("Writing entries", len(pairs.vote)) as task:
        rows, scores = chosen_forms(translator, direction, pairs, query_side, key_side)
        answers = translator.whole_space.sides(direction)[1]
        senses = sense_numbers(pairs.query_side, key_side.heads[pairs.key_side], answers)
        ends = query_side.heads[pairs.query_side], rows
        source, target = ends if direction == "forward" else ends[::-1]
        found = _Found(source, target, scores, pairs.confidence, pairs.known)
        made = _lexicon(translator.whole_space, found, options, senses)
        task.advance(len(pairs.vote))
    return made


def _votes(
    translator: Translator,
    options: LexiconOptions,
    direction: Direction,
    query_side: Lemmas,
    key_side: Lemmas,
    progress: Progress,
) -> Votes:
    """The answers of lemmas that have a form among the words to translate."""
    queries = _queries(translator, options, direction)
    found = _answers(translator, options, queries, VOTING_ANSWERS, direction, progress)
    if options.keep is not None:
        kept = _may_answer(translator, options.keep, direction)[found.rows] | found.known
        found.rows[~kept] = -1
        some = (found.rows >= 0).any(axis=1)
        queries = queries[some]
        found = type(found)(*(np.asarray(part)[some] for part in vars(found).values()))
    return votes_of(queries, found, query_side, key_side)
