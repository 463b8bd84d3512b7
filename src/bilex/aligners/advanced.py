"""Advanced mapping: whiten, rotate, re-weight, de-whiten, as two matrices (the paper's appendix)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bilex.aligners.base import Aligner, Pairs
from bilex.aligners.maps import Linear, Map, Unit
from bilex.aligners.report import AlignerReport
from bilex.core.device import resolve_device
from bilex.core.progress import Progress
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    Rows = torch.Tensor | npt.NDArray[np.float32]

# A direction of the seed words counts as empty below this fraction of the strongest one: float32 vectors
# hold nothing but rounding there, and whitening would blow that up.
_EMPTY_DIRECTION = 1e-6
_NO_WEIGHT = 1e-10


class AdvancedMaps(NamedTuple):
    """The two matrices, and how much the whitening had to be damped (0: the paper's formula)."""

    source: torch.Tensor
    target: torch.Tensor
    ridge: float


def ridge_for(pairs: int, dimension: int) -> float:
    """How much of the mean eigenvalue is added before whitening, for few pairs in many dimensions.

    Whitening n pairs in d > n dimensions makes any two languages agree perfectly on the pairs, whatever
    they are. From two pairs a dimension on the formula is the paper's; below, damping grows until only
    the rotation is left.
    """
    return max(0.0, 2.0 * dimension / max(pairs, 1) - 1.0)


def whitening(rows: torch.Tensor, ridge: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(XᵀX + ridge)^-½ and (XᵀX + ridge)^½, with empty directions left out of the first."""
    values, vectors = torch.linalg.eigh(rows.T @ rows)
    values = values.clamp_min(0)
    roots = (values + ridge * values.mean()).sqrt()
    empty = roots <= _EMPTY_DIRECTION * roots.max().clamp_min(torch.finfo(roots.dtype).tiny)
    inverse = torch.where(empty, 0, 1 / torch.where(empty, 1, roots))
    return (vectors * inverse) @ vectors.T, (vectors * roots) @ vectors.T


def advanced_maps(x: Rows, y: Rows) -> AdvancedMaps:
    """The two maps from the vectors of translation pairs, row by row.

    With A = (XᵀX)^-½ on each side and P S Qᵀ the SVD of (XA_x)ᵀ(YA_y):
    W_x = A_x P S^½ Pᵀ A_x⁻¹ P and W_y = A_y Q S^½ Qᵀ A_y⁻¹ Q. Where the dimensions differ, P and Q have
    as many columns as the smaller one, which is the dimension of the common space. All in float64, on
    the device of the rows.
    """
    x, y = torch.as_tensor(x).double(), torch.as_tensor(y).double()
    ridge = ridge_for(len(x), max(x.shape[1], y.shape[1]))
    (white_x, color_x), (white_y, color_y) = whitening(x, ridge), whitening(y, ridge)
    p, s, q_transposed = torch.linalg.svd(white_x @ (x.T @ y) @ white_y, full_matrices=False)
    # Fewer pairs than dimensions leave directions without weight; what stands there is rounding.
    p, q_transposed = p * (s > _NO_WEIGHT * s[0]), q_transposed * (s > _NO_WEIGHT * s[0])[:, None]
    q, weights = q_transposed.T, s.sqrt()
    return AdvancedMaps(
        white_x @ (p * weights) @ (p.T @ color_x @ p), white_y @ (q * weights) @ (q.T @ color_y @ q), ridge
    )


@dataclass(frozen=True, kw_only=True)
class AdvancedReport(AlignerReport):
    """What an advanced mapping reports.

    Attributes:
        ridge: How much the whitening was damped (0: the paper's formula).
    """

    ridge: float = 0.0


@dataclass(kw_only=True, repr=False)
class AdvancedMapping(Aligner):
    """One closed-form step: the start of C1, and a strong baseline by itself.

    References:
        Li et al., ACL 2022, appendix A.1; Artetxe et al., AAAI 2018.
    """

    name = "advanced"
    summary = "whitening, rotation, re-weighting, de-whitening in closed form; seconds"

    report_: AdvancedReport = field(init=False, compare=False)

    def _fit(
        self,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        unit, device = Map([Unit()]), resolve_device(self.device)
        maps = advanced_maps(
            torch.from_numpy(unit(source.vectors[pairs[:, 0]])).to(device),
            torch.from_numpy(unit(target.vectors[pairs[:, 1]])).to(device),
        )
        if maps.ridge:
            progress.say(damping_sentence(len(pairs), maps.ridge))
        self.report_ = replace(self.report_, ridge=maps.ridge)
        self.source_map_ = Map([Unit(), Linear(maps.source.cpu().numpy()), Unit()])
        self.target_map_ = Map([Unit(), Linear(maps.target.cpu().numpy()), Unit()])


def damping_sentence(pairs: int, ridge: float) -> str:
    """What a user whose pairs are few should know."""
    return (
        f"{pairs} seed pairs are few for these dimensions: the whitening is damped "
        f"(ridge {ridge:.2f} of the mean eigenvalue)."
    )
