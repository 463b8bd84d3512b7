"""The prior of confidences (`bilex.fit.calibration.PRIORS`), fitted to many models.

    python -m research.vocabularies DATA FREEDICT FEATURES --settings … --sizes 20000 40000
    python -m research.prior FEATURES FEATURES/vocabularies.jsonl [--write]

FEATURES has, in a folder for each size of the vocabulary, the answers of models to held-out seeds
("trial"), to the test dictionary ("test") and to FreeDict ("other"), none of them seeds; right is what any
dictionary of the pair lists. Each dictionary of a model counts by the root of its words. Printed are the
calibration error (ECE) of the present prior and of one fitted without the family that is judged, the
expected accuracy, how much two dictionaries disagree about one model, and the coefficients for all
families. With --write, what the check promises (expected P@1, ECE) is computed again, so that another prior
needs no other fits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
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
    Calibration,
    Logistic,
    Prior,
    error_by_chance,
    expected_calibration_error,
    features,
    learn_confidences,
    log_odds_of_rarer,
    word_features,
)
from bilex.fit.expectation import from_calibration
from bilex.model.space import Direction
from research.never_worse import Row, read_features

KINDS = ("test", "other")
_PENALTY = 2e-3


class Model:
    """The answers of one model."""

    def __init__(self, file: Path) -> None:
        parts = file.stem.split("_")
        self.setting, self.words = f"{'/'.join(parts[:-1])}:{parts[-1]}", int(file.parent.name)
        self.family = parts[0] if len(parts) > 2 or parts[0] == "sample" else "web"
        self.records = read_features(file)

    def judged(self, direction: str, retrieval: str) -> list[Answers]:
        """The answers to the words of each dictionary."""
        found = (self.records.get(kind, {}).get((direction, retrieval)) for kind in KINDS)
        return [answers for answers in found if answers is not None and len(answers.right)]

    def learned(self) -> Calibration:
        """The confidences of the present prior."""
        return learn_confidences(self.records["trial"], of_auto=True)  # type: ignore[arg-type]


def fitted_prior(models: list[Model], retrieval: str) -> Prior:
    """The prior of some models: a logistic regression on answers, their words and held-out accuracy.

    What rare answers lose stays as it is: only vocabularies of more than 48,000 words have such.
    """
    rows, rare = [], PRIORS[retrieval].function.of_words[2]  # type: ignore[index]
    for model in models:
        for direction in DIRECTIONS:
            held_out = model.records["trial"][direction, retrieval]
            level = log_odds_of_rarer(held_out)
            for answers in model.judged(direction, retrieval):
                words, candidates = answers.right.shape
                table = features(answers.found.scores).reshape(-1, 3)
                dense, rank, rarity = np.repeat(word_features(answers.found), candidates, axis=0).T
                table = np.column_stack([table, dense, rank, np.full(len(table), level)])
                given = rare * rarity
                weight = np.tile([1.0] + [calibration._LATER] * (candidates - 1), words) / words**0.5
                rows.append((table, answers.right.reshape(-1).astype(float), weight, given))
    x, y, weight, given = map(np.concatenate, zip(*rows, strict=True))
    mean, spread, weight = np.average(x, axis=0, weights=weight), x.std(axis=0), weight / weight.sum()
    z = (x - mean) / spread

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        log_odds = w[0] + z @ w[1:] + given
        error = weight * (1 / (1 + np.exp(-log_odds)) - y)
        value = (weight * (np.logaddexp(0, log_odds) - y * log_odds)).sum() + _PENALTY / 2 * w[1:] @ w[1:]
        return float(value), np.concatenate([[error.sum()], z.T @ error + _PENALTY * w[1:]])

    bounds = [(None, None), *[(0, None)] * 3, *[(None, None)] * 3]
    found = minimize(loss, np.zeros(7), jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = found[1:] / spread
    score, lead, lag, dense, rank, per_accuracy = slopes.tolist()
    bias = float(found[0] - slopes @ mean)
    return Prior(Logistic(bias, (score, lead, lag), (dense, rank, rare)), per_accuracy)


def errors(models: list[Model], prior_of: Callable[[Model], Prior], retrieval: str) -> dict[str, Any]:
    """By direction the mean ECE on the words of all dictionaries, that of exact confidences, and the bias."""
    found: dict[str, Any] = {}
    for direction in DIRECTIONS:
        numbers = []
        for model in models:
            calibration.PRIORS[retrieval] = prior_of(model)  # type: ignore[index]
            learned = model.learned()
            function = learned.parts[direction, retrieval].model  # type: ignore[index]
            asked = model.judged(direction, retrieval)
            parts = [function(answers.found)[:, 0] for answers in asked]
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


def main(folder: Path, checked: Path, *, write: bool) -> None:
    """Fit, judge and print."""
    models = [Model(file) for file in sorted(folder.glob("*/*.npz"))]
    if write:
        write_promises(checked, models)
        return
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
                for groups in ([model.family for model in models], [f"{model.words:6}" for model in models]):
                    means = {one: numbers[np.array(groups) == one, 0].mean() for one in sorted(set(groups))}
                    print("     " + ", ".join(f"{one} {mean:.3f}" for one, mean in means.items()))
                if retrieval == "csls":
                    expected(checked, models, direction, numbers[:, 4])
        calibration.PRIORS[retrieval] = present
        print(retrieval, "for all families:", fitted_prior(models, retrieval))


def expected(checked: Path, models: list[Model], direction: str, frequent: np.ndarray) -> None:
    """The mean and the deviation of P@1 less the mean confidence of frequent words."""
    rows = {_key(row): row for row in _rows(checked)}
    found = [rows[model.setting, model.words][f"p@1 {direction}"] / 100 for model in models]
    easier = np.array(found) - frequent
    print(f"     P@1 of the test less that of frequent words {easier.mean():.3f} ± {easier.std():.3f}")


def promises(learned: Calibration, judged: Mapping[Direction, list[Answers]]) -> Row:
    """By direction, the expected P@1 with its interval, and the calibration error on all judged words."""
    row: Row = {}
    promise = from_calibration(learned)
    for direction, asked in judged.items():
        function = learned.parts[direction, "csls"].model
        stated = np.concatenate([function(answers.found)[:, 0] for answers in asked])
        right = np.concatenate([answers.right[:, 0] for answers in asked])
        row[f"expected {direction}"] = [round(100 * value, 1) for value in promise.of(direction)]
        row[f"ece {direction}"] = round(expected_calibration_error(stated, right), 4)
        row[f"bias {direction}"] = round(float(stated.mean() - right.mean()), 4)
        row[f"ece by chance {direction}"] = round(error_by_chance(stated), 4)
    return row


def write_promises(checked: Path, models: list[Model]) -> None:
    """Replace what the check promises by what the present prior does."""
    rows = _rows(checked)
    by_key = {_key(row): row for row in rows}
    for model in models:
        by_key[model.setting, model.words] |= promises(
            model.learned(), {direction: model.judged(direction, "csls") for direction in DIRECTIONS}
        )
    checked.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _rows(checked: Path) -> list[Row]:
    return [json.loads(line) for line in checked.read_text(encoding="utf-8").splitlines()]


def _key(row: Row) -> tuple[str, int]:
    return row["setting"], row["vocabulary"]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]), write="--write" in sys.argv)
