"""Orthogonal Procrustes: the best rotation of one language onto the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from bilex.aligners.base import Aligner, Folder, Pairs
from bilex.aligners.maps import Map, Unit
from bilex.core.progress import Progress
from bilex.vectors import WordVectors

_NEGLIGIBLE = 1e-10  # of the largest singular value; float32 vectors give 1e-16 in empty directions


def common_rotations(
    covariance: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """U, singular values and V of a cross-covariance, U and V with as many columns as its smaller side.

    With fewer pairs than dimensions some directions are not determined; an SVD pairs them by rounding, which
    differs with the number of threads. They are paired so that UVᵀ is as close to the identity as possible.
    """
    u, values, vt = scipy.linalg.svd(covariance, full_matrices=False)
    known = int(np.count_nonzero(values > _NEGLIGIBLE * values[0]))
    if known < len(values):
        (seen_x, seen_y), (rows, columns) = (u[:, :known], vt[:known].T), covariance.shape
        rest_x = np.eye(rows) - seen_x @ seen_x.T
        rest_y = np.eye(columns) - seen_y @ seen_y.T
        more_u, _, more_vt = scipy.linalg.svd(rest_x @ np.eye(rows, columns) @ rest_y, full_matrices=False)
        u[:, known:], vt[known:] = more_u[:, : len(values) - known], more_vt[: len(values) - known]
    return u, values, vt.T


@dataclass(kw_only=True, repr=False)
class Procrustes(Aligner):
    """Rotate the source onto the target: W = UVᵀ from the SVD of X_DᵀY_D.

    Where the dimensions differ, both are projected onto the shared singular directions, a space of
    the smaller dimension; with equal dimensions this is the same as rotating the source alone.

    Examples:
        >>> Procrustes().fit(source, target, lexicon)  # doctest: +SKIP
    """

    name = "procrustes"
    summary = "one rotation from the seed pairs; the plain baseline, seconds"

    def _fit(
        self, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress, checkpoint: Folder
    ) -> None:
        unit = Map([Unit()])
        x = unit(source.vectors[pairs[:, 0]]).astype(np.float64)
        y = unit(target.vectors[pairs[:, 1]]).astype(np.float64)
        u, _, v = common_rotations(x.T @ y)
        if source.dim == target.dim:
            u, v = u @ v.T, np.eye(target.dim)
        self.source_map_, self.target_map_ = Map.linear(u), Map.linear(v)
