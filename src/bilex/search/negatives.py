"""The exact nearest keys of queries that move a little at a time, and their softmax-weighted sum.

At every update of its maps, stage C1 needs each query's nearest words of the other language
(`bilex.search.plain.nearest` finds them plainly). The maps move little between updates, so each query keeps a
*pool*: the keys that scored best when it was last searched in full, with an upper bound on the score of every
key outside. A score cannot change by more than its query moved plus the furthest that any key moved. While
the pool's n-th best score stays above the bound plus that drift, the n best of the pool are the n best of
all keys; a query for which this fails is searched in full again. Nothing is approximated.

Scores are q·y/‖yW‖ with the *unmapped* key y: the query carries the map. So the keys stay put, and the
weighted sum over a query's nearest keys comes from the same rows as the scores.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch


class Nearest(NamedTuple):
    """What an update needs of a query's nearest keys.

    Attributes:
        total: Per query, the sum of exp(score/τ) over its n nearest keys.
        context: Per query, the sum of exp(score/τ)·y/‖yW‖ over them.
        key: The n nearest keys, unordered.
        score: Their scores.
    """

    total: torch.Tensor
    context: torch.Tensor
    key: torch.Tensor
    score: torch.Tensor


class Moment(NamedTuple):
    """Queries and keys under the maps of one update.

    Attributes:
        queries: One row per query, in the keys' unmapped space, so that score = query·key/‖key W‖.
        inverse_norm: 1/‖key W‖ of every key.
        query_units: The queries' words mapped to unit length: score = query unit·key unit.
        key_units: The keys mapped to unit length.
        query_step: How far each query unit moved since the last call.
        key_step: The furthest that any key unit moved since the last call.
    """

    queries: torch.Tensor
    inverse_norm: torch.Tensor
    query_units: torch.Tensor
    key_units: torch.Tensor
    query_step: torch.Tensor
    key_step: torch.Tensor


class HardNegatives(Protocol):
    """A searcher over one set of keys; `searched` counts the full searches of a query so far."""

    searched: int

    def look(self, now: Moment) -> None:
        """Begin with what `nearest` will need at this same moment, without waiting for results."""

    def nearest(self, now: Moment) -> Nearest:
        """The n nearest keys of every query, the query's forbidden keys left out."""


class Forbidden(NamedTuple):
    """Keys that a query may not have: those at `keys[starts[i]:starts[i + 1]]` for query i."""

    starts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]

    @property
    def most(self) -> int:
        """The most forbidden keys of one query."""
        return int(np.diff(self.starts).max(initial=0))


def hard_negatives(keys: torch.Tensor, n: int, temperature: float, forbidden: Forbidden) -> HardNegatives:
    """A searcher for the n nearest of some unmapped keys, on their device and in their precision."""
    n = max(1, min(n, len(keys) - forbidden.most))
    if keys.device.type == "cpu" and keys.dtype == torch.float32:
        from bilex.search.negatives_cpu import CpuHardNegatives

        return CpuHardNegatives(keys, n, temperature, forbidden)
    from bilex.search.negatives_gpu import GpuHardNegatives

    return GpuHardNegatives(keys, n, temperature, forbidden)


def to_units(
    image: torch.Tensor, previous: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """1/length of mapped rows, the unit rows in their place, and how far each lies from its previous one."""
    inverse = image.norm(dim=1).clamp_min_(1e-37).reciprocal_()
    image.mul_(inverse[:, None])
    step = torch.zeros_like(inverse) if previous is None else (image - previous).norm(dim=1)
    return inverse, image, step
