"""A small logistic model from retrieval scores to the probability that a proposal is right.

For each query the scores of its best candidates, falling, say three things about candidate j: its
score s_j, its lead over the next one if it is the first (s_1 − s_2, else 0), and how far it lags
behind the first (s_j − s_1). The model is a logistic function of those three with slopes that are
never negative: a higher score, with all else equal, never lowers the confidence, and within one
query's list confidences fall as scores fall.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

_PENALTY = 1.0
_BINS = 10


def features(scores: npt.ArrayLike) -> Numbers:
    """Score, lead and lag of every candidate: shape (queries, candidates, 3).

    Args:
        scores: Falling scores, one query a row. The lead needs a second column; without one it is 0.
    """
    table = np.asarray(scores, np.float64)
    lead = np.zeros_like(table)
    if table.shape[1] > 1:
        lead[:, 0] = table[:, 0] - table[:, 1]
    return np.stack([table, lead, table - table[:, :1]], axis=2)


def _logistic(z: Numbers) -> Numbers:
    """1 / (1 + exp(−z)), without overflow."""
    value: Numbers = np.exp(-np.logaddexp(0, -z))
    return value


@dataclass(frozen=True)
class Logistic:
    """Confidence = 1 / (1 + exp(−(bias + slopes · features)))."""

    bias: float
    slopes: tuple[float, float, float]

    def __call__(self, scores: npt.ArrayLike) -> Numbers:
        """The confidence of every candidate, in the shape of `scores`."""
        return _logistic(self.bias + features(scores) @ np.array(self.slopes))

    @classmethod
    def fit(cls, scores: npt.ArrayLike, right: Truths) -> Logistic:
        """The most likely model, with a light pull of the slopes towards 0.

        Args:
            scores: Falling scores, one query a row.
            right: Whether each candidate is a translation, in the same shape.
        """
        from scipy.optimize import minimize

        x = features(scores).reshape(-1, 3)
        y = np.asarray(right, np.float64).reshape(-1)
        mean, spread = x.mean(axis=0), x.std(axis=0)
        spread[spread < 1e-12] = 1
        x = (x - mean) / spread

        def loss(w: Numbers) -> tuple[float, Numbers]:
            z = w[0] + x @ w[1:]
            value = np.logaddexp(0, z).sum() - y @ z + 0.5 * _PENALTY * (w[1:] @ w[1:])
            error = _logistic(z) - y
            return float(value), np.concatenate([[error.sum()], x.T @ error + _PENALTY * w[1:]])

        bounds = [(-30, 30), (0, None), (0, None), (0, None)]
        found = minimize(loss, np.zeros(4), jac=True, method="L-BFGS-B", bounds=bounds)
        slopes = found.x[1:] / spread
        return cls(float(found.x[0] - slopes @ mean), (float(slopes[0]), float(slopes[1]), float(slopes[2])))


def expected_calibration_error(confidence: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """The mean gap between confidence and accuracy over ten equally filled bins.

    Args:
        confidence: Stated probabilities.
        right: What was true.
    """
    stated, truth = np.asarray(confidence, np.float64), np.asarray(right, np.float64)
    order = np.argsort(stated, kind="stable")
    bins = np.array_split(order, min(_BINS, max(1, len(order))))
    gaps = [len(rows) * abs(stated[rows].mean() - truth[rows].mean()) for rows in bins if len(rows)]
    return float(sum(gaps) / max(1, len(order)))


def error_by_chance(confidence: npt.ArrayLike, seed: int = 0, draws: int = 200) -> float:
    """The calibration error that perfectly true confidences would show on so few words, on average.

    A bin of few words never matches its stated probability exactly; a measured error near this figure is
    as small as the number of held-out words can show.
    """
    stated = np.asarray(confidence, np.float64)
    rng = np.random.default_rng(seed)
    truths = rng.random((draws, len(stated))) < stated
    return float(np.mean([expected_calibration_error(stated, truth) for truth in truths]))
