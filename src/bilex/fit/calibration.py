"""Confidences: the probability that a proposed translation is right, learned on held-out seed pairs.

A confidence is a logistic function of three features of candidate j of a query with falling scores s: its
score s_j, its lead s_1 - s_2 if it is the first, and its lag s_j - s_1. Slopes are never negative, so that
confidences fall with the scores. Held-out seeds are few, and more frequent than the words that people look
up. For C1 with preset "auto", the function is therefore drawn towards one that was fitted to dictionaries of
other vectors (`PRIORS`). Its level rises with the accuracy on the rarer held-out words, and with the
vocabulary that is asked: the more words lie around an answer, the lower is its CSLS, right or wrong. It
falls where the first answer lies beyond frequency rank 48,000: at the same score it is right less often.
research/calibration.md describes how all this was chosen, and the remaining error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.lexicon import Lexicon
from bilex.model.space import CSLS_NEIGHBOURS, Direction, Floats, Retrieval, Rows, Space
from bilex.search import mean_of_best, top_k

Numbers = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

CANDIDATES = 5
FEWEST_WORDS = 40
DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
RETRIEVALS: tuple[Retrieval, Retrieval] = ("csls", "nn")
_FOLDS = 5
_BINS = 10
_POOL = 100
_RANK_OFFSET = 100
# Besides the held-out words, this number of the most frequent words is translated; the last number is the
# candidates that are re-ranked for each.
_FREQUENT, _FREQUENT_SAMPLE, _FREQUENT_POOL = 10_000, 200, 20
# Between these the size of the vocabulary moves the prior: smaller and larger ones made no clear difference.
# Answers of a rank beyond the second are right less often.
_SMALL, _LARGE = 20_000, 48_000
# How much a later candidate counts beside the first: the first one's confidence is what people read.
_LATER = 0.05
# The L2 penalties on the level and the slopes of a function, from zero, or from the prior where there is one.
_FROM_ZERO, _FROM_PRIOR = (0.0, 1.0, 1.0, 1.0), (80.0, 40.0, 40.0, 40.0)


@dataclass(frozen=True)
class Logistic:
    """Confidence = 1 / (1 + exp(-(bias + slopes · (score, lead, lag, log rank) + rare · r))).

    Rank and r are of the first answer: r is the logarithm of how far its rank lies beyond 48,000 words. The
    slope of the rank is zero; models of earlier versions may have another.
    """

    bias: float
    slopes: tuple[float, float, float, float]
    rare: float = 0.0

    def __call__(self, scores: npt.ArrayLike, first: npt.ArrayLike) -> Numbers:
        """The confidence of every candidate, in the shape of `scores`.

        Args:
            scores: Falling scores, one query per row.
            first: The rank of each query's first answer, from 0.
        """
        log_odds = self.bias + features(scores, first) @ np.array(self.slopes)
        return _logistic(log_odds + self.rare * rarity(first)[:, None])

    @classmethod
    def fit(cls, answers: Answers, prior: Prior | None = None) -> Logistic:
        """The function of most likelihood for some words, less a penalty on its distance from the prior."""
        from scipy.optimize import minimize

        words, candidates = answers.right.shape
        x = features(answers.scores, answers.first)[..., :3].reshape(-1, 3)
        y = answers.right.reshape(-1).astype(np.float64)
        counts = np.tile([1.0] + [_LATER] * (candidates - 1), words)
        mean, spread = np.average(x, axis=0, weights=counts), x.std(axis=0)
        spread[spread < 1e-12] = 1
        x = (x - mean) / spread
        centre, penalty, rare = np.zeros(4), np.array(_FROM_ZERO), 0.0
        if prior is not None:
            others = prior.of_model(answers)
            rare = others.rare
            slopes = np.array(others.slopes[:3])
            centre = np.concatenate([[others.bias + slopes @ mean], slopes * spread])
            penalty = np.array(_FROM_PRIOR)
        given = rare * np.repeat(rarity(answers.first), candidates)

        def loss(w: Numbers) -> tuple[float, Numbers]:
            z, away = w[0] + x @ w[1:] + given, w - centre
            value = (counts * (np.logaddexp(0, z) - y * z)).sum() + 0.5 * penalty @ away**2
            error = counts * (_logistic(z) - y)
            return float(value), np.concatenate([[error.sum()], x.T @ error]) + penalty * away

        bounds = [(-30, 30), (0, None), (0, None), (0, None)]
        found = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds).x
        slopes = found[1:] / spread
        score, lead, lag = slopes.tolist()
        return cls(float(found[0] - slopes @ mean), (score, lead, lag, 0.0), rare)


@dataclass(frozen=True)
class Prior:
    """A function of many models of C1, whose bias depends on held-out accuracy and vocabulary of a model."""

    function: Logistic
    per_accuracy: float
    per_words: float

    def of_model(self, answers: Answers) -> Logistic:
        """The function for a model with these answers to held-out words."""
        moved = self.per_accuracy * log_odds_of_rarer(answers) + self.per_words * log_words(answers)
        return replace(self.function, bias=self.function.bias + moved)


def log_odds_of_rarer(answers: Answers) -> float:
    """The log-odds that a first answer is right, among the two thirds of the words with the rarest ones."""
    rarer = answers.right[answers.first >= np.quantile(answers.first, 1 / 3), 0]
    return math.log((rarer.sum() + 1) / (len(rarer) - rarer.sum() + 1))


def log_words(answers: Answers) -> float:
    """How much larger than small the vocabulary is that was asked, as a logarithm."""
    return math.log(min(max(answers.vocabulary, _SMALL), _LARGE) / _SMALL)


PRIORS: dict[Retrieval, Prior] = {
    "csls": Prior(Logistic(-1.91, (7.34, 2.30, 4.17, 0.0), -1.5), 0.502, 0.595),
    "nn": Prior(Logistic(-5.35, (7.01, 13.1, 8.74, 0.0), -1.0), 0.385, 0.379),
}


def rarity(first: npt.ArrayLike) -> Numbers:
    """The logarithm of how far each rank, from 0, lies beyond 48,000 words; 0 for the others."""
    beyond: Numbers = np.log(np.maximum(1.0, (np.asarray(first, np.float64) + 1) / _LARGE))
    return beyond


def features(scores: npt.ArrayLike, first: npt.ArrayLike) -> Numbers:
    """Score, lead, lag and log rank of the first answer, by candidate: shape (queries, candidates, 4)."""
    table = np.asarray(scores, np.float64)
    lead = np.zeros_like(table)
    if table.shape[1] > 1:
        lead[:, 0] = table[:, 0] - table[:, 1]
    rank = np.log(_RANK_OFFSET + np.asarray(first, np.float64))
    return np.stack([table, lead, table - table[:, :1], np.repeat(rank[:, None], table.shape[1], 1)], axis=2)


def _logistic(z: Numbers) -> Numbers:
    """1 / (1 + exp(-z)), without overflow."""
    value: Numbers = np.exp(-np.logaddexp(0, -z))
    return value


def expected_calibration_error(confidence: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """The mean gap between confidence and accuracy over ten equally filled bins."""
    stated, truth = np.asarray(confidence, np.float64), np.asarray(right, np.float64)
    order = np.argsort(stated, kind="stable")
    bins = np.array_split(order, min(_BINS, max(1, len(order))))
    gaps = [len(rows) * abs(stated[rows].mean() - truth[rows].mean()) for rows in bins if len(rows)]
    return float(sum(gaps) / max(1, len(order)))


def error_by_chance(confidence: npt.ArrayLike, seed: int = 0, draws: int = 200) -> float:
    """The calibration error that exactly true confidences show on so few words, on average."""
    stated = np.asarray(confidence, np.float64)
    truths = np.random.default_rng(seed).random((draws, len(stated))) < stated
    return float(np.mean([expected_calibration_error(stated, truth) for truth in truths]))


@dataclass(frozen=True)
class Calibrated:
    """The confidence of one direction and retrieval, and its error.

    Attributes:
        model: From scores to confidence.
        words: The number of held-out words that it was learned on.
        accuracy: P@1 on those words.
        error: Expected calibration error of the first answers, by cross-validation over the words.
        error_by_chance: The mean of that error if the confidences were exactly right.
        brier: Mean squared difference between confidence and truth, by cross-validation.
        frequent: Mean confidence of the first answers to frequent words that are no seeds; NaN if not
            measured.
    """

    model: Logistic
    words: int
    accuracy: float
    error: float
    error_by_chance: float
    brier: float
    frequent: float = math.nan


@dataclass(frozen=True)
class Calibration:
    """Confidences for both directions and both kinds of retrieval, or a note why there are none."""

    parts: dict[tuple[Direction, Retrieval], Calibrated] = field(default_factory=dict)
    note: str = "not calibrated"

    def confidence(
        self, scores: Floats, rows: Rows, direction: Direction, retrieval: Retrieval
    ) -> Numbers | None:
        """The confidence of each candidate, or None where none was learned.

        `scores` fall, one query per row, in at least two columns, for the lead of the first; `rows` are the
        candidates as rows of their vocabulary.
        """
        part = self.parts.get((direction, retrieval))
        return None if part is None else part.model(scores, rows[:, 0])

    def swapped(self) -> Calibration:
        """The same confidences with source and target language exchanged."""
        other = dict(zip(DIRECTIONS, DIRECTIONS[::-1], strict=True))
        parts = {(other[direction], retrieval): part for (direction, retrieval), part in self.parts.items()}
        return Calibration(parts, self.note)

    def as_dict(self) -> dict[str, Any]:
        """The calibration for JSON."""
        found: dict[str, Any] = {"note": self.note}
        for (direction, retrieval), part in self.parts.items():
            found[f"{direction} {retrieval}"] = stored = asdict(part)
            if math.isnan(part.frequent):
                del stored["frequent"]
        return found

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Calibration:
        """What `as_dict` gave, now or in an earlier version.

        Raises:
            ValueError, TypeError, KeyError, AttributeError: It was changed.
        """
        parts: dict[tuple[Direction, Retrieval], Calibrated] = {}
        for direction, retrieval in itertools.product(DIRECTIONS, RETRIEVALS):
            part = stored.get(f"{direction} {retrieval}")
            if part is not None:
                bias, *slopes = map(_finite, (part["model"]["bias"], *part["model"]["slopes"]))
                if len(slopes) not in (3, 4):
                    raise ValueError(f"a calibration with {len(slopes)} slopes")
                score, lead, lag, rank = (*slopes, 0.0)[:4]
                model = Logistic(bias, (score, lead, lag, rank), _finite(part["model"].get("rare", 0.0)))
                numbers = {name: _finite(value) for name, value in part.items() if name != "model"}
                numbers["words"] = int(numbers["words"])
                parts[direction, retrieval] = Calibrated(model=model, **numbers)  # type: ignore[arg-type]
        return cls(parts, str(stored["note"]))


def _finite(value: object) -> float:
    """A number of a calibration; TypeError if it is something else, or not finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError(f"a calibration with {value!r} in it")
    return float(value)


@dataclass(frozen=True, eq=False)
class Answers:
    """The best candidates of held-out words in one direction and retrieval, and of frequent words.

    `scores` and `right` (whether a candidate is a translation) have one row per word, `first` the row of the
    first candidate; `frequent_scores` and `frequent_first` are the same of frequent words that are no seeds.
    `vocabulary` is the number of words of the language that was asked.
    """

    scores: Floats
    first: Rows
    right: Truths
    frequent_scores: Floats
    frequent_first: Rows
    vocabulary: int


AnswerRecords = dict[tuple[Direction, Retrieval], Answers]


def answer_records(
    space: Space, held_out: Lexicon, seeds: Lexicon | None = None, *, frequent: bool = True
) -> AnswerRecords:
    """Translate the words of pairs that a space was not learned from.

    With all `seeds`, a translation that only these list is right too: a held-out target word may have more
    source words than those that were drawn. A sample of `frequent` words that are no seeds is translated too.
    """
    records: AnswerRecords = {}
    listed = Lexicon([*held_out.pairs, *(() if seeds is None else seeds.pairs)])
    for direction in DIRECTIONS:
        query_side, key_side = space.sides(direction)
        drawn, known = (
            (pairs if direction == "forward" else pairs.swapped())
            .covered(query_side.key_to_index, key_side.key_to_index)
            .translations()
            for pairs in (held_out, listed)
        )
        if not drawn:
            continue
        translations = [key_side.rows(known[word]) for word in drawn]
        sample = np.zeros(0, np.int64)
        if seeds is not None and frequent:
            sample = frequent_rows(query_side.index_to_key, known)
        found = _retrieve(space, query_side.rows(drawn), direction)
        others = _retrieve(space, sample, direction, _FREQUENT_POOL) if len(sample) else {}
        for retrieval, (scores, rows) in found.items():
            right = np.stack([np.isin(row, right) for row, right in zip(rows, translations, strict=True)])
            more = others.get(retrieval, (scores[:0], rows[:0]))
            numbers = (scores, rows[:, 0], right, more[0], more[1][:, 0])
            records[direction, retrieval] = Answers(*numbers, vocabulary=len(query_side))
    return records


def frequent_rows(words: list[str], known: Collection[str]) -> Rows:
    """A sample of the most frequent words, without the known ones, evenly over their ranks."""
    rows = [row for row, word in enumerate(words[:_FREQUENT]) if word not in known]
    step = -(-len(rows) // _FREQUENT_SAMPLE) or 1
    return np.array(rows[::step], np.int64)


def learn_confidences(records: AnswerRecords, seed: int = 0, *, of_auto: bool = False) -> Calibration:
    """Confidences from the answers to held-out words; none, and a note, with fewer than 40 words.

    `seed` is for the folds of the cross-validation. `of_auto` says that a model is one of C1 with preset
    "auto", without a language model: `PRIORS` were fitted to such, and the scores of others are different.
    """
    for direction in DIRECTIONS:
        key: tuple[Direction, Retrieval] = (direction, "csls")
        words = len(records[key].scores) if key in records else 0
        if words < FEWEST_WORDS:
            needed = f"have a known translation, and at least {FEWEST_WORDS} are needed"
            return Calibration(note=f"not calibrated: {words} held-out words {needed}")
    parts = {key: _learn(found, PRIORS[key[1]] if of_auto else None, seed) for key, found in records.items()}
    return Calibration(parts, f"calibrated on {parts['forward', 'csls'].words} held-out source words")


def calibrate(space: Space, held_out: Lexicon, seed: int = 0, seeds: Lexicon | None = None) -> Calibration:
    """Learn confidences from pairs that the space was not learned from."""
    return learn_confidences(answer_records(space, held_out, seeds), seed)


def _retrieve(
    space: Space, queries: Rows, direction: Direction, pool: int = _POOL
) -> dict[Retrieval, tuple[Floats, Rows]]:
    """The best candidates of some words by CSLS and by plain similarity.

    The most similar words of each query are re-ranked by CSLS, which needs r of these candidates only: on a
    full vocabulary a tenth of the work of computing r of every word.
    """
    query_side, key_side = space.sides(direction)
    vectors = np.asarray(query_side.vectors[queries])
    similar, rows = top_k(vectors, key_side.vectors, max(pool, CSLS_NEIGHBOURS), device=space.device)
    distinct, place = np.unique(rows, return_inverse=True)
    r_distinct = mean_of_best(
        np.asarray(key_side.vectors[distinct]), query_side.vectors, CSLS_NEIGHBOURS, device=space.device
    )
    r_query = similar[:, :CSLS_NEIGHBOURS].mean(axis=1, keepdims=True)
    csls = 2 * similar - r_query - r_distinct[place.reshape(rows.shape)]
    best = np.argsort(-csls, axis=1, kind="stable")[:, :CANDIDATES]
    return {
        "csls": (np.take_along_axis(csls, best, 1), np.take_along_axis(rows, best, 1)),
        "nn": (similar[:, :CANDIDATES], rows[:, :CANDIDATES]),
    }


def _learn(answers: Answers, prior: Prior | None, seed: int) -> Calibrated:
    """Fit the function to all words; estimate its error by cross-validation."""
    words = len(answers.scores)
    folds = np.random.default_rng(seed).permutation(words) % _FOLDS
    stated = np.empty(words)
    for fold in range(_FOLDS):
        inside, outside = folds != fold, folds == fold
        kept = replace(
            answers, scores=answers.scores[inside], first=answers.first[inside], right=answers.right[inside]
        )
        stated[outside] = Logistic.fit(kept, prior)(answers.scores[outside], answers.first[outside])[:, 0]
    model, right = Logistic.fit(answers, prior), answers.right[:, 0]
    frequent = model(answers.frequent_scores, answers.frequent_first)[:, 0]
    return Calibrated(
        model=model,
        words=words,
        accuracy=float(right.mean()),
        error=expected_calibration_error(stated, right),
        error_by_chance=error_by_chance(stated, seed),
        brier=float(np.mean((stated - right) ** 2)),
        frequent=float(frequent.mean()) if len(frequent) else math.nan,
    )
