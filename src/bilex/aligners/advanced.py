"""Advanced mapping: whiten, rotate, re-weight, de-whiten (the paper's appendix), of two languages or more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch

from bilex.aligners.base import Aligner, AlignerReport, Folder, Pairs
from bilex.aligners.maps import Map, Unit
from bilex.aligners.procrustes import common_rotations
from bilex.core.device import resolve_device
from bilex.core.errors import BilexError
from bilex.core.languages import LanguagePair
from bilex.core.progress import SILENT, Progress
from bilex.vectors import WordVectors

# A direction of the seed words counts as empty below this fraction of the strongest one: float32 vectors
# hold nothing but rounding there, and whitening would blow that up.
_EMPTY_DIRECTION = 1e-6
_NO_WEIGHT = 1e-10
_ROTATION_STEPS, _TOLERANCE = 100, 1e-6

Matrix = npt.NDArray[np.float64]
Rows = torch.Tensor | npt.NDArray[np.float32]


class AdvancedMaps(NamedTuple):
    """The two matrices, and the ridge as a multiple of the mean eigenvalue (0: the paper's formula)."""

    source: torch.Tensor
    target: torch.Tensor
    ridge: float


def ridge_for(pairs: int, dimension: int, damping: float = 0.0) -> float:
    """The share of the mean eigenvalue that is added before whitening, for few pairs in many dimensions.

    Whitening n pairs in d > n dimensions makes any two languages agree perfectly on the pairs, whatever they
    are. With at least two pairs per dimension the formula is the paper's; with fewer, the ridge grows until
    only the rotation is left. It is at least `damping` times d / n, which helps weak vectors.
    """
    per_pair = dimension / max(pairs, 1)
    return max(0.0, 2.0 * per_pair - 1.0, damping * per_pair)


def whitening(rows: torch.Tensor, ridge: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(XᵀX + ridge·m)^-½ and (XᵀX + ridge·m)^½, m being the mean eigenvalue.

    Empty directions are left out of the first.
    """
    values, vectors = torch.linalg.eigh(rows.T @ rows)
    values = values.clamp_min(0)
    roots = (values + ridge * values.mean()).sqrt()
    empty = roots <= _EMPTY_DIRECTION * roots.max().clamp_min(torch.finfo(roots.dtype).tiny)
    inverse = torch.where(empty, 0, 1 / torch.where(empty, 1, roots))
    return (vectors * inverse) @ vectors.T, (vectors * roots) @ vectors.T


def advanced_maps(x: Rows, y: Rows, progress: Progress = SILENT, *, damping: float = 0.0) -> AdvancedMaps:
    """The two maps from the vectors of translation pairs, row by row.

    With A = (XᵀX)^-½ on each side and P S Qᵀ the SVD of (XA_x)ᵀ(YA_y):
    W_x = A_x P S^½ Pᵀ A_x⁻¹ P and W_y = A_y Q S^½ Qᵀ A_y⁻¹ Q. Where the dimensions differ, P and Q have
    as many columns as the smaller one, which is the dimension of the common space. All in float64, on
    the device of the rows. `progress` receives a message about the ridge of few pairs; `damping` is that of
    `ridge_for`.
    """
    x, y = torch.as_tensor(x).double(), torch.as_tensor(y).double()
    dimension = max(x.shape[1], y.shape[1])
    ridge = ridge_for(len(x), dimension, damping)
    if ridge_for(len(x), dimension):
        progress.log(
            f"{len(x)} word pairs are few for these dimensions: {ridge:.2f} times the mean eigenvalue is "
            "added before whitening."
        )
    (white_x, color_x), (white_y, color_y) = whitening(x, ridge), whitening(y, ridge)
    p, s, q_transposed = torch.linalg.svd(white_x @ (x.T @ y) @ white_y, full_matrices=False)
    # Fewer pairs than dimensions leave directions without weight; what stands there is rounding.
    p, q_transposed = p * (s > _NO_WEIGHT * s[0]), q_transposed * (s > _NO_WEIGHT * s[0])[:, None]
    q, weights = q_transposed.T, s.sqrt()
    return AdvancedMaps(
        white_x @ (p * weights) @ (p.T @ color_x @ p), white_y @ (q * weights) @ (q.T @ color_y @ q), ridge
    )


def joint_maps(
    rows: Mapping[str, Any], pairs: Mapping[LanguagePair, Pairs], damping: float = 0.0
) -> dict[str, Matrix]:
    """The advanced mapping of any number of languages: one matrix each, from the pairs of all together.

    Each language is whitened over its rows in all pairs, all are rotated onto each other at once (generalised
    Procrustes), directions are re-weighted by how well the languages agree on them, and the whitening is
    undone. For two languages this is `advanced_maps`. `rows` are the vocabularies, which give `Rows` by
    index.
    """
    pairs = {languages: found for languages, found in pairs.items() if len(found)}
    check_connected(list(rows), pairs)
    sides: dict[LanguagePair, tuple[Matrix, Matrix]] = {}
    used: dict[str, list[Matrix]] = {language: [] for language in rows}
    for (a, b), found in pairs.items():
        x, y = (torch.as_tensor(rows[code][found[:, n]]).double().cpu() for n, code in enumerate((a, b)))
        sides[a, b] = x.numpy(), y.numpy()
        used[a].append(sides[a, b][0])
        used[b].append(sides[a, b][1])
    count = {language: sum(map(len, parts)) for language, parts in used.items()}
    white, color = {}, {}
    for language, parts in used.items():
        stacked = torch.from_numpy(np.concatenate(parts))
        off, back = whitening(stacked, ridge_for(len(stacked), stacked.shape[1], damping))
        white[language], color[language] = off.numpy(), back.numpy()
    agreement = {(a, b): white[a] @ (x.T @ y) @ white[b] for (a, b), (x, y) in sides.items()}
    rotations = rotate_together(list(rows), agreement)
    # A language is whitened over the pairs that it has with all others, so that an agreement over some of
    # them is scaled to what whitening over these alone would have given.
    total = sum(
        np.sqrt(count[a] * count[b]) * (rotations[a].T @ matrix @ rotations[b])
        for (a, b), matrix in agreement.items()
    ) / sum(map(len, pairs.values()))
    values, directions = scipy.linalg.eigh((total + total.T) / 2)
    order = np.argsort(-values, kind="stable")
    weights = np.clip(values[order], 0, None)
    directions = directions[:, order] * (weights > _NO_WEIGHT * weights[0])
    maps = {}
    for language in rows:
        basis = rotations[language] @ directions
        maps[language] = white[language] @ (basis * np.sqrt(weights)) @ (basis.T @ color[language] @ basis)
    return maps


def check_connected(languages: Sequence[str], links: Iterable[LanguagePair]) -> None:
    """Make sure that every language can be reached from the first."""
    reached = set(connected_order(languages, links))
    apart = [language for language in languages if language not in reached]
    if apart:
        raise BilexError(
            f"no pairs connect '{apart[0]}' with '{languages[0]}', directly or through other languages; add "
            f"a dictionary of {apart[0]} and one of {', '.join(sorted(reached))}."
        )


def connected_order(languages: Sequence[str], links: Iterable[LanguagePair]) -> list[str]:
    """The languages that can be reached from the first, nearest first."""
    neighbours: dict[str, list[str]] = {language: [] for language in languages}
    for a, b in links:
        neighbours[a].append(b)
        neighbours[b].append(a)
    order = [languages[0]]
    for language in order:
        order += [other for other in dict.fromkeys(neighbours[language]) if other not in order]
    return order


def rotate_together(names: Sequence[str], agreement: Mapping[LanguagePair, Matrix]) -> dict[str, Matrix]:
    """Generalised Procrustes: rotations R for which the sum over pairs of tr(Rₐᵀ Mₐᵦ Rᵦ) is largest.

    Each rotation in turn is set to the best one for the others as they are, which never lowers the sum, until
    the sum grows by less than a millionth.
    """
    towards: dict[str, dict[str, Matrix]] = {name: {} for name in names}
    for (a, b), matrix in agreement.items():
        towards[a][b] = towards[a].get(b, 0) + matrix
        towards[b][a] = towards[b].get(a, 0) + matrix.T
    rotations: dict[str, Matrix] = {names[0]: np.eye(len(next(iter(agreement.values()))))}

    def rotate(name: str) -> None:
        others = [m @ rotations[other] for other, m in towards[name].items() if other in rotations]
        u, _, v = common_rotations(np.sum(others, axis=0))
        rotations[name] = u @ v.T

    for name in connected_order(names, agreement)[1:]:
        rotate(name)
    before = -np.inf
    for _ in range(_ROTATION_STEPS if len(names) > 2 else 0):
        for name in names:
            rotate(name)
        total = sum(float(np.sum(rotations[a] * (m @ rotations[b]))) for (a, b), m in agreement.items())
        if total - before <= _TOLERANCE * abs(total):
            break
        before = total
    return rotations


@dataclass(frozen=True, kw_only=True)
class AdvancedReport(AlignerReport):
    """The report of an advanced mapping.

    Attributes:
        ridge: The ridge as a multiple of the mean eigenvalue (0: the paper's formula).
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
        self, source: WordVectors, target: WordVectors, pairs: Pairs, progress: Progress, checkpoint: Folder
    ) -> None:
        unit, device = Map([Unit()]), resolve_device(self.device)
        maps = advanced_maps(
            torch.from_numpy(unit(source.vectors[pairs[:, 0]])).to(device),
            torch.from_numpy(unit(target.vectors[pairs[:, 1]])).to(device),
            progress,
        )
        self.report_ = replace(self.report_, ridge=maps.ridge)
        self.source_map_, self.target_map_ = Map.linear(maps.source.cpu()), Map.linear(maps.target.cpu())
