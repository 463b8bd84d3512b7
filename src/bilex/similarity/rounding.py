"""Compiled loops that round rows to a lower precision and measure what is lost."""

from __future__ import annotations

from typing import Any

import numpy as np

from bilex.compiling import njit


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
