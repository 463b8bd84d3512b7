"""The prior of confidences (`bilex.fit.calibration.PRIORS`), fitted to many models.

    python -m research.never_worse DATA --run check --forms auto --freedict FREEDICT --features FEATURES …
    python -m research.prior DATA FEATURES research/results/never_worse_check.jsonl

FEATURES has the answers of models to held-out seeds ("trial"), to the test dictionary ("test") and to
FreeDict ("other"), none of them seeds. For CSLS the prior is fitted to first answers, its slope of the lag to
the others; for nearest neighbours to all five. Each dictionary of a model counts by the root of its words.
Printed are the calibration error (ECE) of the present prior and of one fitted without the family that is
judged, the expected accuracy, how much two dictionaries disagree about one model, and the coefficients for
all families.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from bilex.fit import calibration
from bilex.fit.calibration import (
    DIRECTIONS,
    PRIORS,
    RETRIEVALS,
    Answers,
    Logistic,
    Prior,
    error_by_chance,
    expected_calibration_error,
    features,
    learn_confidences,
)
from research.never_worse import read, read_features

KINDS = ("test", "other")
_PENALTY = 1e-3


class Model:
    """The answers of one model."""

    def __init__(self, data: Path, file: Path) -> None:
        self.name = file.stem
        parts = file.stem.split("_")
        setting = f"{'/'.join(parts[:-1])}:{parts[-1]}"
        self.family = parts[0] if len(parts) > 2 or parts[0] == "sample" else "web"
        self.records = read_features(file)
        if self.family == "sample":  # its own dictionaries are FreeDict's
            self.records.pop("other", None)
        source, target, seeds, _ = read(data, setting, 18_500)
        self.seed_words = len(seeds.covered(source.key_to_index, target.key_to_index).translations())

    def judged(self, direction: str, retrieval: str) -> list[Answers]:
        """The answers to the words of each dictionary."""
        found = (self.records.get(kind, {}).get((direction, retrieval)) for kind in KINDS)
        return [answers for answers in found if answers is not None and len(answers.scores)]

    def level(self, direction: str, retrieval: str) -> list[float]:
        """What moves the bias of the prior: the log-odds of the held-out accuracy, and the seeds."""
        right = self.records["trial"][direction, retrieval].right[:, 0]
        zero = Logistic(0.0, (0.0, 0.0, 0.0, 0.0))
        return [Prior(zero, *unit).of_model(right, self.seed_words).bias for unit in ((1, 0), (0, 1))]


def logistic_fit(x: np.ndarray, y: np.ndarray, weight: np.ndarray, free: int) -> tuple[float, np.ndarray]:
    """Bias and slopes of a weighted logistic regression; all but the last `free` slopes are not negative."""
    mean, spread = np.average(x, axis=0, weights=weight), x.std(axis=0)
    spread[spread < 1e-9] = 1
    z, weight = (x - mean) / spread, weight / weight.sum()

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        log_odds = w[0] + z @ w[1:]
        error = weight * (1 / (1 + np.exp(-log_odds)) - y)
        value = (weight * (np.logaddexp(0, log_odds) - y * log_odds)).sum() + _PENALTY * w[1:] @ w[1:]
        return float(value), np.concatenate([[error.sum()], z.T @ error + 2 * _PENALTY * w[1:]])

    bounds = [(None, None), *[(0, None)] * (x.shape[1] - free), *[(None, None)] * free]
    found = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = found[1:] / spread
    return float(found[0] - slopes @ mean), slopes


def fitted_prior(models: list[Model], retrieval: str) -> Prior:
    """The prior of some models."""
    first_only = retrieval == "csls"
    cases = [
        (answers, model.level(direction, retrieval))
        for model in models
        for direction in DIRECTIONS
        for answers in model.judged(direction, retrieval)
    ]

    def rows(candidates: slice) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for answers, level in cases:
            table = features(answers.scores, answers.first)[:, candidates]
            x = np.concatenate([table, np.broadcast_to(level, (*table.shape[:2], 2))], axis=2)
            y = answers.right[:, candidates].reshape(-1).astype(float)
            yield x.reshape(len(y), -1), y, np.full(len(y), len(answers.scores) ** -0.5)

    x, y, weight = map(np.concatenate, zip(*rows(slice(0, 1 if first_only else None)), strict=True))
    bias, slopes = logistic_fit(x, y, weight, 2)
    if first_only:
        x, y, weight = map(np.concatenate, zip(*rows(slice(1, None)), strict=True))
        others = bias + x @ np.where(np.arange(6) == 2, 0, slopes)

        def lost(slope: float) -> float:
            log_odds = others + slope * x[:, 2]
            return float((weight * (np.logaddexp(0, log_odds) - y * log_odds)).sum())

        slopes[2] = min(np.arange(0, 25, 0.25), key=lost)
    score, lead, lag, rank, per_accuracy, per_seeds = slopes.tolist()
    return Prior(Logistic(bias, (score, lead, lag, rank)), per_accuracy, per_seeds)


def errors(models: list[Model], prior_of: Callable[[Model], Prior], retrieval: str) -> dict[str, Any]:
    """By direction the mean ECE on the words of all dictionaries, that of exact confidences, and the bias."""
    found: dict[str, Any] = {}
    for direction in DIRECTIONS:
        numbers = []
        for model in models:
            calibration.PRIORS[retrieval] = prior_of(model)  # type: ignore[index]
            learned = learn_confidences(model.records["trial"], seed_words=model.seed_words)  # type: ignore[arg-type]
            function = learned.parts[direction, retrieval].model  # type: ignore[index]
            asked = model.judged(direction, retrieval)
            parts = [function(answers.scores, answers.first)[:, 0] for answers in asked]
            stated = np.concatenate(parts)
            right = np.concatenate([answers.right[:, 0] for answers in asked])
            biases = [part.mean() - one.right[:, 0].mean() for part, one in zip(parts, asked, strict=True)]
            numbers.append(
                (
                    expected_calibration_error(stated, right),
                    error_by_chance(stated, draws=20),
                    abs(stated.mean() - right.mean()),
                    abs(biases[0] - biases[1]) if len(biases) > 1 else np.nan,
                    learned.parts[direction, retrieval].frequent,  # type: ignore[index]
                )
            )
        found[direction] = np.array(numbers)
    return found


def main(data: Path, folder: Path, checked: Path) -> None:
    """Fit, judge and print."""
    models = [Model(data, file) for file in sorted(folder.glob("*.npz"))]
    families = sorted({model.family for model in models})
    for retrieval in RETRIEVALS:
        present = dict(PRIORS)[retrieval]
        left_out = {
            family: fitted_prior([model for model in models if model.family != family], retrieval)
            for family in families
        }
        for name, prior_of in (
            ("present", lambda model: present),  # noqa: B023
            ("family left out", lambda model: left_out[model.family]),  # noqa: B023
        ):
            for direction, numbers in errors(models, prior_of, retrieval).items():
                error, chance, bias, between = np.nanmean(numbers[:, :4], axis=0)
                print(
                    f"{retrieval:4} {name:15} {direction:8} ECE {error:.4f}, exact confidences {chance:.4f}, "
                    f"|bias| {bias:.3f}, between two dictionaries {between:.3f}"
                )
                if retrieval == "csls" and name != "present":
                    expected(checked, models, direction, numbers[:, 4])
        print(retrieval, "for all families:", fitted_prior(models, retrieval))


def expected(checked: Path, models: list[Model], direction: str, frequent: np.ndarray) -> None:
    """The mean and the deviation of P@1 less the mean confidence of frequent words."""
    rows = (json.loads(line) for line in checked.read_text(encoding="utf-8").splitlines())
    true = {
        row["setting"].replace("/", "_").replace(":", "_"): row["p@1"][1 if direction == "forward" else 3]
        / 100
        for row in rows
        if row["form"] == "auto" and row.get("vocabulary") == 18_500 and "p@1" in row
    }
    easier = np.array([true[model.name] for model in models]) - frequent
    print(f"     P@1 of the test less that of frequent words {easier.mean():.3f} ± {easier.std():.3f}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
