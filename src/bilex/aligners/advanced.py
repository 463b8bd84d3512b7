"""Advanced mapping: whiten, rotate, re-weight, de-whiten, as two matrices (the paper's appendix)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.maps import Linear, Map, Unit
from bilex.aligners.procrustes import common_rotations
from bilex.progress import Progress
from bilex.vectors import WordVectors

Matrix = npt.NDArray[np.float64]

# A direction of the seed words counts as empty below this fraction of the strongest one.
_EMPTY_DIRECTION = 1e-9


class AdvancedMaps(NamedTuple):
    """The two matrices, and how much the whitening had to be damped (0: the paper's formula)."""

    source: Matrix
    target: Matrix
    ridge: float


def ridge_for(pairs: int, dimension: int) -> float:
    """How much of the mean eigenvalue is added before whitening, for few pairs in many dimensions.

    Whitening n pairs in d > n dimensions makes any two languages agree perfectly on the pairs, whatever
    they are. From two pairs a dimension on the formula is the paper's; below, damping grows until only
    the rotation is left.
    """
    return max(0.0, 2.0 * dimension / max(pairs, 1) - 1.0)


def whitening(rows: Matrix, ridge: float) -> tuple[Matrix, Matrix]:
    """(XᵀX + ridge)^-½ and (XᵀX + ridge)^½, with empty directions left out of the first."""
    values, vectors = scipy.linalg.eigh(rows.T @ rows)
    values = np.maximum(values, 0) + ridge * max(values.mean(), 0)
    roots = np.sqrt(values)
    empty = roots <= _EMPTY_DIRECTION * max(roots.max(initial=0), np.finfo(float).tiny)
    inverse = np.where(empty, 0, 1 / np.where(empty, 1, roots))
    return (vectors * inverse) @ vectors.T, (vectors * roots) @ vectors.T


def advanced_maps(x: npt.ArrayLike, y: npt.ArrayLike) -> AdvancedMaps:
    """The two maps from the vectors of translation pairs, row by row.

    With A = (XᵀX)^-½ on each side and P S Qᵀ the SVD of (XA_x)ᵀ(YA_y):
    W_x = A_x P S^½ Pᵀ A_x⁻¹ P and W_y = A_y Q S^½ Qᵀ A_y⁻¹ Q. Where the dimensions differ, P and Q have
    as many columns as the smaller one, which is the dimension of the common space.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    ridge = ridge_for(len(x), max(x.shape[1], y.shape[1]))
    (white_x, color_x), (white_y, color_y) = whitening(x, ridge), whitening(y, ridge)
    p, s, q = common_rotations((x @ white_x).T @ (y @ white_y))
    weights = np.sqrt(s)
    return AdvancedMaps(
        white_x @ (p * weights) @ (p.T @ color_x @ p), white_y @ (q * weights) @ (q.T @ color_y @ q), ridge
    )


@dataclass(kw_only=True, repr=False)
class AdvancedMapping(Aligner):
    """One closed-form step: the start of C1, and a strong baseline by itself.

    References:
        Li et al., ACL 2022, appendix A.1; Artetxe et al., AAAI 2018.
    """

    name = "advanced"
    summary = "whitening, rotation, re-weighting, de-whitening in closed form; seconds"

    def _fit(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        unit = Map([Unit()])
        maps = advanced_maps(unit(source.vectors[pairs[:, 0]]), unit(target.vectors[pairs[:, 1]]))
        if maps.ridge:
            progress.say(damping_sentence(len(pairs), maps.ridge))
        self.report_["ridge"] = maps.ridge
        self.source_map_ = Map([Unit(), Linear(maps.source), Unit()])
        self.target_map_ = Map([Unit(), Linear(maps.target), Unit()])


def damping_sentence(pairs: int, ridge: float) -> str:
    """What to tell a user whose pairs are few."""
    return (
        f"{pairs} seed pairs are few for these dimensions: the whitening is damped "
        f"(ridge {ridge:.2f} of the mean eigenvalue)."
    )
