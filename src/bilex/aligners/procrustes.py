"""Orthogonal Procrustes: the best rotation of one language onto the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.linalg

from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.maps import Linear, Map, Unit
from bilex.progress import Progress
from bilex.vectors import WordVectors


def common_rotations(
    covariance: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """U, singular values and V of a cross-covariance, U and V with as many columns as its smaller side."""
    u, values, vt = scipy.linalg.svd(covariance, full_matrices=False)
    return u, values, vt.T


@dataclass(kw_only=True, repr=False)
class Procrustes(Aligner):
    """Rotate the source onto the target: W = UVᵀ from the SVD of X_DᵀY_D.

    Where the dimensions differ, both are projected onto the shared singular directions, a space of
    the smaller dimension; with equal dimensions this is the same as rotating the source alone.

    Example:
        >>> Procrustes().fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "procrustes"
    summary = "one rotation from the seed pairs; the plain baseline, seconds"

    def _fit(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        unit = Map([Unit()])
        x = unit(source.vectors[pairs[:, 0]]).astype(np.float64)
        y = unit(target.vectors[pairs[:, 1]]).astype(np.float64)
        u, _, v = common_rotations(x.T @ y)
        if source.dim == target.dim:
            u, v = u @ v.T, np.eye(target.dim)
        self.source_map_ = Map([Unit(), Linear(u), Unit()])
        self.target_map_ = Map([Unit(), Linear(v), Unit()])
