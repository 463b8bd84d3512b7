"""Compiled loops that round rows to a lower precision and measure what is lost."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit


@lru_cache(maxsize=4)
def rotation(width: int) -> npt.NDArray[np.float32]:
    """A fixed rotation that mixes all coordinates: random signs, then a cosine transform.

    It leaves every product of two rows as it was, and spreads out the few large coordinates that would
    make the steps of all others coarse when rows become 8-bit integers.
    """
    signs = np.random.default_rng(width).choice([-1.0, 1.0], width)
    angles = np.pi / width * np.outer(np.arange(width) + 0.5, np.arange(width))
    cosines = np.cos(angles) * np.sqrt(2.0 / width)
    cosines[:, 0] = np.sqrt(1.0 / width)
    made: npt.NDArray[np.float32] = (signs[:, None] * cosines).astype(np.float32)
    return made


@njit(nogil=True, cache=True, fastmath={"contract"})
def rotate(rows: Any, by: Any, out: Any) -> None:
    """A few rows times a rotation; a BLAS would keep its threads spinning after so small a product."""
    for i in range(rows.shape[0]):
        total = out[i]
        total[:] = np.float32(0)
        for d in range(rows.shape[1]):
            value, row = rows[i, d], by[d]
            for c in range(row.shape[0]):
                total[c] += value * row[c]


def rotation_error(width: int) -> float:
    """What float32 may add to a row in the rotation, at worst, in lengths of the row."""
    return float(width**1.5 * 2.0**-24)


@njit(nogil=True, cache=True, fastmath=True)
def to_bfloat16(rows: Any, low: Any, error: Any, norm: Any, start: int, stop: int) -> None:
    """Round float32 rows (seen as uint32) to bfloat16 (uint16), to nearest even, and measure the loss."""
    for i in range(start, stop):
        lost, length = 0.0, 0.0
        row, out = rows[i], low[i]
        for d in range(row.shape[0]):
            bits = row[d]
            kept = np.uint32(
                np.uint32(bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
                >> np.uint32(16)
            )
            out[d] = np.uint16(kept)
            value = np.uint32(kept << np.uint32(16)).view(np.float32)
            off = np.float64(value - np.uint32(bits).view(np.float32))
            lost += off * off
            length += np.float64(value) * np.float64(value)
        error[i] = np.sqrt(lost)
        norm[i] = np.sqrt(length)


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def to_int8(
    rows: Any, limit: Any, low: Any, scale: Any, error: Any, norm: Any, start: int, stop: int
) -> None:
    """Round float32 rows to whole numbers of at most `limit` times a scale a row, and measure the loss.

    Columns of `low` beyond the width of the rows stay as they are.
    """
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
