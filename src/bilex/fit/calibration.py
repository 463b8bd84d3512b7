"""Confidences: the probability that a proposed translation is right, learned on held-out seed pairs.

A confidence is a logistic function of four features of candidate j of a query with falling scores s: its
score s_j, its lead s_1 - s_2 if it is the first, its lag s_j - s_1, and log(100 + rank of the first answer):
at the same score, a frequent word is more often wrong. Slopes are never negative, so that confidences fall
with the scores. Held-out seeds are few, and more frequent than the words that people look up. For C1, the
log-odds are therefore a weighted mean of a function fitted to dictionaries of other vectors (`PRIORS`, weight
0.75) and of the one fitted to the held-out words; a prior that fits these badly has less weight. The level of
the prior rises with the accuracy on the held-out words, and with the number of seeds: few seeds are the most
frequent words, and easier than others. research/calibration.md describes how all this was chosen, and the
remaining error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.lexicon import Lexicon
from bilex.model.space import CSLS_NEIGHBOURS, Direction, Floats, Retrieval, Rows, Space
from bilex.search import mean_of_best, top_k

Numbers = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
PriorOfWords = Callable[[Truths], "Logistic"]  # of the words that a function is fitted to

CANDIDATES = 5
FEWEST_WORDS = 40
DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
RETRIEVALS: tuple[Retrieval, Retrieval] = ("csls", "nn")
_FOLDS = 5
_BINS = 10
_POOL = 100
_PENALTY = 1.0
_RANK_OFFSET = 100
# Besides the held-out words, this number of the most frequent words is translated; the last number is the
# candidates that are re-ranked for each.
_FREQUENT, _FREQUENT_SAMPLE, _FREQUENT_POOL = 10_000, 200, 20
# The weight of the prior, if its log-likelihood per held-out word is at most `_PLAUSIBLE` lower than that of
# the function fitted to these words; it falls to zero at `_IMPLAUSIBLE`.
_PRIOR_WEIGHT, _PLAUSIBLE, _IMPLAUSIBLE = 0.75, 0.1, 0.3
# The numbers of seed words that the prior was fitted to lie between these.
_FEW_SEEDS, _MANY_SEEDS = 1_000, 5_000


@dataclass(frozen=True)
class Logistic:
    """Confidence = 1 / (1 + exp(-(bias + slopes · (score, lead, lag, log rank of the first answer))))."""

    bias: float
    slopes: tuple[float, float, float, float]

    def __call__(self, scores: npt.ArrayLike, first: npt.ArrayLike) -> Numbers:
        """The confidence of every candidate, in the shape of `scores`.

        Args:
            scores: Falling scores, one query per row.
            first: The rank of each query's first answer, from 0.
        """
        return _logistic(self.bias + features(scores, first) @ np.array(self.slopes))

    @classmethod
    def fit(cls, scores: npt.ArrayLike, right: Truths) -> Logistic:
        """The maximum-likelihood function of score, lead and lag, with a light L2 penalty on the slopes.

        `scores` fall, one query per row; `right` says whether each candidate is a translation.
        """
        from scipy.optimize import minimize

        x = features(scores, np.zeros(len(right)))[..., :3].reshape(-1, 3)
        y = right.reshape(-1).astype(np.float64)
        mean, spread = x.mean(axis=0), x.std(axis=0)
        spread[spread < 1e-12] = 1
        x = (x - mean) / spread

        def loss(w: Numbers) -> tuple[float, Numbers]:
            z = w[0] + x @ w[1:]
            value = (np.logaddexp(0, z) - y * z).sum() + 0.5 * _PENALTY * (w[1:] @ w[1:])
            error = _logistic(z) - y
            return float(value), np.concatenate([[error.sum()], x.T @ error + _PENALTY * w[1:]])

        bounds = [(-30, 30), (0, None), (0, None), (0, None)]
        found = minimize(loss, np.zeros(4), jac=True, method="L-BFGS-B", bounds=bounds)
        slopes = found.x[1:] / spread
        score, lead, lag = slopes.tolist()
        return cls(float(found.x[0] - slopes @ mean), (score, lead, lag, 0.0))

    def mixed(self, other: Logistic, weight: float) -> Logistic:
        """The function whose log-odds are the mean of this one's and another's, which has `weight`."""
        ours, theirs = np.array([self.bias, *self.slopes]), np.array([other.bias, *other.slopes])
        bias, score, lead, lag, rank = ((1 - weight) * ours + weight * theirs).tolist()
        return Logistic(bias, (score, lead, lag, rank))


@dataclass(frozen=True)
class Prior:
    """A function of many models of C1, whose bias depends on a model's held-out accuracy and seeds."""

    function: Logistic
    per_accuracy: float
    per_seeds: float

    def of_model(self, right: Truths, seed_words: int) -> Logistic:
        """The function for a model: which first answers to held-out words are right, and its seed words."""
        accuracy = (right.sum() + 1) / (len(right) + 2)
        seeds = min(max(seed_words, _FEW_SEEDS), _MANY_SEEDS) / _FEW_SEEDS
        moved = self.per_accuracy * math.log(accuracy / (1 - accuracy)) + self.per_seeds * math.log(seeds)
        return replace(self.function, bias=self.function.bias + moved)


PRIORS: dict[Retrieval, Prior] = {
    "csls": Prior(Logistic(-3.45, (5.94, 3.08, 6.00, 0.153)), 0.427, 0.232),
    "nn": Prior(Logistic(-5.44, (5.12, 15.2, 10.0, 0.074)), 0.345, 0.074),
}


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
                model = Logistic(bias, (score, lead, lag, rank))
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
    """

    scores: Floats
    first: Rows
    right: Truths
    frequent_scores: Floats
    frequent_first: Rows


AnswerRecords = dict[tuple[Direction, Retrieval], Answers]


def answer_records(space: Space, held_out: Lexicon, seeds: Lexicon | None = None) -> AnswerRecords:
    """Translate the words of pairs that a space was not learned from.

    With all `seeds`, a sample of frequent words that are none is translated too.
    """
    records: AnswerRecords = {}
    for direction in DIRECTIONS:
        query_side, key_side = space.sides(direction)
        pairs = held_out if direction == "forward" else held_out.swapped()
        covered = pairs.covered(query_side.key_to_index, key_side.key_to_index).translations()
        if not covered:
            continue
        translations = [key_side.rows(targets) for targets in covered.values()]
        frequent = np.zeros(0, np.int64)
        if seeds is not None:
            known = {pair[direction == "backward"] for pair in (*seeds.pairs, *held_out.pairs)}
            frequent = frequent_rows(query_side.index_to_key, known)
        found = _retrieve(space, query_side.rows(covered), direction)
        others = _retrieve(space, frequent, direction, _FREQUENT_POOL) if len(frequent) else {}
        for retrieval, (scores, rows) in found.items():
            right = np.stack([np.isin(row, right) for row, right in zip(rows, translations, strict=True)])
            more = others.get(retrieval, (scores[:0], rows[:0]))
            records[direction, retrieval] = Answers(scores, rows[:, 0], right, more[0], more[1][:, 0])
    return records


def frequent_rows(words: list[str], known: Collection[str]) -> Rows:
    """A sample of the most frequent words, without the known ones, evenly over their ranks."""
    rows = [row for row, word in enumerate(words[:_FREQUENT]) if word not in known]
    step = -(-len(rows) // _FREQUENT_SAMPLE) or 1
    return np.array(rows[::step], np.int64)


def learn_confidences(records: AnswerRecords, seed: int = 0, *, seed_words: int | None = None) -> Calibration:
    """Confidences from the answers to held-out words; none, and a note, with fewer than 40 words.

    `seed` is for the folds of the cross-validation. `seed_words`, the number of source words of the seeds, is
    for `PRIORS`, which were fitted to models of C1; None for other methods, whose scores are different.
    """
    for direction in DIRECTIONS:
        key: tuple[Direction, Retrieval] = (direction, "csls")
        words = len(records[key].scores) if key in records else 0
        if words < FEWEST_WORDS:
            needed = f"have a known translation, and at least {FEWEST_WORDS} are needed"
            return Calibration(note=f"not calibrated: {words} held-out words {needed}")
    parts = {}
    for key, found in records.items():
        prior = None if seed_words is None else partial(PRIORS[key[1]].of_model, seed_words=seed_words)
        parts[key] = _learn(found, prior, seed)
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


def _learn(answers: Answers, prior: PriorOfWords | None, seed: int) -> Calibrated:
    """Fit the function to all words; estimate its error by cross-validation."""
    words = len(answers.scores)
    folds = np.random.default_rng(seed).permutation(words) % _FOLDS
    first = np.empty(words)
    for fold in range(_FOLDS):
        inside, outside = folds != fold, folds == fold
        model = _between(answers.scores[inside], answers.first[inside], answers.right[inside], prior)
        first[outside] = model(answers.scores[outside], answers.first[outside])[:, 0]
    model, right = _between(answers.scores, answers.first, answers.right, prior), answers.right[:, 0]
    frequent = model(answers.frequent_scores, answers.frequent_first)[:, 0]
    return Calibrated(
        model=model,
        words=words,
        accuracy=float(right.mean()),
        error=expected_calibration_error(first, right),
        error_by_chance=error_by_chance(first, seed),
        brier=float(np.mean((first - right) ** 2)),
        frequent=float(frequent.mean()) if len(frequent) else math.nan,
    )


def _between(scores: Floats, first: Rows, right: Truths, prior: PriorOfWords | None) -> Logistic:
    """The function of some words, averaged with the prior, whose weight is less the worse it fits them."""
    own = Logistic.fit(scores, right)
    if prior is None:
        return own
    others = prior(right[:, 0])
    lost = _log_loss(others, scores, first, right) - _log_loss(own, scores, first, right)
    plausible = float(np.clip((_IMPLAUSIBLE - lost) / (_IMPLAUSIBLE - _PLAUSIBLE), 0, 1))
    return own.mixed(others, _PRIOR_WEIGHT * plausible)


def _log_loss(model: Logistic, scores: Floats, first: Rows, right: Truths) -> float:
    """The mean negative log-likelihood of the first answers."""
    stated = np.clip(model(scores, first)[:, 0], 1e-3, 1 - 1e-3)
    return float(-np.mean(np.log(np.where(right[:, 0], stated, 1 - stated))))
