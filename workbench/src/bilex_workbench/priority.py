"""In which order reviewing pays most: content words first, and of these lemmas, the uncertain and frequent.

Decisions in this order correct the dictionary most often, and where readers meet it. What the model learns
from them about other words differs little between orders, and no order was found that beats a random one in
it (research/workbench.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bilex.fit.calibration import Numbers
from bilex.model.known import Proposals
from bilex.model.space import Rows

_FREQUENT = 20_000
_SAMPLE = 1_000
_UNLISTED = 0.3  # words that no table lists as a lemma: forms without one, names, rare compounds
CANDIDATES = 2  # the first and how far the second is behind


@dataclass(frozen=True)
class Priorities:
    """What a decision about each entry is worth, measured against a sample of the frequent words."""

    leads: Numbers

    @classmethod
    def of(cls, sample: Proposals) -> Priorities:
        """Take the measure of a sample."""
        return cls(np.sort(_leads(sample)))

    def __call__(self, rows: Rows, found: Proposals, listed: npt.NDArray[np.bool_]) -> Numbers:
        """From 0 to 1: uncertain × frequent, less where not listed; 0 for entries that the seeds know.

        Uncertain is the share of the sample with a greater lead, which needs no confidence: a model of few
        seeds has none. The weight of frequency falls with the logarithm of the rank.
        """
        leads = _leads(found)
        ties = np.searchsorted(self.leads, leads, "left") + np.searchsorted(self.leads, leads, "right")
        uncertain = 1 - (ties + 1) / (2 * len(self.leads) + 2)  # never quite 0 or 1
        frequent = 1 / (1 + np.log10(1 + rows))
        there = (found.rows[:, 0] >= 0) & ~found.known[:, 0]
        return np.where(there, uncertain * frequent * np.where(listed, 1.0, _UNLISTED), 0.0)


def in_queue(worth: float, kind: str) -> float:
    """The place of an entry in the queue, from 0 to 1: content words stand before all others."""
    return worth and (worth + (kind == "content")) / 2


def in_queue_as(priority: float, kind: str) -> float:
    """The place of an entry that turns out to be of another kind."""
    return in_queue(2 * priority % 1, kind)


def sample_rows(words: int) -> Rows:
    """At most a thousand rows, evenly spread over the frequent words."""
    frequent = min(words, _FREQUENT)
    return np.unique(np.linspace(0, frequent - 1, min(frequent, _SAMPLE)).astype(np.int64))


def _leads(found: Proposals) -> Numbers:
    """How far the second translation is behind; a word with one translation has no lead."""
    scores = found.scores.astype(np.float64)
    if scores.shape[1] < CANDIDATES:
        return np.zeros(len(scores))
    return np.nan_to_num(scores[:, 0] - scores[:, 1], nan=0.0)
