"""Known translations first, rejected ones never; and seeds that the model finds unlikely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        """Take over the answers of the queries at some places."""
        width = min(self.rows.shape[1], found.rows.shape[1])
        for name, part in vars(self).items():
            part[places, :width] = getattr(found, name)[:, :width]


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
            whole = Proposals.blank(len(queries), min(k, len(space.sides(direction)[1])))
            if not touched.all():
                whole.put(~touched, own(queries[~touched], k))
            asked = queries[touched]
            known = _filled([right.get(row, []) for row in asked.tolist()])
            decided = np.concatenate([known, _filled([wrong.get(row, []) for row in asked.tolist()])], axis=1)
            found = own(asked, k + int((decided >= 0).sum(axis=1).max()))
            there, counts = known >= 0, (known >= 0).sum(axis=1)
            scores = np.full(known.shape, -np.inf, np.float32)
            scores[there] = space.scores(
                np.repeat(asked, counts), known[there], direction=direction, retrieval=retrieval
            )
            order = np.argsort(-scores, axis=1, kind="stable")
            taken = [np.isin(*both) for both in zip(found.rows, decided, strict=True)]
            rows = np.concatenate(
                [np.take_along_axis(known, order, axis=1), np.where(taken, -1, found.rows)], axis=1
            )
            parts = (
                np.concatenate([np.take_along_axis(scores, order, axis=1), found.scores], axis=1),
                rows,
                np.pad(found.confidence, ((0, 0), (known.shape[1], 0)), constant_values=np.nan),
                np.arange(rows.shape[1]) < counts[:, None],
            )
            first = np.argsort(rows < 0, axis=1, kind="stable")  # places without an answer go to the end
            kept = [np.take_along_axis(part, first, axis=1) for part in parts]
            for numbers in (kept[0], kept[2]):
                numbers[kept[1] < 0] = np.nan
            whole.put(touched, Proposals(*kept))
            return whole

        return propose


def _filled(rows: Sequence[Sequence[int]]) -> Rows:
    """Lists of rows as a matrix, the shorter ones filled with −1."""
    most = max(map(len, rows))
    return np.array([[*row, *[-1] * (most - len(row))] for row in rows], np.int64).reshape(len(rows), most)


def own_proposer(
    words: Space,
    whole: Space,
    calibration: Calibration,
    direction: Direction,
    retrieval: Retrieval,
) -> Proposer:
    """A function of queries (rows, or vectors in the space) and k: the best answers by the model alone.

    Words are answered by words; composed phrases, whose rows are behind those of the words in `whole`, and
    vectors by phrases too. Confidences hold for words of the vocabulary.
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
        return Proposals(scores[:, :k], rows[:, :k], confidence[:, :k], np.zeros(rows[:, :k].shape, bool))

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
        DoubtfulSeed(words[a], answers[b], float(scores[row]), answers[forward[row]], words[backward[row]])
        for row, (a, b) in zip(order.tolist(), pairs[order].tolist(), strict=True)
    ]
