"""FIPP: move the inner products of the source towards those of the target, then rotate.

Sachidananda, Yang and Zhu, "Filtered Inner Product Projection for Crosslingual Embedding Alignment"
(ICLR 2021).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch

from bilex.aligners.base import SMALLEST, AlignerReport, Folder, Limits, Metric, Pairs
from bilex.aligners.maps import Array, Center, Linear, Map, Unit
from bilex.aligners.procrustes import common_rotations
from bilex.aligners.starts import FromPairs
from bilex.core.device import resolve_device
from bilex.core.progress import Progress
from bilex.search import top_k
from bilex.search.search import placed
from bilex.vectors import WordVectors

Matrix = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float32]

_FEW_SEEDS = 2000
_BLOCK = 1024
_SMALL = 2000  # a matrix up to this size is decomposed as a whole
_LEAST = 1e-5  # singular values below this share of the greatest are rounding, and are not fitted


@dataclass(frozen=True, kw_only=True)
class FIPPReport(AlignerReport):
    """The report of FIPP.

    Attributes:
        pairs: Pairs that it learned from, including added ones.
        self_learning: Whether it added pairs to the seeds.
        bridged_share: The share of inner products that were close enough to be moved.
    """

    pairs: int = 0
    self_learning: bool = False
    bridged_share: float = 0.0


@dataclass(kw_only=True, repr=False)
class FIPP(FromPairs):
    """Make the inner products of the seed words agree where they nearly do, and map accordingly.

    Where the inner products of two pairs differ by less than `epsilon` in the two languages, the
    source's is drawn towards the target's; the rest is left as it is. The eigenvectors of that matrix
    are new vectors of the seed words; all source words follow by least squares; a weighted Procrustes
    rotation, in which pairs that agree better count more, brings them to the target, which stays.

    Args:
        epsilon: The largest difference of inner products that is bridged.
        strength: λ, how strongly the source is drawn to the target.
        self_learning: Whether the seed pairs are first extended; None does so with fewer than 2,000.
        pairs: How many pairs self-learning extends the seeds to, at most.
        frequent: Among how many of the most frequent words of each language it looks for them.
        matching: How self-learning pairs words. "best", as the authors do: each source word takes its best
            target, and of those that take the same one the most similar stays. "greedy": the most similar
            words that are left, one to one, until there are `pairs`.
        centred: Whether the first direction is removed from centred rows. The authors subtract the mean and
            what the rows had in that direction before, so that the mean's part of it stays, negated.
        metric: How the result is to be searched: "dot", as the authors do, or "cosine".

    Examples:
        >>> FIPP(metric="cosine").fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "fipp"
    summary = "fits the inner products of the seed pairs, then rotates; seconds"
    equal_dimensions = True
    limits: ClassVar[Limits] = {
        "epsilon": (SMALLEST, None),
        "strength": (0, None),
        "pairs": (1, None),
        "frequent": (1, None),
    }

    epsilon: float = 0.05
    strength: float = 1.0
    self_learning: bool | None = None
    pairs: int = 14000
    frequent: int = 200_000
    matching: Literal["best", "greedy"] = "best"
    centred: bool = False
    metric: Metric = "dot"  # type: ignore[misc]
    report_: FIPPReport = field(init=False, compare=False)

    def _fit(
        self, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress, checkpoint: Folder
    ) -> None:
        extend = len(pairs) < _FEW_SEEDS if self.self_learning is None else self.self_learning
        x, y = (_without_first_direction(side.vectors, self.centred) for side in (source, target))
        with progress.task("fipp", total=4 if extend else 3) as task:
            if extend:
                pairs = self._extended(x.rows, y.rows, pairs)
                task.advance(pairs=len(pairs))
            x_pairs, y_pairs = x.rows[pairs[:, 0]], y.rows[pairs[:, 1]]
            grams = filtered_gram(x_pairs, y_pairs, self.epsilon, self.strength, self.device)
            task.advance(bridged=grams.bridged)
            values, vectors = top_eigenpairs(grams.gram, torch.cat([grams.x, grams.y], dim=1), source.dim)
            task.advance()
            rows = (vectors * values.clamp(min=0).sqrt()).double().cpu().numpy()
            spread = scipy.linalg.lstsq(x_pairs.astype(np.float64), rows, cond=_LEAST)[0]
            u, _, v = common_rotations((rows * grams.weights[:, None]).T @ y_pairs.astype(np.float64))
            task.advance()
        self.source_map_ = x.map(spread @ u @ v.T)
        self.target_map_ = y.map(np.eye(target.dim))
        self.report_ = replace(
            self.report_, pairs=len(pairs), self_learning=extend, bridged_share=grams.bridged
        )

    def _extended(self, x: Array, y: Array, seeds: Pairs) -> Pairs:
        """The seeds, and pairs of other words that are alike in their products with the seed words."""
        new = self.pairs - len(seeds)
        if new < 1:
            return seeds
        left = np.setdiff1d(np.arange(min(self.frequent, len(x))), seeds[:, 0])
        right = np.setdiff1d(np.arange(min(self.frequent, len(y))), seeds[:, 1])
        unit = Map([Unit()])
        described_x, described_y = unit(x[left] @ x[seeds[:, 0]].T), unit(y[right] @ y[seeds[:, 1]].T)
        match = best_matching if self.matching == "best" else greedy_matching
        found, _ = match(described_x, described_y, new, device=self.device)
        return np.concatenate([seeds, np.stack([left[found[:, 0]], right[found[:, 1]]], axis=1)])


class Projected(NamedTuple):
    """Rows without their first direction: unit rows times `projection`, less `offset`."""

    rows: Array
    projection: Matrix
    offset: Matrix

    def map(self, matrix: Matrix) -> Map:
        """The map that takes a word to its row times a matrix."""
        return Map([Unit(), Linear(self.projection @ matrix), Center(self.offset @ matrix)])


def _without_first_direction(vectors: npt.ArrayLike, centred: bool) -> Projected:
    rows = Map([Unit()])(vectors)
    mean = rows.mean(axis=0, dtype=np.float64)
    spread = rows - mean.astype(np.float32)
    first = scipy.linalg.eigh((spread.T @ spread).astype(np.float64))[1][:, -1]
    projection = np.eye(len(first)) - np.outer(first, first)
    offset = mean @ projection if centred else mean
    return Projected(rows @ projection.astype(np.float32) - offset.astype(np.float32), projection, offset)


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


def top_eigenpairs(
    matrix: torch.Tensor, start: torch.Tensor, count: int, *, tolerance: float = 1e-3, most_rounds: int = 40
) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` algebraically largest eigenvalues of a symmetric matrix, falling, and their vectors.

    A small matrix is decomposed as a whole. For a large one a block of more than `count` vectors, which
    roughly span what is sought (`start`), is multiplied by the matrix again and again, with the
    Rayleigh-Ritz procedure in between, until no sought eigenvalue changes by more than `tolerance` of itself.
    """
    count = min(count, len(matrix))
    if len(matrix) <= max(_SMALL, start.shape[1]):
        values, vectors = torch.linalg.eigh(matrix.double())
        return values[-count:].flip(0).float(), vectors[:, -count:].flip(1).float()
    basis, _ = torch.linalg.qr(start)
    before = torch.zeros(count, device=matrix.device)
    for _ in range(most_rounds):
        image = matrix @ basis
        small = basis.T @ image
        values, turn = torch.linalg.eigh((small + small.T).double() / 2)
        values, turn = values.flip(0).float(), turn.flip(1).float()
        vectors, sought = basis @ turn[:, :count], values[:count]
        if bool(((sought - before).abs() <= tolerance * sought.abs()).all()):
            break
        before = sought
        basis, _ = torch.linalg.qr(image @ turn)
    return sought, vectors


def best_matching(source: Array, target: Array, most: int, *, device: str = "auto") -> tuple[Pairs, Scores]:
    """Each source row with its best target by dot product; of those that share one, the most similar.

    Returns at most `most` pairs of rows by falling score, and their scores.
    """
    if not len(source) or not len(target):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    scores, best = top_k(source, target, 1, device=resolve_device(device))
    order = np.argsort(-scores[:, 0], kind="stable")
    _, first = np.unique(best[order, 0], return_index=True)
    kept = order[np.sort(first)][:most]
    return np.stack([kept, best[kept, 0]], axis=1), scores[kept, 0]


def greedy_matching(source: Array, target: Array, most: int, *, device: str = "auto") -> tuple[Pairs, Scores]:
    """Take the most similar pair of rows, strike out both, and so on; like `best_matching` otherwise.

    Two rows that are each other's best among those left would be taken by the greedy rule sooner or later,
    whatever else is taken before. So each round takes all such pairs at once, until no pair that is left can
    be among the `most` best.
    """
    where = resolve_device(device)
    x, y = placed(source, where), placed(target, where)
    left, right = np.arange(len(x)), np.arange(len(y))
    pairs, scores = np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    while len(left) and len(right):
        forward, best = (part[:, 0] for part in top_k(x[left], y[right], 1, device=where))
        if len(scores) >= most and forward.max() <= scores[most - 1]:
            break
        _, back = top_k(y[right], x[left], 1, device=where)
        mutual = back[best, 0] == np.arange(len(left))
        pairs = np.concatenate([pairs, np.stack([left[mutual], right[best[mutual]]], axis=1)])
        scores = np.concatenate([scores, forward[mutual]])
        order = np.argsort(-scores, kind="stable")
        pairs, scores = pairs[order], scores[order]
        left, right = left[~mutual], np.delete(right, best[mutual])
    return pairs[:most], scores[:most]
