"""Known translations first, rejected ones never; and seeds that the model finds unlikely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.fit.calibration import Calibration, Numbers
from bilex.lexicon import Lexicon
from bilex.model.space import Direction, Floats, Retrieval, Rows, Searcher, Space

if TYPE_CHECKING:
    from bilex.model.translator import Translator


Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Proposals:
    """The best answers of some queries, one query per row.

    Attributes:
        scores: CSLS or similarity. They fall along a row among known and among other answers.
        rows: Rows of the key vocabulary; −1 where a query has no further answer.
        confidence: The model's confidence in what it found; NaN for known answers and where none was learned.
        known: Whether each answer is a known translation.
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
        """Take over the answers of the queries at some places."""
        width = min(self.rows.shape[1], found.rows.shape[1])
        for name, part in vars(self).items():
            part[places, :width] = getattr(found, name)[:, :width]

    def put_known_first(
        self, place: int, known: Rows, scores: Floats, found: Proposals, number: int, others: Truths
    ) -> None:
        """Give one query its known answers, then as many others of query `number` of `found` as fit."""
        width = self.rows.shape[1]
        first = min(len(known), width)
        self.rows[place, :first], self.scores[place, :first] = known[:first], scores[:first]
        self.known[place, :first] = True
        rest = np.flatnonzero(others)[: width - first]
        cut = slice(first, first + len(rest))
        self.rows[place, cut] = found.rows[number, rest]
        self.scores[place, cut] = found.scores[number, rest]
        self.confidence[place, cut] = found.confidence[number, rest]


Proposer = Callable[[Any, int], Proposals]


@dataclass(frozen=True)
class KnownPairs:
    """For each direction, the known and the rejected answers of each query, as rows."""

    right: dict[Direction, dict[int, list[int]]]
    wrong: dict[Direction, dict[int, list[int]]]

    @classmethod
    def of(cls, lexicon: Lexicon, space: Space) -> KnownPairs:
        """The pairs of a list that have both words in a space."""
        places = space.source.key_to_index, space.target.key_to_index
        right, wrong = lexicon.index(*places), lexicon.rejected_index(*places)
        return cls(
            {"forward": _by_query(right), "backward": _by_query(right[:, ::-1])},
            {"forward": _by_query(wrong), "backward": _by_query(wrong[:, ::-1])},
        )

    def first(self, own: Proposer, space: Space, direction: Direction, retrieval: Retrieval) -> Proposer:
        """Answers with known ones first, by falling score, and without rejected ones.

        Confidences are those of the model's own ranking (`own`); taking rejected words out changes none.
        """
        right, wrong = self.right[direction], self.wrong[direction]

        def propose(queries: Rows, k: int) -> Proposals:
            touched = np.array([row in right or row in wrong for row in queries.tolist()], bool)
            if not touched.any():
                return own(queries, k)
            asked = queries[touched].tolist()
            deeper = k + max(len(right.get(row, ())) + len(wrong.get(row, ())) for row in asked)
            found = own(queries[touched], deeper)
            width = min(k, len(space.sides(direction)[1]))
            whole = Proposals.blank(len(queries), width)
            if not touched.all():
                whole.put(~touched, own(queries[~touched], k))
            for number, (place, query) in enumerate(
                zip(np.flatnonzero(touched).tolist(), asked, strict=True)
            ):
                known = np.array(right.get(query, ()), np.int64)
                scores = space.scores(
                    np.full(len(known), query), known, direction=direction, retrieval=retrieval
                )
                order = np.argsort(-scores, kind="stable")
                others = ~np.isin(found.rows[number], [*right.get(query, ()), *wrong.get(query, ())])
                others &= found.rows[number] >= 0
                whole.put_known_first(place, known[order], scores[order], found, number, others)
            return whole

        return propose


def own_proposer(
    words: Space,
    whole: Space,
    calibration: Calibration,
    direction: Direction,
    retrieval: Retrieval,
) -> Proposer:
    """A function of queries (rows, or vectors in the space) and k: the best answers by the model alone.

    Words are answered by words; composed phrases, whose rows are behind those of the words, and vectors by
    phrases too. Confidences hold for words of the vocabulary.

    Args:
        words: The vocabularies.
        whole: The same with composed phrases behind them; the same object where there are none.
        calibration: From scores to confidences.
        direction: Which language queries.
        retrieval: How answers are ranked.
    """
    search = words.searcher(direction=direction, retrieval=retrieval)
    wider = None if whole is words else whole.searcher(direction=direction, retrieval=retrieval)
    count = len(words.sides(direction)[0])

    def propose(queries: Rows | Floats, k: int) -> Proposals:
        if k < 1:
            raise BilexError(f"{k} translations were asked for; ask for at least 1.")
        by_row = queries.ndim == 1
        if wider is None or (by_row and not (queries >= count).any()):
            return proposals(search, queries, k, known_word=by_row)
        if not by_row:
            return proposals(wider, queries, k, known_word=False)
        phrases = queries >= count
        found = Proposals.blank(len(queries), min(k, len(whole.sides(direction)[1])))
        for places, searched in ((phrases, wider), (~phrases, search)):
            if places.any():
                found.put(places, proposals(searched, queries[places], k, known_word=True))
        return found

    def proposals(searched: Searcher, queries: Rows | Floats, k: int, *, known_word: bool) -> Proposals:
        scores, rows = searched(queries, max(k, 2))
        confidence = calibration.confidence(scores, rows, direction, retrieval) if known_word else None
        if confidence is None:
            confidence = np.full(scores.shape, np.nan)
        known = np.zeros(rows.shape, bool)
        return Proposals(scores[:, :k], rows[:, :k], confidence[:, :k], known[:, :k])

    return propose


def _by_query(pairs: npt.NDArray[np.int64]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for query, answer in dict.fromkeys(map(tuple, pairs.tolist())):
        found.setdefault(query, []).append(answer)
    return found


@dataclass(frozen=True)
class DoubtfulSeed:
    """A seed pair, its CSLS score, and the answers that the model itself would give to its two words."""

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
        DoubtfulSeed(
            words[pairs[row, 0]],
            answers[pairs[row, 1]],
            float(scores[row]),
            answers[forward[row]],
            words[backward[row]],
        )
        for row in order
    ]
