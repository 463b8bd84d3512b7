"""How many seed words a fit that had not seen their pairs translated rightly: what to expect of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.fit.calibration import DIRECTIONS, Calibration, ask
from bilex.lexicon import Lexicon
from bilex.model.space import Space

# Below these shares of right first answers a model is of no use, and of use only to a reader who checks.
_NO_USE, _WITH_CARE = 0.1, 0.3
_FOLDS = 3

MakeSpace = Callable[[Lexicon, Lexicon], Space]


@dataclass(frozen=True)
class Expectation:
    """How many seed words were translated rightly by a fit that had not seen their pairs.

    Args:
        words: Words asked, by direction.
        right: Of these, the words whose first answer was a translation.
        how: "held out" (a tenth of the seeds, one fit), "in turn" (each third of few seeds predicted from the
            other two), or why nothing was measured.
    """

    words: dict[str, int]
    right: dict[str, int]
    how: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON, and for the model's memory."""
        return asdict(self)

    @property
    def measured(self) -> bool:
        """Whether anything was measured."""
        return bool(self.words)

    @property
    def share(self) -> float:
        """The share of right first answers over both directions; 0 where nothing was measured."""
        return sum(self.right.values()) / max(1, sum(self.words.values()))

    @property
    def of_use(self) -> Literal["unknown", "none", "with care", "good"]:
        """What the model is good for."""
        if not self.measured:
            return "unknown"
        return "none" if self.share < _NO_USE else "with care" if self.share < _WITH_CARE else "good"


NOT_MEASURED = Expectation({}, {}, "not measured")


def from_calibration(calibration: Calibration) -> Expectation:
    """What the held-out words of the confidences say."""
    parts = {
        side: calibration.parts[side, "csls"] for side in DIRECTIONS if (side, "csls") in calibration.parts
    }
    return Expectation(
        {side: part.words for side, part in parts.items()},
        {side: round(part.accuracy * part.words) for side, part in parts.items()},
        "held out" if parts else calibration.note,
    )


def from_few_seeds(make_space: MakeSpace, usable: Lexicon, seed: int, progress: Progress) -> Expectation:
    """How well few pairs predict each other: each third of their words from the pairs of the other two.

    Args:
        make_space: From the pairs to learn from and the pairs held out to a space.
        usable: The pairs with both words in the vectors.
        seed: Fixes the thirds.
        progress: Receives how far the work is.
    """
    words: dict[str, int] = dict.fromkeys(DIRECTIONS, 0)
    right: dict[str, int] = dict.fromkeys(DIRECTIONS, 0)
    _, shuffled = usable.split(1.0, seed)
    sources = sorted(shuffled.translations())
    progress.say("Seeds are few: each third of them is predicted from the others, on frequent words.")
    for fold in range(_FOLDS):
        drawn = set(sources[fold::_FOLDS])
        held_out = Lexicon([pair for pair in usable.pairs if pair[0] in drawn], usable.name)
        try:
            space = make_space(usable.without(held_out, by="word"), held_out)
        except BilexError:
            return Expectation({}, {}, "there are too few seeds to predict some of them from the others")
        records = ask(space, held_out)
        for side in DIRECTIONS:
            if (side, "csls") in records:
                words[side] += len(records[side, "csls"].right)
                right[side] += int(records[side, "csls"].right[:, 0].sum())
    return Expectation(dict(words), dict(right), "in turn")
