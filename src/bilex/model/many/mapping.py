"""One map a language into a space that all share: the advanced mapping of two languages, for any number.

Each language is whitened, all are rotated onto each other at once (generalised Procrustes over the pairs that
there are), directions are re-weighted by how well the languages agree on them, and the whitening is undone.
For two languages this is the closed form of `bilex.aligners.advanced`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch

from bilex.aligners.advanced import ridge_for, whitening
from bilex.aligners.base import Pairs
from bilex.aligners.procrustes import common_rotations
from bilex.core.errors import BilexError

Matrix = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Two = tuple[str, str]

_ROTATION_STEPS = 100
_SETTLED = 1e-6
_NO_WEIGHT = 1e-10


@dataclass(frozen=True)
class _Whitened:
    """What whitening takes off the vectors of a language, and puts back."""

    off: Matrix
    back: Matrix


def joint_maps(rows: Mapping[str, Floats], pairs: Mapping[Two, Pairs]) -> dict[str, Matrix]:
    """A matrix for each language, learned from the pairs of all languages together.

    Args:
        rows: Unit rows of each language, all of one dimension.
        pairs: For two languages, rows of translations of each other.

    Raises:
        BilexError: The pairs do not connect all languages.
    """
    languages = list(rows)
    check_connected(languages, [two for two, found in pairs.items() if len(found)])
    whitened = {language: _whiten(language, rows[language], pairs) for language in languages}
    agreement = {
        (a, b): whitened[a].off
        @ (rows[a][found[:, 0]].astype(np.float64).T @ rows[b][found[:, 1]].astype(np.float64))
        @ whitened[b].off
        for (a, b), found in pairs.items()
        if len(found)
    }
    rotations = rotate_together(languages, agreement)
    directions, weights = _common_directions(rotations, agreement, pairs)
    maps = {}
    for language in languages:
        basis = rotations[language] @ directions
        off, back = whitened[language].off, whitened[language].back
        maps[language] = off @ (basis * np.sqrt(weights)) @ (basis.T @ back @ basis)
    return maps


def check_connected(languages: Sequence[str], links: Iterable[Two]) -> None:
    """Make sure that every language can be reached from the first.

    Raises:
        BilexError: One cannot.
    """
    reached = set(connected_order(languages, links))
    apart = [language for language in languages if language not in reached]
    if apart:
        raise BilexError(
            f"no pairs connect '{apart[0]}' with '{languages[0]}', directly or through other languages; add "
            f"a dictionary of {apart[0]} and one of {', '.join(sorted(reached))}."
        )


def connected_order(languages: Sequence[str], links: Iterable[Two]) -> list[str]:
    """The languages that can be reached from the first, nearest first."""
    neighbours: dict[str, list[str]] = {language: [] for language in languages}
    for a, b in links:
        neighbours[a].append(b)
        neighbours[b].append(a)
    order = [languages[0]]
    for language in order:
        order += [other for other in dict.fromkeys(neighbours[language]) if other not in order]
    return order


def rotate_together(names: Sequence[str], agreement: Mapping[Two, Matrix]) -> dict[str, Matrix]:
    """Generalised Procrustes: rotations R for which the sum over pairs of tr(Rₐᵀ Mₐᵦ Rᵦ) is largest.

    Each rotation in turn is set to the best one for the others as they are, which never lowers the sum, until
    the sum has settled.

    Args:
        names: Those that are rotated; the first defines the space at the start.
        agreement: The cross-covariance M of pairs of them; it connects all.
    """
    towards: dict[str, dict[str, Matrix]] = {name: {} for name in names}
    for (a, b), matrix in agreement.items():
        towards[a][b] = towards[a].get(b, 0) + matrix
        towards[b][a] = towards[b].get(a, 0) + matrix.T
    dimension = len(next(iter(agreement.values())))
    rotations: dict[str, Matrix] = {names[0]: np.eye(dimension)}
    for name in connected_order(names, agreement)[1:]:
        rotations[name] = _nearest_rotation(_pull(towards[name], rotations))
    before = -np.inf
    for _ in range(_ROTATION_STEPS if len(names) > 2 else 0):
        for name in names:
            rotations[name] = _nearest_rotation(_pull(towards[name], rotations))
        total = sum(float(np.sum(rotations[a] * (m @ rotations[b]))) for (a, b), m in agreement.items())
        if total - before <= _SETTLED * abs(total):
            break
        before = total
    return rotations


def _pull(towards: Mapping[str, Matrix], rotations: Mapping[str, Matrix]) -> Matrix:
    total: Matrix = np.sum(
        [matrix @ rotations[other] for other, matrix in towards.items() if other in rotations], axis=0
    )
    return total


def _nearest_rotation(matrix: Matrix) -> Matrix:
    u, _, v = common_rotations(matrix)
    return u @ v.T


def _whiten(language: str, rows: Floats, pairs: Mapping[Two, Pairs]) -> _Whitened:
    """The whitening of all rows of a language that stand in pairs, repeats counted."""
    used = np.concatenate([found[:, two.index(language)] for two, found in pairs.items() if language in two])
    vectors = torch.from_numpy(np.asarray(rows[used], np.float64))
    off, back = whitening(vectors, ridge_for(len(used), rows.shape[1]))
    return _Whitened(off.numpy(), back.numpy())


def _common_directions(
    rotations: Mapping[str, Matrix], agreement: Mapping[Two, Matrix], pairs: Mapping[Two, Pairs]
) -> tuple[Matrix, Matrix]:
    """The directions of the common space, and how well the languages agree on each (a mean correlation).

    A language is whitened over the pairs that it has with all others, so that an agreement over some of them
    is scaled to what whitening over these alone would have given.
    """
    used: dict[str, int] = {}
    for two, found in pairs.items():
        for language in two:
            used[language] = used.get(language, 0) + len(found)
    total = np.zeros_like(next(iter(agreement.values())))
    for (a, b), matrix in agreement.items():
        total += np.sqrt(used[a] * used[b]) * (rotations[a].T @ matrix @ rotations[b])
    total /= sum(len(pairs[two]) for two in agreement)
    values, directions = scipy.linalg.eigh((total + total.T) / 2)
    order = np.argsort(-values, kind="stable")
    values, directions = np.clip(values[order], 0, None), directions[:, order]
    return directions * (values > _NO_WEIGHT * values[0]), values
