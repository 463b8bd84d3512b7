"""Rounding rows to 8-bit numbers, and their products by compiled loops; nothing here needs torch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit

Floats = npt.NDArray[np.float32]
_TOGETHER = 4  # queries that share what was loaded of a key
_KEYS = 64  # keys that stay in the nearest cache for all queries


@lru_cache(maxsize=4)
def rotation(width: int) -> Floats:
    """A fixed rotation that mixes all coordinates: random signs, then a cosine transform.

    It leaves every product as it was and spreads out the few large coordinates that would make the steps of
    all others coarse.
    """
    signs = np.random.default_rng(width).choice([-1.0, 1.0], width)
    angles = np.pi / width * np.outer(np.arange(width) + 0.5, np.arange(width))
    cosines = np.cos(angles) * np.sqrt(2.0 / width)
    cosines[:, 0] = np.sqrt(1.0 / width)
    return np.asarray(signs[:, None] * cosines, np.float32)


def rotation_error(width: int) -> float:
    """What float32 may add to a row in the rotation, at worst, in lengths of the row."""
    return float(width**1.5 * 2.0**-24)


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def to_int8(
    rows: Any, limit: Any, low: Any, scale: Any, error: Any, norm: Any, start: int, stop: int
) -> None:
    """Round rows to whole numbers of at most `limit` times a scale per row, and measure the error."""
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


def rounded(rows: Floats) -> tuple[npt.NDArray[np.int8], Floats, npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows as 8-bit numbers, the scale of each, how far each moved, and its length."""
    count = len(rows)
    low, scale = np.empty(rows.shape, np.int8), np.empty(count, np.float32)
    error, norm = np.empty(count), np.empty(count)
    to_int8(rows, np.float32(127), low, scale, error, norm, 0, count)
    return low, scale, error, norm


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


@njit(nogil=True, cache=True)
def products(keys: Any, queries: Any, first: int, out: Any) -> None:
    """The products of all 8-bit queries with the 8-bit keys from `first` on, as int32, one query per row."""
    whole = queries.shape[0] - queries.shape[0] % _TOGETHER
    for start in range(0, out.shape[1], _KEYS):
        stop = min(start + _KEYS, out.shape[1])
        for q in range(0, whole, _TOGETHER):
            for c in range(start, stop):
                _four(keys, first + c, queries, q, out, c)
        for q in range(whole, queries.shape[0]):
            for c in range(start, stop):
                total = np.int32(0)
                for d in range(keys.shape[1]):
                    total = np.int32(total + np.int32(keys[first + c, d]) * np.int32(queries[q, d]))
                out[q, c] = total


@njit(nogil=True, cache=True)
def _four(keys: Any, key: int, queries: Any, q: int, out: Any, column: int) -> None:
    """The products of one key with four queries."""
    a, b, c, d = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
    for i in range(keys.shape[1]):
        value = np.int32(keys[key, i])
        a = np.int32(a + value * np.int32(queries[q, i]))
        b = np.int32(b + value * np.int32(queries[q + 1, i]))
        c = np.int32(c + value * np.int32(queries[q + 2, i]))
        d = np.int32(d + value * np.int32(queries[q + 3, i]))
    out[q, column], out[q + 1, column], out[q + 2, column], out[q + 3, column] = a, b, c, d
