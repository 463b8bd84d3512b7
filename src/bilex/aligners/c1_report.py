"""What a fit of stage C1 reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bilex.aligners.c1_settings import C1Constants
from bilex.aligners.report import AlignerReport


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round of self-learning.

    Attributes:
        dictionary: Pairs that its maps were learned from.
        contrasted: Of these, the pairs that were contrasted.
        loss: The loss of each contrastive update.
        full_searches: Searches for hard negatives that compared all words.
    """

    dictionary: int
    contrasted: int
    loss: tuple[float, ...] = ()
    full_searches: int = 0


@dataclass(frozen=True, kw_only=True)
class TriedStart:
    """One start that was tried because there were no seeds, or few.

    Attributes:
        recovered: The share of its induced pairs that the others predict.
        similarity: The mean similarity of its induced pairs.
    """

    recovered: float
    similarity: float


@dataclass(frozen=True, kw_only=True)
class C1Report(AlignerReport):
    """What C1 reports.

    Attributes:
        constants: Those of this fit.
        history: Its rounds; of a fit that was resumed, those since then.
        start: The start that was taken in the place of seeds, or beside few; None where the seeds sufficed.
        starts: The starts that were tried, by name.
        anchors: Pairs that the last pass of the rounds took as seeds; 0 where there was one pass.
        stopped: Why it stopped before its end; None if it did not.
        seconds: What it took.
    """

    constants: C1Constants | None = None
    history: tuple[Round, ...] = ()
    start: str | None = None
    starts: Mapping[str, TriedStart] = field(default_factory=dict)
    anchors: int = 0
    stopped: str | None = None
    seconds: float = 0.0
