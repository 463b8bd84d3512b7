"""Vectors of very large or very small numbers, and those that hold no numbers at all.

Lengths are computed in float32, where the square of 1e30 is infinite and that of 1e-30 is zero. A vector of
such numbers is divided by its largest one first, so that it has a direction like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.vectors.stored import FloatMatrix, row_blocks

if TYPE_CHECKING:
    from bilex.vectors.core import WordVectors

SHORTEST, LONGEST = 1e-15, 1e15  # beyond these lengths float32 sums of squares are not to be trusted


def largest_numbers(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The largest absolute value of each row; NaN for a row that holds NaN."""
    if not rows.shape[1]:
        return np.zeros(len(rows), np.float32)
    return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))


def unit_rows(rows: FloatMatrix) -> FloatMatrix:
    """Rows divided by their lengths, however large or small their numbers are; zero rows stay zero."""
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    extreme = np.flatnonzero((norms < SHORTEST) | (norms > LONGEST))
    if len(extreme):
        largest = largest_numbers(rows[extreme])[:, None]
        rows = rows.copy()
        rows[extreme] /= np.where(largest == 0, 1, largest)
        norms[extreme] = np.linalg.norm(rows[extreme], axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms == 0, 1, norms), np.float32)


def check_finite(words: WordVectors) -> None:
    """Refuse vectors that hold NaN or infinity."""
    first = 0
    for block in row_blocks(words.vectors):
        finite = np.isfinite(largest_numbers(block))
        if not finite.all():
            word = words.index_to_key[first + int(np.argmin(finite))]
            raise BilexError(f"the vector of '{word}' holds NaN or infinity; leave the word out.")
        first += len(block)
