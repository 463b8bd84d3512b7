"""A dictionary with one entry a lemma: its forms' votes joined, its translations by sense."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bilex.core.progress import Progress
from bilex.lexicon import Entry
from bilex.lexicon.lemmas import Lemmatiser
from bilex.model.known import Proposals
from bilex.model.senses import sense_numbers
from bilex.model.space import Direction, Floats, Rows
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.model.translator import Translator

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

        A word that another word has for its lemma is its own: "left" has an entry beside "leave", since
        "lefts" needs one.

        Args:
            words: The vocabulary.
            lemma: Gives a word its lemma.
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

    Each form has one vote, which it divides among its answers by exp(score / 0.05). The headword's vote
    counts fully, that of every other form 0.3. Known translations come before all others.

    Args:
        queries: The rows of the forms.
        found: The answers of each.
        query_side: Lemmas of the forms.
        key_side: Lemmas of the answers.
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

    Args:
        translator: Whose space it is.
        direction: Whose lemmas ask.
        pairs: Pairs of lemmas.
        query_side: Lemmas of the query language.
        key_side: Lemmas of the key language.
    """
    rows, best = np.empty(len(pairs.query_side), np.int64), np.empty(len(pairs.query_side), np.float32)
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        block = slice(start, start + _PAIRS_AT_ONCE)
        forms = [key_side.forms(lemma) for lemma in pairs.key_side[block].tolist()]
        counts = np.array([len(found) for found in forms])
        heads = np.repeat(query_side.heads[pairs.query_side[block]], counts)
        every = np.concatenate(forms)
        scores = translator.space.scores(heads, every, direction=direction)
        begins = np.cumsum(counts) - counts
        top = np.maximum.reduceat(scores, begins)
        both = query_side.cited[pairs.query_side[block]] & key_side.cited[pairs.key_side[block]]
        lemma = np.repeat(np.where(both, key_side.heads[pairs.key_side[block]], -1), counts)
        top[both] = scores[(every == lemma) & (lemma >= 0)]
        is_top = np.where(lemma >= 0, every == lemma, scores == np.repeat(top, counts))
        first = np.minimum.reduceat(np.where(is_top, np.arange(len(scores)), len(scores)), begins)
        rows[block], best[block] = every[first], top
    return rows, best


def lemma_entries(
    translator: Translator,
    direction: Direction,
    pairs: Votes,
    query_side: Lemmas,
    key_side: Lemmas,
    progress: Progress,
) -> Iterator[Entry]:
    """One entry for each pair of lemmas, in order of the frequency of the query lemma, senses numbered.

    The arguments are those of `chosen_forms`; `progress` shows how far the work is.
    """
    query_words, answer_words = translator.space.sides(direction)
    rows, scores = chosen_forms(translator, direction, pairs, query_side, key_side)
    senses = sense_numbers(pairs.query_side, np.asarray(key_side.heads[pairs.key_side]), answer_words)
    with progress.task("Writing entries", len(rows)) as task:
        for place, (lemma, row) in enumerate(zip(pairs.query_side.tolist(), rows.tolist(), strict=True)):
            head = int(query_side.heads[lemma])
            ends = (query_words.index_to_key[head], head + 1), (answer_words.index_to_key[row], row + 1)
            (source, source_rank), (target, target_rank) = ends if direction == "forward" else ends[::-1]
            sure = float(pairs.confidence[place])
            yield Entry(
                source=source,
                target=target,
                score=float(scores[place]),
                confidence=None if np.isnan(sure) or pairs.known[place] else sure,
                source_rank=source_rank,
                target_rank=target_rank,
                known=bool(pairs.known[place]),
                sense=int(senses[place]) or None,
            )
        task.advance(len(rows))


def mutual_pairs(pairs: Votes, back: Votes) -> Votes:
    """The pairs whose key lemma has the query lemma as its first answer."""
    first = dict(zip(back.query_side.tolist(), back.key_side.tolist(), strict=True))
    chosen = np.array(
        [first.get(b) == a for a, b in zip(pairs.query_side.tolist(), pairs.key_side.tolist(), strict=True)],
        bool,
    )
    return Votes(*(part[chosen] for part in vars(pairs).values()))
