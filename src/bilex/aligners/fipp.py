"""FIPP: bend the source towards the target's inner products, then rotate.

Sachidananda, Yang and Zhu, "Filtered Inner Product Projection for Crosslingual Embedding Alignment"
(ICLR 2021).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch

from bilex.aligners.base import Aligner, Metric, Pairs
from bilex.aligners.eigen import top_eigenpairs
from bilex.aligners.greedy import greedy_matching
from bilex.aligners.maps import Array, Center, Linear, Map, MapStep, Unit
from bilex.aligners.procrustes import common_rotations
from bilex.aligners.report import AlignerReport
from bilex.core.device import resolve_device
from bilex.core.progress import Progress
from bilex.vectors import WordVectors

Matrix = npt.NDArray[np.float64]

_FEW_SEEDS = 2000
_BLOCK = 1024


@dataclass(frozen=True, kw_only=True)
class FIPPReport(AlignerReport):
    """What it reports.

    Attributes:
        pairs: Pairs that it learned from, those it added included.
        self_learning: Whether it added pairs to the seeds.
        bridged_share: The share of inner products that were close enough to be brought together.
    """

    pairs: int = 0
    self_learning: bool = False
    bridged_share: float = 0.0


@dataclass(kw_only=True, repr=False)
class FIPP(Aligner):
    """Make the inner products of the seed words agree where they nearly do, and map accordingly.

    Where the inner products of two pairs differ by less than `epsilon` in the two languages, the
    source's is drawn towards the target's; the rest is left as it is. The eigenvectors of that matrix
    are new vectors of the seed words; all source words follow by least squares; a weighted Procrustes
    rotation, in which pairs that agree better count more, brings them to the target, which stays.

    Args:
        epsilon: The largest difference of inner products that is bridged.
        strength: λ, how strongly the source is drawn to the target.
        self_learning: Whether the seed pairs are first extended; None does so with fewer than 2,000.
        pairs: How many pairs self-learning extends the seeds to.
        frequent: Among how many of the most frequent words of each language it looks for them.
        metric: How the result is to be searched: "dot", as the authors do, or "cosine".

    Examples:
        >>> FIPP(metric="cosine").fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "fipp"
    summary = "fits the inner products of the seed pairs, then rotates; seconds"
    equal_dimensions = True

    epsilon: float = 0.05
    strength: float = 1.0
    self_learning: bool | None = None
    pairs: int = 14000
    frequent: int = 20000
    metric: Metric = "dot"  # type: ignore[misc]
    report_: FIPPReport = field(init=False, compare=False)

    def _fit(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        extend = len(pairs) < _FEW_SEEDS if self.self_learning is None else self.self_learning
        x, y = _without_first_direction(source.vectors), _without_first_direction(target.vectors)
        with progress.task("fipp", total=4 if extend else 3) as task:
            if extend:
                pairs = self._extended(x.rows, y.rows, pairs)
                task.advance(pairs=len(pairs))
            x_pairs, y_pairs = x.rows[pairs[:, 0]], y.rows[pairs[:, 1]]
            grams = filtered_gram(x_pairs, y_pairs, self.epsilon, self.strength, self.device)
            task.advance(bridged=grams.bridged)
            bent = top_eigenpairs(grams.gram, torch.cat([grams.x, grams.y], dim=1), source.dim)
            task.advance()
            rows = (bent.vectors * bent.values.clamp(min=0).sqrt()).double().cpu().numpy()
            spread = scipy.linalg.lstsq(x_pairs.astype(np.float64), rows)[0]
            u, _, v = common_rotations((rows * grams.weights[:, None]).T @ y_pairs.astype(np.float64))
            task.advance()
        matrix = spread @ u @ v.T
        self.source_map_ = Map([*x.steps, Linear(x.projection @ matrix)])
        self.target_map_ = Map([*y.steps, Linear(y.projection)])
        self.report_ = replace(
            self.report_, pairs=len(pairs), self_learning=extend, bridged_share=grams.bridged
        )

    def _extended(self, x: Array, y: Array, seeds: Pairs) -> Pairs:
        """The seeds, and the best one-to-one matches of words described by their products with the seeds."""
        new = self.pairs - len(seeds)
        if new < 1:
            return seeds
        left = np.setdiff1d(np.arange(min(self.frequent, len(x))), seeds[:, 0])
        right = np.setdiff1d(np.arange(min(self.frequent, len(y))), seeds[:, 1])
        unit = Map([Unit()])
        described_x, described_y = unit(x[left] @ x[seeds[:, 0]].T), unit(y[right] @ y[seeds[:, 1]].T)
        found, _ = greedy_matching(described_x, described_y, new, device=self.device)
        return np.concatenate([seeds, np.stack([left[found[:, 0]], right[found[:, 1]]], axis=1)])


class Projected(NamedTuple):
    """Rows without their mean and first principal component, and how to make more of them."""

    rows: Array
    steps: list[MapStep]
    projection: Matrix


def _without_first_direction(vectors: npt.ArrayLike) -> Projected:
    unit = Map([Unit()])(vectors)
    mean = unit.mean(axis=0, dtype=np.float64)
    rows = unit - mean.astype(np.float32)
    _, directions = scipy.linalg.eigh((rows.T @ rows).astype(np.float64))
    first = directions[:, -1]
    projection = np.eye(len(first)) - np.outer(first, first)
    return Projected(rows @ projection.astype(np.float32), [Unit(), Center(mean)], projection)


class FilteredGram(NamedTuple):
    """The source's inner products, drawn towards the target's where both nearly agree.

    Attributes:
        gram: The n × n matrix G̃.
        x: The source rows of the pairs.
        y: The target rows of the pairs.
        weights: For each pair one over the distance between its rows of G̃ and of the target's products.
        bridged: The share of the inner products that were close enough to be drawn.
    """

    gram: torch.Tensor
    x: torch.Tensor
    y: torch.Tensor
    weights: Matrix
    bridged: float


def filtered_gram(source: Array, target: Array, epsilon: float, strength: float, device: str) -> FilteredGram:
    """G̃ of some pairs, a block of rows at a time, so that one n × n matrix is all that is held.

    G̃ minimises Σ (G − G_s)² + γλ Σ (G − G_t)², the second sum over the entries where G_s and G_t differ
    by less than ε, with γ = n² / number of such entries.
    """
    where = resolve_device(device)
    x, y = torch.from_numpy(source).to(where), torch.from_numpy(target).to(where)
    n = len(x)
    gram = torch.empty(n, n, device=where)
    close = 0
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        difference = torch.mm(y[rows], y.T).sub_(torch.mm(x[rows], x.T, out=gram[rows]))
        close += int((difference.abs() < epsilon).sum())
    pull = strength * n * n / max(1, close)
    distances = torch.empty(n, dtype=torch.float64, device=where)
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        difference = torch.mm(y[rows], y.T).sub_(gram[rows])
        moved = torch.where(difference.abs() < epsilon, difference * (pull / (1 + pull)), 0.0)
        gram[rows] += moved
        distances[rows] = torch.linalg.vector_norm((difference - moved).double(), dim=1)
    smallest = float(distances[distances > 0].min()) if bool((distances > 0).any()) else 1.0
    weights = 1 / distances.clamp(min=smallest).cpu().numpy()
    return FilteredGram(gram, x, y, weights, close / n**2)
