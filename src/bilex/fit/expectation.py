"""What to expect of a model: the share of words of a test dictionary whose first answer will be right."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from bilex.core.errors import BilexError
from bilex.core.progress import Progress
from bilex.fit.calibration import DIRECTIONS, Calibration, answer_records
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner

# Below these shares of right first answers a model is useless, and useful only if its answers are checked.
_NO_USE, _WITH_CARE = 0.1, 0.3
# The difference between P@1 on a test dictionary and the share of frequent words whose first answer is right,
# and its standard deviation: words of a dictionary are easier than names and inflected forms, but it does not
# list all their translations. Fitted to 148 directions of four families of vectors (research/promises.md).
EASIER, SPREAD = 0.005, 0.08
# The same for seeds that were predicted from other seeds, beyond what their number explains.
_OTHER_WORDS = 0.1
_FOLDS = 3
_VOCABULARY = 5_000
_Z = 1.96


@dataclass(frozen=True)
class Expectation:
    """The share of words of a test dictionary like XLING whose first answer will be right, by direction.

    Attributes:
        words: The number of held-out seed words, by direction.
        right: Of these, the words whose first answer was a translation.
        how: "held out" (a tenth of the seeds, one fit), "in turn" (each third of few seeds predicted from the
            other two), or why nothing was measured.
        shares: The expected shares, from the confidences of frequent words; if empty, the share of right
            seed words is expected.
    """

    words: dict[str, int]
    right: dict[str, int]
    how: str
    shares: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, and for the model's memory."""
        return asdict(self)

    @property
    def measured(self) -> bool:
        """Whether anything was measured."""
        return bool(self.words)

    def of(self, direction: str) -> tuple[float, float, float]:
        """The expected share of one direction, and the ends of its interval."""
        words = max(1, self.words[direction])
        held_out = self.right[direction] / words
        share = self.shares.get(direction, held_out)
        spread = SPREAD if self.shares else math.sqrt(held_out * (1 - held_out) / words + _OTHER_WORDS**2)
        return share, max(0.0, share - _Z * spread), min(1.0, share + _Z * spread)

    @property
    def of_use(self) -> Literal["unknown", "none", "with care", "good"]:
        """What the model is good for."""
        if not self.measured:
            return "unknown"
        share = sum(self.of(direction)[0] for direction in self.words) / len(self.words)
        return "none" if share < _NO_USE else "with care" if share < _WITH_CARE else "good"


NOT_MEASURED = Expectation({}, {}, "not measured")


def from_calibration(calibration: Calibration) -> Expectation:
    """What the confidences promise."""
    found = {side: calibration.parts.get((side, "csls")) for side in DIRECTIONS}
    parts = {side: part for side, part in found.items() if part is not None}
    known = not any(math.isnan(part.frequent) for part in parts.values())
    return Expectation(
        {side: part.words for side, part in parts.items()},
        {side: round(part.accuracy * part.words) for side, part in parts.items()},
        "held out" if parts else calibration.note,
        {side: min(1.0, part.frequent + EASIER) for side, part in parts.items()} if known else {},
    )


def from_few_seeds(
    otherwise: Expectation,
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon,
    progress: Progress,
) -> Expectation:
    """How well few pairs predict each other, on frequent words: each third of their words from the others.

    `otherwise` is returned where even that cannot be measured.
    """
    from bilex.aligners.preparation import small_vocabularies

    usable = lexicon.covered(source.key_to_index, target.key_to_index)
    sources = sorted(usable.translations())
    if len(sources) < _FOLDS:
        return otherwise
    progress.log("Seeds are few: each third of them is predicted from the others, on frequent words.")
    small = small_vocabularies(source, target, usable, _VOCABULARY)
    shortened = aligner.for_trial(len(usable), min(len(source), len(target)))
    words: dict[str, int] = dict.fromkeys(DIRECTIONS, 0)
    right: dict[str, int] = dict.fromkeys(DIRECTIONS, 0)
    for fold in range(_FOLDS):
        drawn = set(sources[fold::_FOLDS])
        held_out = Lexicon([pair for pair in usable.pairs if pair[0] in drawn], usable.name)
        try:
            fitted = shortened.clone().fit(*small, usable.without(held_out, by="word"))
        except BilexError:
            return Expectation({}, {}, "there are too few seeds to predict some of them from the others")
        space = Space.from_aligner(fitted, source, target)
        records = answer_records(space, held_out, usable, frequent=False)
        for (side, retrieval), answers in records.items():
            if retrieval == "csls":
                words[side] += len(answers.right)
                right[side] += int(answers.right[:, 0].sum())
    return Expectation(words, right, "in turn")
