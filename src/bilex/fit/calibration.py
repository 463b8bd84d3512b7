"""How sure is a proposed translation? Learned on held-out seed pairs, never on a test set."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bilex.fit.logistic import (
    Logistic,
    Numbers,
    Truths,
    error_by_chance,
    expected_calibration_error,
)
from bilex.lexicon import Lexicon
from bilex.model.space import CSLS_NEIGHBOURS, Direction, Floats, Retrieval, Rows, Space
from bilex.search import mean_of_best, top_k

CANDIDATES = 5
FEWEST_WORDS = 40
_FOLDS = 5
_POOL = 100
_SLOPES = 3
DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
RETRIEVALS: tuple[Retrieval, Retrieval] = ("csls", "nn")


@dataclass(frozen=True)
class Calibrated:
    """The confidence of one direction and retrieval, and how far it can be trusted.

    Attributes:
        model: From scores to confidence.
        words: Held-out words that it was learned on.
        accuracy: P@1 on those words, which the fit that was scored had not seen.
        error: Expected calibration error of the first proposals, by cross-validation over the words.
        error_by_chance: What that error would be on average if the confidences were exactly true.
        brier: Mean squared difference between confidence and truth, by cross-validation.
    """

    model: Logistic
    words: int
    accuracy: float
    error: float
    error_by_chance: float
    brier: float


@dataclass(frozen=True)
class Calibration:
    """Confidences for both directions and both kinds of retrieval, or a note why there are none."""

    parts: dict[tuple[Direction, Retrieval], Calibrated] = field(default_factory=dict)
    note: str = "not calibrated"

    def confidence(self, scores: Floats, direction: Direction, retrieval: Retrieval) -> Numbers | None:
        """The confidence of each of a query's candidates, or None where none was learned.

        Args:
            scores: Falling scores, one query a row; at least two columns, for the lead of the first.
            direction: The direction asked.
            retrieval: The retrieval that made the scores.
        """
        part = self.parts.get((direction, retrieval))
        return None if part is None else part.model(scores)

    def swapped(self) -> Calibration:
        """The same confidences with source and target language exchanged."""
        other: dict[Direction, Direction] = {"forward": "backward", "backward": "forward"}
        parts = {(other[direction], retrieval): part for (direction, retrieval), part in self.parts.items()}
        return Calibration(parts, self.note)

    def as_dict(self) -> dict[str, Any]:
        """The calibration for JSON."""
        return {
            "note": self.note,
            **{
                f"{direction} {retrieval}": asdict(part)
                for (direction, retrieval), part in self.parts.items()
            },
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Calibration:
        """What `as_dict` gave.

        Raises:
            ValueError, TypeError, KeyError, AttributeError: It was changed.
        """
        parts: dict[tuple[Direction, Retrieval], Calibrated] = {}
        for direction in DIRECTIONS:
            for retrieval in RETRIEVALS:
                part = stored.get(f"{direction} {retrieval}")
                if part is not None:
                    bias, *slopes = map(_finite, (part["model"]["bias"], *part["model"]["slopes"]))
                    if len(slopes) != _SLOPES:
                        raise ValueError(f"a calibration with {len(slopes)} slopes")
                    figures = {
                        name: _finite(value) for name, value in part.items() if name not in ("model", "words")
                    }
                    model, words = (
                        Logistic(bias, (slopes[0], slopes[1], slopes[2])),
                        int(_finite(part["words"])),
                    )
                    parts[direction, retrieval] = Calibrated(model=model, words=words, **figures)
        return cls(parts, str(stored["note"]))


def _finite(value: object) -> float:
    """A number as it must be in a calibration.

    Raises:
        TypeError: It is something else, or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError(f"a calibration with {value!r} in it")
    return float(value)


@dataclass(frozen=True, eq=False)
class Asked:
    """The best candidates of held-out words, one direction and retrieval, and which of them are right."""

    scores: Floats
    right: Truths

    def __add__(self, other: Asked) -> Asked:
        return Asked(np.concatenate([self.scores, other.scores]), np.concatenate([self.right, other.right]))


Records = dict[tuple[Direction, Retrieval], Asked]


def ask(space: Space, held_out: Lexicon) -> Records:
    """Ask a space for the words of pairs that it was made without.

    Args:
        space: Two vocabularies in one space, learned without `held_out`.
        held_out: Word pairs with known answers.
    """
    records: Records = {}
    for direction in DIRECTIONS:
        query_side, key_side = space.sides(direction)
        pairs = held_out if direction == "forward" else held_out.swapped()
        covered = pairs.covered(query_side.key_to_index, key_side.key_to_index).translations()
        golds = [key_side.rows(targets) for targets in covered.values()]
        if not golds:
            continue
        for retrieval, (scores, rows) in _retrieve(space, query_side.rows(covered), direction).items():
            right = np.stack([np.isin(found, gold) for found, gold in zip(rows, golds, strict=True)])
            records[direction, retrieval] = Asked(scores, right)
    return records


def learn_confidences(records: Records, seed: int = 0) -> Calibration:
    """Confidences from the answers to held-out words.

    Args:
        records: What `ask` gave, or sums of that over several parts of the words.
        seed: For the folds of the cross-validation.

    Returns:
        The confidences; without any, and a note, if fewer than 40 words were asked in a direction.
    """
    for direction in DIRECTIONS:
        asked = records.get((direction, "csls"))
        words = 0 if asked is None else len(asked.scores)
        if words < FEWEST_WORDS:
            return Calibration(
                note=f"not calibrated: {words} held-out words have a known translation, and at "
                f"least {FEWEST_WORDS} are needed"
            )
    parts = {key: _learn(asked.scores, asked.right, seed) for key, asked in records.items()}
    return Calibration(parts, f"calibrated on {parts['forward', 'csls'].words} held-out source words")


def calibrate(space: Space, held_out: Lexicon, seed: int = 0) -> Calibration:
    """Learn confidences from pairs that the space was not made with; see `ask` and `learn_confidences`."""
    return learn_confidences(ask(space, held_out), seed)


def _retrieve(space: Space, queries: Rows, direction: Direction) -> dict[Retrieval, tuple[Floats, Rows]]:
    """The best candidates of some words by CSLS and by plain similarity.

    CSLS needs r of the candidates only, so the 100 most similar words of each query are taken and
    re-ranked: on a full-size vocabulary that is a tenth of the work of knowing r of every word.
    """
    query_side, key_side = space.sides(direction)
    vectors = np.asarray(query_side.vectors[queries])
    similar, rows = top_k(vectors, key_side.vectors, max(_POOL, CSLS_NEIGHBOURS), device=space.device)
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


def _learn(scores: Floats, right: Truths, seed: int) -> Calibrated:
    """Fit the model on all words; judge it on words that each fold's own fit did not see."""
    folds = np.random.default_rng(seed).permutation(len(scores)) % _FOLDS
    first = np.empty(len(scores))
    for fold in range(_FOLDS):
        model = Logistic.fit(scores[folds != fold], right[folds != fold])
        first[folds == fold] = model(scores[folds == fold])[:, 0]
    return Calibrated(
        model=Logistic.fit(scores, right),
        words=len(scores),
        accuracy=float(right[:, 0].mean()),
        error=expected_calibration_error(first, right[:, 0]),
        error_by_chance=error_by_chance(first, seed),
        brier=float(np.mean((first - right[:, 0]) ** 2)),
    )
