"""Products of 8-bit keys with float32 queries by a compiled loop that any processor runs well.

A *tile* holds `LANES` keys, one coordinate after the other: the same coordinate of all its keys lies side by
side, so that the innermost loop runs over keys and needs no instruction that only some processors have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit

LANES = 256
STEP = 4  # coordinates that are added up before a sum is written back
_TOGETHER = 4  # queries that share what was loaded of the keys
_GROUP = 16  # queries whose sums stay in the nearest cache together


def empty(keys: int, width: int) -> npt.NDArray[np.int8]:
    """Tiles for so many keys of so many coordinates, all zero."""
    return np.zeros((-(-keys // LANES), -(-width // STEP) * STEP, LANES), np.int8)


def put(low: npt.NDArray[np.int8], tiles: npt.NDArray[np.int8], first: int) -> None:
    """Write 8-bit keys, one per row, into the tiles, from key `first` on, which begins a tile."""
    for start in range(0, len(low), LANES):
        part = low[start : start + LANES]
        tiles[(first + start) // LANES, : part.shape[1], : len(part)] = part.T


def filled_up(queries: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Queries filled up with zeros to whole steps."""
    filled = np.zeros((len(queries), -(-queries.shape[1] // STEP) * STEP), np.float32)
    filled[:, : queries.shape[1]] = queries
    return filled


@njit(nogil=True, cache=True, fastmath={"contract"})
def products(tiles: Any, queries: Any, scale: Any, first: int, out: Any) -> None:
    """The products of queries with keys, each times the key's scale.

    Args:
        tiles: All keys.
        queries: Float32, as `filled_up` makes them.
        scale: One factor a key.
        first: The tile of the first column.
        out: Float32, one query a row; as many columns as keys are wanted.
    """
    count, columns = out.shape
    sums = np.empty((_GROUP, LANES), np.float32)
    keys = np.empty((STEP, LANES), np.float32)
    for at in range(0, columns, LANES):
        tile = first + at // LANES
        for start in range(0, count, _GROUP):
            size = min(_GROUP, count - start)
            whole = size - size % _TOGETHER
            sums[:size] = np.float32(0)
            for d in range(0, queries.shape[1], STEP):
                for step in range(STEP):
                    row, into = tiles[tile, d + step], keys[step]
                    for lane in range(LANES):
                        into[lane] = np.float32(row[lane])
                for q in range(0, whole, _TOGETHER):
                    _add_four(sums[q : q + 4], queries[start + q : start + q + 4, d : d + STEP], keys)
                for q in range(whole, size):
                    _add(sums[q], queries[start + q, d : d + STEP], keys)
            for q in range(size):
                for lane in range(min(LANES, columns - at)):
                    out[start + q, at + lane] = sums[q, lane] * scale[tile * LANES + lane]


@njit(nogil=True, cache=True, fastmath={"contract"}, inline="always")
def _add(total: Any, query: Any, keys: Any) -> None:
    a, b, c, d = query[0], query[1], query[2], query[3]
    for lane in range(LANES):
        w, x, y, z = keys[0, lane], keys[1, lane], keys[2, lane], keys[3, lane]
        total[lane] = total[lane] + a * w + b * x + c * y + d * z


@njit(nogil=True, cache=True, fastmath={"contract"}, inline="always")
def _add_four(total: Any, q: Any, keys: Any) -> None:
    a, b, c, d = q[0, 0], q[0, 1], q[0, 2], q[0, 3]
    e, f, g, h = q[1, 0], q[1, 1], q[1, 2], q[1, 3]
    i, j, k, m = q[2, 0], q[2, 1], q[2, 2], q[2, 3]
    n, o, p, r = q[3, 0], q[3, 1], q[3, 2], q[3, 3]
    for lane in range(LANES):
        w, x, y, z = keys[0, lane], keys[1, lane], keys[2, lane], keys[3, lane]
        total[0, lane] = total[0, lane] + a * w + b * x + c * y + d * z
        total[1, lane] = total[1, lane] + e * w + f * x + g * y + h * z
        total[2, lane] = total[2, lane] + i * w + j * x + k * y + m * z
        total[3, lane] = total[3, lane] + n * w + o * x + p * y + r * z
