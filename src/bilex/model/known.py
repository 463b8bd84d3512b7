"""The best answers of many queries: known translations first, rejected ones never."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.fit.calibration import Calibration, Numbers
from bilex.model.space import Direction, Floats, Retrieval, Rows, Space

if TYPE_CHECKING:
    from bilex.model.translator import Translator


Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Proposals:
    """The best answers of some queries, one query per row.

    `scores` fall along a row among known and among other answers; `rows` are of the key vocabulary, −1 where
    a query has no further answer; the confidence is NaN for known answers and where none was learned.
    """

    scores: Floats
    rows: Rows
    confidence: Numbers
    known: Truths

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


Proposer = Callable[[Any, int], Proposals]


def search_proposer(
    space: Space, calibration: Calibration, direction: Direction, retrieval: Retrieval
) -> Proposer:
    """A function of queries (rows, or vectors in the space) and k: the best answers of a space.

    Confidences hold for words of the vocabulary; vectors have none.
    """
    search = space.searcher(direction=direction, retrieval=retrieval)

    def propose(queries: Rows | Floats, k: int) -> Proposals:
        if k < 1:
            raise BilexError(f"k is {k}; at least 1 translation is needed.")
        scores, rows = search(queries, max(k, 2))
        confidence = None
        if queries.ndim == 1:
            confidence = calibration.confidence(scores, rows, direction, retrieval)
        if confidence is None:
            confidence = np.full(scores.shape, np.nan)
        return Proposals(scores[:, :k], rows[:, :k], confidence[:, :k], np.zeros(rows[:, :k].shape, bool))

    return propose


def by_query(pairs: Rows) -> dict[int, list[int]]:
    """The answers of each query of some pairs of rows, each once."""
    found: dict[int, list[int]] = {}
    for query, answer in dict.fromkeys(map(tuple, pairs.tolist())):
        found.setdefault(query, []).append(answer)
    return found


class KnownFirst:
    """Proposes answers to rows of a vocabulary: known ones by falling score, then the model's, none rejected.

    Words are answered by words; composed phrases, whose rows come after those of the words, by phrases too.
    Confidences are those of the model's own ranking; leaving rejected words out changes none.
    """

    def __init__(
        self, translator: Translator, direction: Direction, retrieval: Retrieval, *, model_only: bool
    ) -> None:
        words, space = translator.space, translator.whole_space
        options = translator.calibration, direction, retrieval
        self._space, self._direction, self._retrieval = space, direction, retrieval
        self._by_words = search_proposer(words, *options)
        self._by_all = self._by_words if words is space else search_proposer(space, *options)
        self._words, self._keys = len(words.sides(direction)[0]), len(space.sides(direction)[1])
        self._right, self._wrong = ({}, {}) if model_only else translator.known_pairs[direction]

    def __call__(self, queries: Rows, k: int) -> Proposals:
        """The k best answers of each query."""
        right, wrong = self._right, self._wrong
        touched = np.array([row in right or row in wrong for row in queries.tolist()], bool)
        if not touched.any():
            return self._own(queries, k)
        whole = Proposals.blank(len(queries), min(k, self._keys))
        if not touched.all():
            whole.put(~touched, self._own(queries[~touched], k))
        whole.put(touched, self._known_first(queries[touched], k))
        return whole

    def _own(self, queries: Rows, k: int) -> Proposals:
        """The model's answers, as if no word were known."""
        phrases = queries >= self._words
        if not phrases.any():
            return self._by_words(queries, k)
        found = Proposals.blank(len(queries), min(k, self._keys))
        for places, search in ((phrases, self._by_all), (~phrases, self._by_words)):
            if places.any():
                found.put(places, search(queries[places], k))
        return found

    def _known_first(self, queries: Rows, k: int) -> Proposals:
        """The answers of queries that have known or rejected ones."""
        known = _padded([self._right.get(row, []) for row in queries.tolist()])
        wrong = _padded([self._wrong.get(row, []) for row in queries.tolist()])
        decided = np.concatenate([known, wrong], axis=1)
        found = self._own(queries, k + int((decided >= 0).sum(axis=1).max()))
        there, counts = known >= 0, (known >= 0).sum(axis=1)
        scores = np.full(known.shape, -np.inf, np.float32)
        scores[there] = self._space.scores(
            np.repeat(queries, counts), known[there], direction=self._direction, retrieval=self._retrieval
        )
        order = np.argsort(-scores, axis=1, kind="stable")
        repeated = [np.isin(*both) for both in zip(found.rows, decided, strict=True)]
        rows = np.concatenate(
            [np.take_along_axis(known, order, axis=1), np.where(repeated, -1, found.rows)], axis=1
        )
        parts = (
            np.concatenate([np.take_along_axis(scores, order, axis=1), found.scores], axis=1),
            rows,
            np.pad(found.confidence, ((0, 0), (known.shape[1], 0)), constant_values=np.nan),
            np.arange(rows.shape[1]) < counts[:, None],
        )
        first = np.argsort(rows < 0, axis=1, kind="stable")  # places without an answer go to the end
        kept = Proposals(*(np.take_along_axis(part, first, axis=1) for part in parts))
        kept.scores[kept.rows < 0] = kept.confidence[kept.rows < 0] = np.nan
        return kept


def _padded(rows: Sequence[Sequence[int]]) -> Rows:
    """Lists of rows as a matrix, padded with −1."""
    most = max(map(len, rows))
    return np.array([[*row, *[-1] * (most - len(row))] for row in rows], np.int64).reshape(len(rows), most)


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
    pairs = translator.seeds.index(space.source.key_to_index, space.target.key_to_index)
    pairs = np.unique(pairs, axis=0)
    if not len(pairs):
        return []
    scores = space.scores(pairs[:, 0], pairs[:, 1])
    forward = space.search(pairs[:, 0], 1, direction="forward")[1][:, 0]
    backward = space.search(pairs[:, 1], 1, direction="backward")[1][:, 0]
    disputed = np.flatnonzero((forward != pairs[:, 1]) & (backward != pairs[:, 0]))
    order = disputed[np.argsort(scores[disputed], kind="stable")][:count]
    words, answers = space.source.index_to_key, space.target.index_to_key
    return [
        DoubtfulSeed(words[a], answers[b], float(scores[row]), answers[forward[row]], words[backward[row]])
        for row, (a, b) in zip(order.tolist(), pairs[order].tolist(), strict=True)
    ]
