"""Rows in the precision in which a product proposes scores, and how far a proposal can be from the truth.

The rounding errors of both sides are measured row by row, so Cauchy-Schwarz bounds how far a proposed score
can lie from the true one, whatever the precision. Rows that become 8-bit integers are rotated first: both
sides by one fixed rotation, which leaves every product as it was and spreads out the few large coordinates
that would otherwise make the steps of all others coarse.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bilex.core.errors import BilexError
from bilex.search import arithmetic, rounding
from bilex.search.search import Floats, placed
from bilex.search.threads import in_threads

Doubles = npt.NDArray[np.float64]

_CPU = torch.device("cpu")
_FLOAT32_ROUNDING = 2.0**-23
_AT_A_TIME = 8192
_ROWS_PER_TASK = 1024
_PADDING = 64  # numbers; rows in low precision are padded to whole cache lines, which multiplies faster
_FEWEST_ROWS = 512  # with fewer rows on a side, rounding the other side costs more than it saves


class Proposer(NamedTuple):
    """One side of the product: rows in low precision, and how far they are from the truth.

    Attributes:
        rows: The rows as they are multiplied; times `scale`, they are about the true ones.
        scale: One factor a row.
        error: Per row, the Euclidean distance between the true row and `rows` times `scale`.
        norm: Per row, the Euclidean length of `rows` times `scale`.
    """

    rows: torch.Tensor
    scale: Floats
    error: Doubles
    norm: Doubles

    def times(self, factor: float) -> Proposer:
        """The same rows, each times a factor."""
        return Proposer(self.rows, self.scale * np.float32(factor), self.error * factor, self.norm * factor)


def precision_for(queries: int, keys: int, k: int, directions: int = 1) -> torch.dtype:
    """In which precision a search of this size proposes its scores on this CPU."""
    if min(queries, keys) < _FEWEST_ROWS:
        return torch.float32
    return arithmetic.fastest_search(keys, k, directions)


def proposer(rows: Any, dtype: torch.dtype, *, rotate: bool = True) -> Proposer:
    """Round rows to `dtype` and measure what was lost.

    Args:
        rows: Rows as a float32 array, a tensor, or anything that gives such an array when it is sliced.
        dtype: float32, bfloat16 or int8. Rows that are float32 already are not copied.
        rotate: Whether rows that become int8 are rotated first; both sides of a product must agree.

    Raises:
        BilexError: A row is not finite.
    """
    count, width = rows.shape
    padded = width if dtype == torch.float32 else -(-width // _PADDING) * _PADDING
    contiguous = dtype == torch.float32 and rows.dtype in (np.float32, torch.float32) and _in_order(rows)
    low = placed(rows, _CPU) if contiguous else torch.zeros(count, padded, dtype=dtype)
    scale, error, norm = np.ones(count, np.float32), np.zeros(count), np.empty(count)
    for start in range(0, count, _AT_A_TIME):
        stop = min(start + _AT_A_TIME, count)
        part = placed(rows[start:stop], _CPU)
        at = slice(start, stop)
        if dtype == torch.int8:
            _round_to_int8(part, low[at], scale[at], error[at], norm[at], rotate)
        elif dtype == torch.bfloat16:
            _round_to_bfloat16(part, low[at], error[at], norm[at])
        else:
            if not contiguous:
                low[at] = part
            norm[at] = torch.linalg.vector_norm(part, dim=1, dtype=torch.float64).numpy()
    if not np.isfinite(norm).all():
        row = int(np.flatnonzero(~np.isfinite(norm))[0])
        raise BilexError(f"row {row} of the vectors holds NaN or infinite values; remove that word.")
    return Proposer(low, scale, error * (1 + 1e-9), norm * (1 + 1e-9))


def float32_slack(own: Proposer, other: Proposer, largest_shift: float = 0.0) -> Floats:
    """Per row of `own`, twice the largest error of a score that float32 computes from the true rows."""
    if not len(other.norm):
        return np.zeros(len(own.norm), np.float32)
    largest = (own.norm + own.error) * (other.norm.max() + other.error.max())
    bound = _FLOAT32_ROUNDING * ((own.rows.shape[1] + 4) * largest + largest_shift)
    return np.asarray(2.0 * bound * (1 + 1e-6), np.float32)


def coarse_parts(own: Proposer, other: Proposer) -> tuple[Floats, Floats]:
    """How far a product is off at most through the rounding of a row of `own`, and through that of `other`.

    The error of the product of two rows is at most the sum of their parts, less what summing in float32 does.
    That of `own` includes what happens to a product that comes out in bfloat16.
    """
    if not len(own.norm) or not len(other.norm):
        return np.zeros(len(own.norm), np.float32), np.zeros(len(other.norm), np.float32)
    of_own = own.error * (other.norm.max() + other.error.max())
    if own.rows.dtype == torch.bfloat16:
        of_own += bfloat16_rounding(_largest_score(own, other))
    of_other = other.error * own.norm.max()
    return np.asarray(of_own * (1 + 1e-6), np.float32), np.asarray(of_other * (1 + 1e-6), np.float32)


def slack(own: Proposer, other: Proposer, largest_shift: float = 0.0) -> Floats:
    """Per row of `own`, twice the largest error that a proposed score with a row of `other` can have.

    Args:
        own: The rows that ask.
        other: The rows that answer.
        largest_shift: The largest size of what is added to a score.
    """
    if not len(other.norm):
        return np.zeros(len(own.norm), np.float32)
    largest_norm, largest_error = other.norm.max(), other.error.max()
    bound = own.error * (largest_norm + largest_error) + own.norm * largest_error
    largest_score = _largest_score(own, other)
    bound += _FLOAT32_ROUNDING * ((own.rows.shape[1] + 4) * largest_score + largest_shift)
    if own.rows.dtype == torch.bfloat16:
        bound += bfloat16_rounding(largest_score)
    return np.asarray(2.0 * bound * (1 + 1e-6), np.float32)


def _largest_score(own: Proposer, other: Proposer) -> Doubles:
    """Per row of `own`, the largest size that a sum of products with a row of `other` can have."""
    rounding_up = 1 + (own.rows.shape[1] + 4) * _FLOAT32_ROUNDING
    return np.asarray(own.norm * other.norm.max() * rounding_up, np.float64)


def bfloat16_rounding(largest: Doubles) -> Doubles:
    """The furthest that rounding to bfloat16 moves a number of at most this size.

    With p the power of two at or under `largest`: numbers under p move by at most p/512, those from p on
    by at most p/256 and no further than back to p.
    """
    power = np.ldexp(1.0, np.frexp(largest)[1] - 1)
    return np.asarray(np.maximum(power / 512, np.minimum(largest - power, power / 256)), np.float64)


def _round_to_int8(
    part: torch.Tensor, low: torch.Tensor, scale: Floats, error: Doubles, norm: Doubles, rotate: bool
) -> None:
    width = part.shape[1]
    rows = (part @ torch.from_numpy(rounding.rotation(width)) if rotate else part.contiguous()).numpy()
    limit, out = np.float32(arithmetic.int8_limit()), low.numpy()
    in_threads(
        len(part),
        lambda start, stop: rounding.to_int8(rows, limit, out, scale, error, norm, start, stop),
        _ROWS_PER_TASK,
    )
    if rotate:
        error += rounding.rotation_error(width) * (norm + error)


def _round_to_bfloat16(part: torch.Tensor, low: torch.Tensor, error: Doubles, norm: Doubles) -> None:
    arrays = (part.contiguous().view(torch.uint32).numpy(), low.view(torch.uint16).numpy(), error, norm)
    in_threads(len(part), lambda start, stop: rounding.to_bfloat16(*arrays, start, stop), _ROWS_PER_TASK)


def _in_order(rows: Any) -> bool:
    """Whether the rows lie in memory one after the other."""
    return bool(rows.is_contiguous() if isinstance(rows, torch.Tensor) else rows.flags.c_contiguous)
