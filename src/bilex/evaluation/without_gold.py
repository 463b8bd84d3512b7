"""What can be known about a model without a test dictionary."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.core.tables import table
from bilex.fit.calibration import DIRECTIONS
from bilex.fit.expectation import SPREAD, from_calibration
from bilex.model import Translator
from bilex.model.space import OPPOSITE, Direction, Space

if TYPE_CHECKING:
    from rich.console import RenderableType

_FREQUENT = 10_000
_MOST_QUERIES = 2_000
_Z = 1.959963984540054
_LABELS = {
    "expected": "expected P@1 on a test dictionary",
    "held_out": "P@1 on held-out seeds",
    "mutual": "first answers that answer back",
    "named": "expected P@1 of the words given",
}


@dataclass(frozen=True)
class Share:
    """A share of some words, with its 95 % interval."""

    share: float
    low: float
    high: float
    words: int

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} % ({100 * self.low:.0f}–{100 * self.high:.0f})"

    @classmethod
    def of_count(cls, count: int, words: int) -> Share:
        """A share with Wilson's interval."""
        return cls(count / words, *wilson_interval(count / words, words), words)


def wilson_interval(share: float, count: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share found in `count` independent trials, which need not be whole."""
    squared = _Z * _Z
    middle = (share + squared / (2 * count)) / (1 + squared / count)
    spread = math.sqrt(share * (1 - share) / count + squared / (4 * count * count))
    half = _Z / (1 + squared / count) * spread
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Judgement:
    """What is known about one direction of a model."""

    expected: Share | None  # P@1 to expect on a test dictionary; None without confidences
    held_out: Share | None  # P@1 on seed words that a second fit had not seen; None if none were held out
    mutual: Share  # of frequent words, those that are the first answer of their first answer
    named: Share | None  # the mean confidence of the first answers to the words given; None without any


@dataclass(frozen=True)
class WithoutGold:
    """What is known about a model, by direction."""

    forward: Judgement
    backward: Judgement
    note: str

    def table(self, languages: tuple[str, str] = ("source", "target")) -> RenderableType:
        """A table for a rich console; `languages` are the names of the two languages."""
        one, other = languages
        rows = []
        for name, label in _LABELS.items():
            shares = [getattr(side, name) for side in (self.forward, self.backward)]
            if name != "named" or any(shares):
                rows.append([label, *(str(share or "–") for share in shares)])
        headings = ("measured on the model alone", f"{one} to {other}", f"{other} to {one}")
        return table(headings, rows, "Without a test dictionary", left=1, caption=self.note)


def judge(
    translator: Translator,
    *,
    words: Mapping[Direction, Collection[str]] | None = None,
    progress: Progress = SILENT,
) -> WithoutGold:
    """Measure what can be known without a test dictionary.

    `words` are, by direction, those for whose translations the accuracy is expected; it is a BilexError if
    none of them is in the vocabulary.
    """
    expectation = from_calibration(translator.calibration)
    sides = {}
    with progress.task("Translating frequent words", 2) as task:
        for direction in DIRECTIONS:
            expected = held_out = None
            if expectation.measured:
                count = expectation.words[direction]
                expected = Share(*expectation.of(direction), count)
                held_out = Share.of_count(expectation.right[direction], count)
            given = (words or {}).get(direction)
            named = None if given is None else _named(translator, direction, given)
            sides[direction] = Judgement(expected, held_out, _mutual(translator.space, direction), named)
            task.advance()
    return WithoutGold(sides["forward"], sides["backward"], f"Confidences: {translator.calibration.note}.")


def _mutual(space: Space, direction: Direction) -> Share:
    """How many of the frequent words are the first answer of their first answer."""
    count = min(_FREQUENT, len(space.sides(direction)[0]))
    queries = np.arange(0, count, -(-count // _MOST_QUERIES), dtype=np.int64)
    distinct, place = np.unique(space.first_answers(queries, direction), return_inverse=True)
    best = space.first_answers(distinct, OPPOSITE[direction])
    return Share.of_count(int(np.sum(best[place.reshape(-1)] == queries)), len(queries))


def _named(translator: Translator, direction: Direction, words: Collection[str]) -> Share | None:
    """The mean confidence of the model's first answers to some words, known translations aside."""
    places = translator.space.sides(direction)[0].key_to_index
    rows = np.array([places[word] for word in words if word in places], np.int64)
    if not len(rows):
        raise BilexError("none of the words is in the model's vocabulary; check their language and spelling.")
    if (direction, "csls") not in translator.calibration.parts:
        return None
    sure = translator.proposer(direction, "csls", model_only=True)(rows, 1).confidence[:, 0]
    share = float(sure.mean())
    half = _Z * math.sqrt(float((sure * (1 - sure)).mean()) / len(sure) + SPREAD**2)
    return Share(share, max(0.0, share - half), min(1.0, share + half), len(sure))
