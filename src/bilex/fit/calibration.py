"""Confidences: the probability that a proposed translation is right, learned on held-out seed pairs.

A confidence is a logistic function of three features of candidate j of a query with falling scores s: its
score s_j, its lead s_1 - s_2 if it is the first, and its lag s_j - s_1. Slopes are never negative, so that
confidences fall with the scores. Held-out seeds are few, and more frequent than the words that people look
up. For C1 with preset "auto", the function is therefore drawn towards one that was fitted to dictionaries of
other vectors (`PRIORS`). Its level rises with the accuracy on the rarer held-out words, and follows three
features of the two words: how densely other words lie around them, how rare the query is, and whether the
first answer lies beyond frequency rank 48,000. At the same score, answers in dense places and to rarer
queries are right more often, and very rare answers less often. research/calibration.md describes how all
this was chosen, and the remaining error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

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
# Besides the held-out words, this number of the most frequent words is translated; the last number is the
# candidates that are re-ranked for each.
_FREQUENT, _FREQUENT_SAMPLE, _FREQUENT_POOL = 10_000, 200, 20
# Answers beyond this frequency rank are right less often at the same score. Queries are right more often the
# rarer they are, up to a rank; its logarithm is taken from an offset on.
_RARE_ANSWER, _RARE_QUERY, _RANK_OFFSET = 48_000, 20_000, 3_000
# How much a later candidate counts beside the first: the first one's confidence is what people read.
_LATER = 0.05
# The L2 penalties on the level and the slopes of a function, from zero, or from the prior where there is one.
_FROM_ZERO, _FROM_PRIOR = (0.0, 1.0, 1.0, 1.0), (160.0, 40.0, 40.0, 40.0)


class Candidates(NamedTuple):
    """The best candidates of some queries, best first, and all that their confidences depend on.

    Attributes:
        scores: Their scores, one query per row, in at least two columns for the lead of the first.
        rows: Their rows in the vocabulary, in the shape of `scores`.
        query: The row of each query.
        density: The sum of the CSLS terms of each query and its first candidate.
    """

    scores: Floats
    rows: Rows
    query: Rows
    density: Floats

    def only(self, chosen: Truths) -> Candidates:
        """Those of some queries."""
        return Candidates(self.scores[chosen], self.rows[chosen], self.query[chosen], self.density[chosen])


@dataclass(frozen=True)
class Logistic:
    """Confidence = 1 / (1 + exp(-(bias + slopes · (score, lead, lag) + of_words · (density, rank, rarity)))).

    `features` and `word_features` compute the numbers. Only the functions of `PRIORS` have slopes `of_words`,
    and what was drawn towards them.
    """

    bias: float
    slopes: tuple[float, float, float]
    of_words: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __call__(self, found: Candidates) -> Numbers:
        """The confidence of every candidate, one query per row."""
        log_odds = self.bias + features(found.scores) @ np.array(self.slopes)
        return _logistic(log_odds + (word_features(found) @ np.array(self.of_words))[:, None])

    def rescaled(self, shift: float, slope: float) -> Logistic:
        """The function whose log-odds are shift + slope · log-odds of this one."""
        (a, b, c), (d, e, f) = self.slopes, self.of_words
        slopes, of_words = (slope * a, slope * b, slope * c), (slope * d, slope * e, slope * f)
        return Logistic(shift + slope * self.bias, slopes, of_words)

    @classmethod
    def fit(cls, answers: Answers, prior: Prior | None = None) -> Logistic:
        """The function of most likelihood for some words, less a penalty on its distance from the prior."""
        from scipy.optimize import minimize

        words, candidates = answers.right.shape
        x = features(answers.found.scores).reshape(-1, 3)
        y = answers.right.reshape(-1).astype(np.float64)
        counts = np.tile([1.0] + [_LATER] * (candidates - 1), words)
        mean, spread = np.average(x, axis=0, weights=counts), x.std(axis=0)
        spread[spread < 1e-12] = 1
        x = (x - mean) / spread
        centre, penalty, of_words = np.zeros(4), np.array(_FROM_ZERO), cls.of_words
        if prior is not None:
            others = prior.of_model(answers)
            of_words, slopes = others.of_words, np.array(others.slopes)
            centre = np.concatenate([[others.bias + slopes @ mean], slopes * spread])
            penalty = np.array(_FROM_PRIOR)
        given = np.repeat(word_features(answers.found) @ np.array(of_words), candidates)

        def loss(w: Numbers) -> tuple[float, Numbers]:
            z, away = w[0] + x @ w[1:] + given, w - centre
            value = (counts * (np.logaddexp(0, z) - y * z)).sum() + 0.5 * penalty @ away**2
            error = counts * (_logistic(z) - y)
            return float(value), np.concatenate([[error.sum()], x.T @ error]) + penalty * away

        bounds = [(-30, 30), (0, None), (0, None), (0, None)]
        found = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds).x
        slopes = found[1:] / spread
        score, lead, lag = slopes.tolist()
        return cls(float(found[0] - slopes @ mean), (score, lead, lag), of_words)


@dataclass(frozen=True)
class Prior:
    """A function of many models of C1, whose bias depends on the held-out accuracy of a model."""

    function: Logistic
    per_accuracy: float

    def of_model(self, answers: Answers) -> Logistic:
        """The function for a model with these answers to held-out words."""
        moved = self.per_accuracy * log_odds_of_rarer(answers)
        return replace(self.function, bias=self.function.bias + moved)


def log_odds_of_rarer(answers: Answers) -> float:
    """The log-odds that a first answer is right, among the two thirds of the words with the rarest ones."""
    first = answers.found.rows[:, 0]
    rarer = answers.right[first >= np.quantile(first, 1 / 3), 0]
    return math.log((rarer.sum() + 1) / (len(rarer) - rarer.sum() + 1))


PRIORS: dict[Retrieval, Prior] = {
    "csls": Prior(Logistic(-7.73, (5.79, 3.98, 4.61), (2.07, 0.431, -1.5)), 0.525),
    "nn": Prior(Logistic(-6.89, (14.0, 5.25, 7.07), (-5.69, 0.402, -1.0)), 0.552),
}


def features(scores: npt.ArrayLike) -> Numbers:
    """Score, lead and lag by candidate: shape (queries, candidates, 3)."""
    table = np.asarray(scores, np.float64)
    lead = np.zeros_like(table)
    if table.shape[1] > 1:
        lead[:, 0] = table[:, 0] - table[:, 1]
    return np.stack([table, lead, table - table[:, :1]], axis=2)


def word_features(found: Candidates) -> Numbers:
    """Density, log rank of the query, and the logarithm of how far the first answer's lies beyond 48,000."""
    rank = np.log(_RANK_OFFSET + np.minimum(found.query, _RARE_QUERY))
    rarity = np.log(np.maximum(1.0, (found.rows[:, 0] + 1) / _RARE_ANSWER))
    return np.stack([found.density, rank, rarity], axis=1)


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
        note = str(stored["note"])
        for direction, retrieval in itertools.product(DIRECTIONS, RETRIEVALS):
            part = stored.get(f"{direction} {retrieval}")
            if part is not None:
                numbers = {name: _finite(value) for name, value in part.items() if name != "model"}
                numbers["words"] = int(numbers["words"])
                if (model := _stored_function(part["model"])) is None:
                    note = "not calibrated: a development version learned the confidences; align again"
                else:
                    parts[direction, retrieval] = Calibrated(model=model, **numbers)  # type: ignore[arg-type]
        return cls(parts, note)


def _stored_function(stored: dict[str, Any]) -> Logistic | None:
    """A function as a model has it; None for one with the rank of the answer, of a development version.

    Earlier ones stored a fourth slope, which is zero in others, and the slope of rare answers by itself.
    """
    slopes = stored["slopes"]
    if len(slopes) not in (3, 4):
        raise ValueError(f"a calibration with {len(slopes)} slopes")
    score, lead, lag, rank = map(_finite, (*slopes, 0.0)[:4])
    others = stored.get("of_words", (0.0, 0.0, stored.get("rare", 0.0)))
    density, of_query, rare = map(_finite, others)
    function = Logistic(_finite(stored["bias"]), (score, lead, lag), (density, of_query, rare))
    return None if rank else function


def _finite(value: object) -> float:
    """A number of a calibration; TypeError if it is something else, or not finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError(f"a calibration with {value!r} in it")
    return float(value)


@dataclass(frozen=True, eq=False)
class Answers:
    """The best candidates of held-out words in one direction and retrieval, and of frequent words.

    `right` says which candidates are translations, in the shape of their scores; the `frequent` words are
    no seeds.
    """

    found: Candidates
    right: Truths
    frequent: Candidates


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
        for retrieval, asked in found.items():
            right = np.stack([np.isin(*both) for both in zip(asked.rows, translations, strict=True)])
            none = asked.only(np.zeros(len(asked.rows), bool))
            records[direction, retrieval] = Answers(asked, right, others.get(retrieval, none))
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
        words = len(records[key].right) if key in records else 0
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
) -> dict[Retrieval, Candidates]:
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
    density = similar[:, :CSLS_NEIGHBOURS].mean(axis=1, keepdims=True) + r_distinct[place.reshape(rows.shape)]
    csls = 2 * similar - density
    best = np.argsort(-csls, axis=1, kind="stable")[:, :CANDIDATES]
    by_csls, answers, dense = (np.take_along_axis(part, best, 1) for part in (csls, rows, density))
    return {
        "csls": Candidates(by_csls, answers, queries, dense[:, 0]),
        "nn": Candidates(similar[:, :CANDIDATES], rows[:, :CANDIDATES], queries, density[:, 0]),
    }


def _learn(answers: Answers, prior: Prior | None, seed: int) -> Calibrated:
    """Fit the function to all words; estimate its error by cross-validation."""
    words = len(answers.right)
    folds = np.random.default_rng(seed).permutation(words) % _FOLDS
    stated = np.empty(words)
    for fold in range(_FOLDS):
        inside, outside = folds != fold, folds == fold
        kept = replace(answers, found=answers.found.only(inside), right=answers.right[inside])
        stated[outside] = Logistic.fit(kept, prior)(answers.found.only(outside))[:, 0]
    model, right = Logistic.fit(answers, prior), answers.right[:, 0]
    frequent = model(answers.frequent)[:, 0]
    return Calibrated(
        model=model,
        words=words,
        accuracy=float(right.mean()),
        error=expected_calibration_error(stated, right),
        error_by_chance=error_by_chance(stated, seed),
        brier=float(np.mean((stated - right) ** 2)),
        frequent=float(frequent.mean()) if len(frequent) else math.nan,
    )
