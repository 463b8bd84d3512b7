"""RCSLS: train the map on the criterion that is used for retrieval.

Joulin, Bojanowski, Mikolov, Jégou and Grave, "Loss in Translation: Learning Bilingual Word Mapping
with a Retrieval Criterion" (EMNLP 2018).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch

from bilex.aligners.base import SMALLEST, AlignerReport, Folder, Limits, Pairs
from bilex.aligners.maps import Array, Map, Unit
from bilex.aligners.procrustes import common_rotations
from bilex.aligners.starts import FromPairs
from bilex.core.device import resolve_device
from bilex.core.progress import Progress
from bilex.search import top_k
from bilex.search.search import placed
from bilex.vectors import WordVectors

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RCSLSReport(AlignerReport):
    """The report of RCSLS.

    Attributes:
        losses: The loss at the start and after each step.
        last_step_length: The step length at the end.
        steps_restored: Whether steps that raised the loss were undone.
    """

    losses: tuple[float, ...] = ()
    last_step_length: float = 0.0
    steps_restored: bool = True


@dataclass(kw_only=True, repr=False)
class RCSLS(FromPairs):
    """Descend on the relaxed CSLS loss of the seed pairs, starting from the Procrustes rotation.

    With unit rows x and y and the map W, applied as xW, the loss of n pairs is
    f(W) = (1/n) Σ [−2·xᵢW·yᵢ + mean of xᵢW·y over the k targets nearest to xᵢW
    + mean of xW·yᵢ over the k sources whose mapped rows are nearest to yᵢ].
    Neighbours are searched in the whole vocabularies by dot product, and fixed while the gradient is
    computed. A step that raises the loss is undone, and the step length halved.

    Args:
        neighbours: k of CSLS.
        iterations: Steps tried.
        learning_rate: The first step length.
        spectral: Whether singular values of the map above 1 are cut to 1 after each step.
        restore: Whether a step that raised the loss is undone. False behaves as the authors' program seems
            to: it continues from the new map, compares with the lowest loss so far, and takes one more step
            of full length before halved ones.

    Examples:
        >>> RCSLS(neighbours=5).fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "rcsls"
    summary = "gradient descent on the CSLS of the seed pairs; best for retrieval with many seeds, minutes"
    equal_dimensions = True
    limits: ClassVar[Limits] = {"neighbours": (1, None), "learning_rate": (SMALLEST, None)}

    neighbours: int = 10
    iterations: int = 10
    learning_rate: float = 25.0
    spectral: bool = False
    restore: bool = True
    report_: RCSLSReport = field(init=False, compare=False)

    def _fit(
        self, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress, checkpoint: Folder
    ) -> None:
        unit = Map([Unit()])
        loss = RelaxedCSLS(unit(source.vectors), unit(target.vectors), pairs, self.neighbours, self.device)
        u, _, v = common_rotations(loss.covariance)
        matrix = self._descend(u @ v.T, loss, progress)
        self.source_map_, self.target_map_ = Map.linear(matrix), unit

    def _descend(self, matrix: Matrix, loss: RelaxedCSLS, progress: Progress) -> Matrix:
        """The map after `iterations` steps from `matrix`."""
        length = step_length = self.learning_rate
        with progress.task("rcsls", total=self.iterations + 1) as task:
            value, gradient = loss(matrix)
            losses = [value]
            task.advance(loss=value)
            for _ in range(self.iterations):
                trial = matrix - length * gradient
                if self.spectral:
                    trial = spectral_projection(trial)
                trial_value, trial_gradient = loss(trial)
                losses.append(trial_value)
                risen = not trial_value <= value
                if not (risen and self.restore):
                    matrix, gradient = trial, trial_gradient
                value = value if risen else trial_value
                next_length = step_length / 2 if risen else step_length
                length = next_length if self.restore else step_length
                step_length = next_length
                task.advance(loss=value, step=step_length)
        self.report_ = replace(
            self.report_,
            losses=tuple(losses),
            last_step_length=step_length,
            steps_restored=self.restore,
        )
        return matrix


class LossAndGradient(NamedTuple):
    """The loss at a map, and its gradient with the neighbours held fixed."""

    loss: float
    gradient: Matrix


class RelaxedCSLS:
    """The loss of seed pairs as a function of the map, from unit rows of both vocabularies on one device."""

    def __init__(self, source: Array, target: Array, pairs: Pairs, k: int, device: str) -> None:
        self.device = resolve_device(device)
        self.source, self.target = placed(source, self.device), placed(target, self.device)
        self.k = min(k, len(source), len(target))
        left, right = torch.from_numpy(np.ascontiguousarray(pairs.T)).to(self.device)
        self.pair_source, self.pair_target = self.source[left], self.target[right]
        self.x, self.y = self.pair_source.double(), self.pair_target.double()
        self.covariance: Matrix = (self.x.T @ self.y).cpu().numpy()

    def __call__(self, matrix: Matrix) -> LossAndGradient:
        """Loss and gradient at `matrix`.

        With fixed neighbours the loss is linear in the map, so that it is the inner product of the map
        and the gradient.
        """
        single = torch.from_numpy(matrix.astype(np.float32)).to(self.device)
        _, near_x = top_k(self.pair_source @ single, self.target, self.k, device=self.device)
        _, near_y = top_k(self.pair_target, self.source @ single, self.k, device=self.device)
        push = self.x.T @ _sums(self.target, near_x) + _sums(self.source, near_y).T @ self.y
        gradient = (push.cpu().numpy() / self.k - 2 * self.covariance) / len(self.x)
        return LossAndGradient(float((gradient * matrix).sum()), gradient)


def _sums(vectors: torch.Tensor, rows: npt.NDArray[np.int64]) -> torch.Tensor:
    """For each line of `rows` the sum of those vectors."""
    total = torch.zeros(len(rows), vectors.shape[1], dtype=torch.float64, device=vectors.device)
    for column in torch.from_numpy(np.ascontiguousarray(rows.T)).to(vectors.device):
        total += vectors[column]
    return total


def spectral_projection(matrix: Matrix) -> Matrix:
    """The nearest matrix whose singular values are at most 1."""
    u, values, vt = scipy.linalg.svd(matrix)
    return np.asarray((u * np.minimum(values, 1)) @ vt)
