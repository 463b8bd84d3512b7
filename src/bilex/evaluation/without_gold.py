"""What can be known about a model without a test dictionary."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.fit.calibration import DIRECTIONS
from bilex.fit.expectation import SPREAD, from_calibration
from bilex.model import Translator
from bilex.model.space import Direction, Space

if TYPE_CHECKING:
    from rich.console import RenderableType

_FREQUENT = 10_000
_MOST_ASKED = 2_000
_Z = 1.96


@dataclass(frozen=True)
class Share:
    """A share of some words, with its 95 % interval."""

    share: float
    low: float
    high: float
    words: int


@dataclass(frozen=True)
class Judgement:
    """What is known about one direction of a model.

    Attributes:
        expected: P@1 to expect on a test dictionary, as `bilex align` reports it; None without confidences.
        held_out: P@1 on seed words that a second fit had not seen; None where none were held out.
        mutual: The share of frequent words whose first answer has them as its own first answer.
        named: The mean confidence of the first answers to the words that were named; None without any.
    """

    expected: Share | None
    held_out: Share | None
    mutual: Share
    named: Share | None


@dataclass(frozen=True)
class WithoutGold:
    """What is known about a model, by direction."""

    forward: Judgement
    backward: Judgement
    note: str

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, fractions between 0 and 1."""
        return asdict(self)

    def table(self, languages: tuple[str, str] = ("source", "target")) -> RenderableType:
        """A table for a rich console.

        Args:
            languages: The names of the two languages.
        """
        from rich.table import Table

        one, other = languages
        table = Table(title="Without a test dictionary", title_justify="left")
        table.add_column("measured on the model alone")
        for heading in (f"{one} to {other}", f"{other} to {one}"):
            table.add_column(heading, justify="right")
        rows = {
            "expected P@1 on a test dictionary": "expected",
            "P@1 on held-out seeds": "held_out",
            "first answers that answer back": "mutual",
            "expected P@1 of the words given": "named",
        }
        for label, name in rows.items():
            shares = [getattr(side, name) for side in (self.forward, self.backward)]
            if name != "named" or any(shares):
                table.add_row(label, *map(_shown, shares))
        table.caption, table.caption_justify = self.note, "left"
        return table


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
                asked = expectation.words[direction]
                expected = Share(*expectation.of(direction), asked)
                held_out = _of_count(expectation.right[direction], asked)
            named = (words or {}).get(direction)
            sides[direction] = Judgement(
                expected,
                held_out,
                _mutual(translator.space, direction),
                None if named is None else _named(translator, direction, named),
            )
            task.advance()
    note = translator.calibration.note
    return WithoutGold(sides["forward"], sides["backward"], f"Confidences: {note}.")


def _mutual(space: Space, direction: Direction) -> Share:
    """How many of the frequent words are the first answer of their first answer."""
    count = min(_FREQUENT, len(space.sides(direction)[0]))
    queries = np.arange(0, count, -(-count // _MOST_ASKED), dtype=np.int64)
    answers = space.search(queries, 1, direction=direction)[1][:, 0]
    distinct, place = np.unique(answers, return_inverse=True)
    back: Direction = "backward" if direction == "forward" else "forward"
    best = space.search(distinct, 1, direction=back)[1][:, 0]
    return _of_count(int(np.sum(best[place.reshape(-1)] == queries)), len(queries))


def _named(translator: Translator, direction: Direction, words: Collection[str]) -> Share | None:
    """The mean confidence of the model's own first answers to some words."""
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


def _of_count(right: int, words: int) -> Share:
    """A share with Wilson's interval."""
    share, squared = right / words, _Z * _Z
    middle = (share + squared / (2 * words)) / (1 + squared / words)
    half = _Z / (1 + squared / words) * math.sqrt(share * (1 - share) / words + squared / (4 * words * words))
    return Share(share, max(0.0, middle - half), min(1.0, middle + half), words)


def _shown(share: Share | None) -> str:
    if share is None:
        return "–"
    return f"{100 * share.share:.1f} % ({100 * share.low:.0f}–{100 * share.high:.0f})"
