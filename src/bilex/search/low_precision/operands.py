"""Rows as they are multiplied, 8-bit or float32, how far 8-bit products are off, and where they are fast.

Only what multiplies with torch imports it: a server does not.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit
from bilex.core.machine import processor
from bilex.search.plain import FLOAT32_ROUNDING, Doubles, Floats, check_finite
from bilex.search.threads import in_threads
from bilex.vectors.stored import slices

if TYPE_CHECKING:
    import torch

_AT_A_TIME = 8192
_ROWS_PER_TASK = 1024
_FEW_ROWS = 32  # that are rotated without a BLAS, whose threads would keep spinning
_PADDING = 64  # whole cache lines are multiplied faster
_FEWEST_ROWS = 512  # with fewer, rounding the other side costs more than it saves
_CHECKED = 320
# The time of an 8-bit product over that of a float32 product, by the largest number whose sums are right.
_TIME = {127: 0.25, 63: 0.65}
# Wider bounds make a search score more keys in float32: a query costs about as much as a float32 product with
# these many keys more, and each neighbour with these many (research/performance.md).
_KEYS_PER_QUERY, _KEYS_PER_NEIGHBOUR = 2_000, 60
_JOBS = ("search", "matching", "tuning", "encoding")  # the last two are those of a language model
_used: set[str] = set()


class Operand(NamedTuple):
    """One side of a product."""

    rows: npt.NDArray[Any]  # as they are multiplied; times `scale` they are close to the true rows
    scale: Floats  # one factor per row
    error: Doubles  # per row, the distance between the true row and `rows` times `scale`
    norm: Doubles  # per row, the length of `rows` times `scale`
    longest: float  # no true row is longer

    @property
    def exact(self) -> bool:
        """Whether these are the true rows."""
        return self.rows.dtype == np.float32


def int8_pays(queries: int, keys: int, k: int) -> bool:
    """Whether a search of this size is faster with 8-bit proposals on this processor."""
    if precision("search") != "int8" or min(queries, keys) < _FEWEST_ROWS:
        return False
    extra = _KEYS_PER_QUERY + _KEYS_PER_NEIGHBOUR * k
    return extra < (1 - _TIME[int8_limit()]) * keys


def precision(job: str) -> str:
    """The lowest precision of a job on this processor; the job counts as run by this process from now on."""
    _used.add(job)
    return _precision(job)


def precisions() -> dict[str, str]:
    """The lowest precision of each job on this processor."""
    return {job: _precision(job) for job in _JOBS}


def used() -> dict[str, str]:
    """The precision of each job that this process has run so far."""
    return {job: _precision(job) for job in _JOBS if job in _used}


def _precision(job: str) -> str:
    if job in ("search", "matching"):
        return "int8" if int8_limit() else "float32"
    return "bfloat16" if processor().features & {"avx512_bf16", "amx_bf16"} else "float32"


@lru_cache(maxsize=1)
def int8_limit() -> int:
    """The largest 8-bit number whose products torch sums right and fast on this processor; 0 if none.

    Processors without VNNI add two products in 16 bits, which is right where numbers stay within 63.
    """
    if not processor().features & {"avx2", "avx512_vnni"}:
        return 0
    import torch

    for limit in _TIME:
        rows = torch.full((32, _CHECKED), limit, dtype=torch.int8)
        rows[::2] = -limit
        rows[:, ::3] *= -1
        try:
            found = multiply(rows, rows, torch.empty(32, 32, dtype=torch.int32))
        except (AttributeError, RuntimeError, TypeError):
            return 0
        if torch.equal(found.double(), rows.double() @ rows.double().T):
            return limit
    return 0


def multiply(rows: torch.Tensor, others: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """The products of all rows with all others; 8-bit ones are summed in 32 bits."""
    import torch

    if rows.dtype == torch.int8:
        return torch._int_mm(rows, others.T, out=out)
    return torch.mm(rows, others.T, out=out)


def operand(
    rows: Floats, *, int8: bool, rotate: bool = True, limit: int | None = None, first: int = 0
) -> Operand:
    """Rows as they are multiplied; float32 rows are not copied.

    With `int8` they are rotated (both sides of a product, or neither) and rounded to integers of at most
    `limit` (None for what torch sums right). An error about a row that is not finite counts from `first`.
    """
    count, width = rows.shape
    scale, error, norm = np.ones(count, np.float32), np.zeros(count), np.empty(count)
    low = np.zeros((count, -(-width // _PADDING) * _PADDING), np.int8) if int8 else rows
    largest = np.float32(limit or int8_limit() or min(_TIME)) if int8 else 0
    for at in slices(count, _AT_A_TIME):
        part = np.asarray(rows[at])
        if not int8:
            norm[at] = np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64))
            continue
        if rotate:
            by = _rotation(width)
            part = part @ by if len(part) > _FEW_ROWS else _rotated_few(part, by)
        round_rows = partial(_to_int8, part, largest, low[at], scale[at], error[at], norm[at])
        in_threads(len(part), round_rows, _ROWS_PER_TASK)
    if int8 and rotate:  # float32 may add this to a row in the rotation, at worst
        error += width**1.5 * 2.0**-24 * (norm + error)
    check_finite(np.isfinite(norm), first)
    error, norm = error * (1 + 1e-9), norm * (1 + 1e-9)
    return Operand(low, scale, error, norm, float((norm + error).max(initial=0.0)))


@lru_cache(maxsize=4)
def _rotation(width: int) -> Floats:
    """A fixed rotation that mixes all coordinates: random signs, then a cosine transform.

    It leaves every product as it was and spreads out the few large coordinates that would make the steps of
    all others coarse.
    """
    signs = np.random.default_rng(width).choice([-1.0, 1.0], width)
    angles = np.pi / width * np.outer(np.arange(width) + 0.5, np.arange(width))
    cosines = np.cos(angles) * np.sqrt(2.0 / width)
    cosines[:, 0] = np.sqrt(1.0 / width)
    return np.asarray(signs[:, None] * cosines, np.float32)


@njit(nogil=True, cache=True, fastmath={"contract"})
def _rotated_few(rows: Any, by: Any) -> Any:
    out = np.zeros(rows.shape, np.float32)
    for i in range(rows.shape[0]):
        total = out[i]
        for d in range(rows.shape[1]):
            value, row = rows[i, d], by[d]
            for c in range(row.shape[0]):
                total[c] += value * row[c]
    return out


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def _to_int8(
    rows: Any, limit: Any, low: Any, scale: Any, error: Any, norm: Any, start: int, stop: int
) -> None:
    """Round rows to integers of at most `limit` times a scale per row, and measure the error."""
    for i in range(start, stop):
        row, out = rows[i], low[i]
        largest = np.float32(0)
        for d in range(row.shape[0]):
            largest = max(largest, abs(row[d]))
        scale[i] = largest / limit
        inverse = limit / largest if largest > 0 else np.float32(0)
        lost, length = 0.0, 0.0
        for d in range(row.shape[0]):
            value = min(max(np.rint(row[d] * inverse), -limit), limit)
            out[d] = np.int8(value)
            kept = np.float64(value) * np.float64(scale[i])
            off = np.float64(row[d]) - kept
            lost += off * off
            length += kept * kept
        error[i] = np.sqrt(lost)
        norm[i] = np.sqrt(length)


def float32_error(own: Operand, other: Operand, largest_shift: float = 0.0) -> Floats:
    """Per row of `own`, the largest error of a score that float32 computes from the true rows."""
    largest = (own.norm + own.error) * other.longest
    bound = FLOAT32_ROUNDING * ((own.rows.shape[1] + 4) * largest + largest_shift)
    return np.asarray(bound * (1 + 1e-6), np.float32)


def quantization_error(own: Operand, other: Operand, largest_shift: float = 0.0) -> tuple[Floats, Floats]:
    """The largest error of a proposed score: the sum of a number of its row and one of its column.

    With x̃, ỹ the rounded rows, |x·y − x̃·ỹ| ≤ ‖x − x̃‖·‖y‖ + ‖x̃‖·‖y − ỹ‖.
    """
    if own.exact:
        return np.zeros(len(own.norm), np.float32), np.zeros(len(other.norm), np.float32)
    of_own = own.error * other.longest * (1 + 1e-6)
    of_other = other.error * own.norm.max(initial=0.0) * (1 + 1e-6)
    rounding = 2 * float32_error(own, other, largest_shift)
    return np.asarray(of_own + rounding, np.float32), np.asarray(of_other, np.float32)
