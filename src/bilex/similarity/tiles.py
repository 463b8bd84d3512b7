"""Compiled loops for keys of 8 bits: products with a few queries, and the candidates that these leave.

A *tile* holds `LANES` keys, one coordinate after the other: the same coordinate of all its keys lies side by
side, so that the innermost loop runs over keys and needs no instruction that only some processors have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bilex.compiling import njit
from bilex.similarity.kernels import kth_largest

LANES = 256
STEP = 4  # coordinates that are added up before a sum is written back
_TOGETHER = 4  # queries that share what was loaded of the keys
_GROUP = 16  # queries whose sums stay in the nearest cache together
_CHUNK = 64
_REFRESHED = 32  # candidates after which a bar is raised: a high bar saves more than raising it costs
_contracted = njit(nogil=True, cache=True, fastmath={"contract"})


@_contracted
def products(tiles: Any, queries: Any, first: int, last: int, out: Any) -> None:
    """The products of all queries with the keys of the tiles from `first` to `last`.

    Args:
        tiles: 8-bit keys, of shape (tiles, coordinates, LANES); coordinates are a multiple of `STEP`.
        queries: Float32 queries of that width.
        first: The first tile.
        last: The tile after the last.
        out: Float32, of shape (queries, LANES times the number of these tiles).
    """
    count, width = queries.shape
    sums = np.empty((_GROUP, LANES), np.float32)
    keys = np.empty((STEP, LANES), np.float32)
    for tile in range(first, last):
        at = (tile - first) * LANES
        for start in range(0, count, _GROUP):
            size = min(_GROUP, count - start)
            whole = size - size % _TOGETHER
            sums[:size] = np.float32(0)
            for d in range(0, width, STEP):
                for step in range(STEP):
                    row, into = tiles[tile, d + step], keys[step]
                    for lane in range(LANES):
                        into[lane] = np.float32(row[lane])
                for q in range(0, whole, _TOGETHER):
                    _add_four(sums[q : q + 4], queries[start + q : start + q + 4, d : d + STEP], keys)
                for q in range(whole, size):
                    _add(sums[q], queries[start + q, d : d + STEP], keys)
            out[start : start + size, at : at + LANES] = sums[:size]


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


@njit(nogil=True, cache=True, fastmath=True)
def _dot(query: Any, key: Any) -> Any:
    """A float32 query times an 8-bit key."""
    total = np.float32(0)
    for d in range(query.shape[0]):
        total += query[d] * np.float32(key[d])
    return total


@njit(nogil=True, cache=True, inline="always")
def _any_reaches(cells: Any, bar: Any, scale: Any, scales: Any, shift: Any) -> Any:
    hits = np.int32(0)
    for c in range(_CHUNK):
        hits += np.int32(np.float32(cells[c]) * scale * scales[c] + shift[c] >= bar)
    return hits != 0


@njit(nogil=True, cache=True)
def scan(block: Any, first_key: int, keys: Any, queries: Any, found: Any) -> None:
    """Add to each query's list the keys of a block that may be among its k best.

    Args:
        block: Proposed products, one query a row: float32, or int32 where the queries were rounded too.
        first_key: The key of the first column.
        keys: `RoundedKeys` as a tuple of arrays.
        queries: `PreparedQueries` likewise.
        found: `Candidates` likewise.
    """
    rows, columns = block.shape
    scales = keys.scale[first_key : first_key + columns]
    shift = queries.shift[first_key : first_key + columns]
    for q in range(rows):
        cells, scale = block[q], queries.cell_scale[q]
        for start in range(0, columns, _CHUNK):
            stop = min(start + _CHUNK, columns)
            low = found.bar[q] - queries.coarse[q]
            if stop - start == _CHUNK and not _any_reaches(
                cells[start:stop], low, scale, scales[start:stop], shift[start:stop]
            ):
                continue
            for c in range(start, stop):
                score = np.float32(cells[c]) * scale * scales[c] + shift[c]
                if score < found.bar[q] - queries.coarse[q]:
                    continue
                if queries.coarse[q] > 0:
                    product = _dot(queries.rotated[q], keys.rows[first_key + c])
                    score = product * queries.scale * scales[c] + shift[c]
                if score >= found.bar[q]:
                    _add_candidate(found, queries, q, first_key + c, score)


@njit(nogil=True, cache=True, inline="always")
def _add_candidate(found: Any, queries: Any, q: int, key: int, score: Any) -> None:
    place = found.filled[q]
    if place == found.key.shape[1] or (place >= queries.k and place % _REFRESHED == _REFRESHED - 1):
        _make_room(found, queries, q)
        place = found.filled[q]
        if place == found.key.shape[1]:
            found.overflow[q] = True
            return
    found.key[q, place] = key
    found.value[q, place] = score
    found.filled[q] = place + 1


@njit(nogil=True, cache=True)
def _make_room(found: Any, queries: Any, q: int) -> None:
    """Raise a query's bar to its k-th best less what scores may be off, and drop what lies under it."""
    count = found.filled[q]
    bar = max(found.bar[q], kth_largest(found.value[q], count, queries.k) - queries.slack[q])
    kept = 0
    for c in range(count):
        if found.value[q, c] >= bar:
            found.key[q, kept] = found.key[q, c]
            found.value[q, kept] = found.value[q, c]
            kept += 1
    found.bar[q], found.filled[q] = bar, kept
