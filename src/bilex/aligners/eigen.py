"""The largest eigenvalues of a big symmetric matrix, with their eigenvectors."""

from __future__ import annotations

from typing import NamedTuple

import torch

_SMALL = 2000


class Eigenpairs(NamedTuple):
    """Eigenvalues, largest first, and a column of `vectors` for each."""

    values: torch.Tensor
    vectors: torch.Tensor


def top_eigenpairs(
    matrix: torch.Tensor, start: torch.Tensor, count: int, *, tolerance: float = 1e-3, most_rounds: int = 40
) -> Eigenpairs:
    """The `count` algebraically largest eigenpairs of a symmetric matrix.

    A small matrix is decomposed as a whole. For a large one a block of vectors is multiplied by the
    matrix again and again, with the Rayleigh-Ritz procedure in between, until the sought eigenvalues
    stand still.

    Args:
        matrix: n × n, float32.
        start: n × m vectors with m > `count` that roughly span what is sought.
        count: How many; fewer come back if the matrix is smaller.
        tolerance: The largest change of an eigenvalue in a round, relative to that eigenvalue.
        most_rounds: Multiplications at most.
    """
    count = min(count, len(matrix))
    if len(matrix) <= max(_SMALL, start.shape[1]):
        values, vectors = torch.linalg.eigh(matrix.double())
        return Eigenpairs(values[-count:].flip(0).float(), vectors[:, -count:].flip(1).float())
    basis, _ = torch.linalg.qr(start)
    before = torch.zeros(count, device=matrix.device)
    for _ in range(most_rounds):
        image = matrix @ basis
        small = basis.T @ image
        values, turn = torch.linalg.eigh((small + small.T).double() / 2)
        values, turn = values.flip(0).float(), turn.flip(1).float()
        found = Eigenpairs(values[:count], basis @ turn[:, :count])
        if bool(((found.values - before).abs() <= tolerance * found.values.abs()).all()):
            break
        before = found.values
        basis, _ = torch.linalg.qr(image @ turn)
    return found
