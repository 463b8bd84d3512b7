"""The best keys of each query so far, in compiled code that releases the interpreter's lock."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit

COLUMNS = 512  # scores of a row that are compared with the same threshold


class Heaps(NamedTuple):
    """A binary heap per query with the worst key first, whose score is the query's threshold."""

    score: npt.NDArray[np.float32]
    key: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]

    @classmethod
    def empty(cls, queries: int, size: int) -> Heaps:
        """Heaps that any score enters."""
        lowest = np.full((queries, size), -np.inf, np.float32)
        return cls(lowest, np.zeros((queries, size), np.int32), np.full(queries, -np.inf, np.float32))


@njit(nogil=True, cache=True)
def push(scores: Any, keys: Any, thresholds: Any, query: int, key: int, score: Any) -> None:
    """Put a key into a query's heap in place of the worst one."""
    size, place = scores.shape[1], 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and scores[query, child + 1] < scores[query, child]:
            child += 1
        if scores[query, child] >= score:
            break
        scores[query, place], keys[query, place] = scores[query, child], keys[query, child]
        place = child
    scores[query, place], keys[query, place] = score, key
    thresholds[query] = scores[query, 0]


@njit(nogil=True, cache=True)
def flagged(flags: Any, places: Any) -> Any:
    """Write the places of the flags (bytes, of which eight are read at once) that are set; how many."""
    words = flags.view(np.uint64)
    found: Any = 0
    for word in range(words.shape[0]):
        if words[word] != 0:
            for place in range(8 * word, 8 * word + 8):
                places[found] = place
                found += np.int64(flags[place] != 0)
    return found


@njit(nogil=True, cache=True)
def new_flags(count: int) -> Any:
    """Flags for so many scores, and places for them."""
    size = -(-count // 8) * 8
    return np.zeros(size, np.uint8), np.empty(size + 1, np.int64)


@njit(nogil=True, cache=True, fastmath=True)
def float32_dot(queries: Any, row: int, keys: Any, key: int) -> Any:
    """The product of a query and a key in float32."""
    total = np.float32(0)
    for d in range(queries.shape[1]):
        total += queries[row, d] * keys[key, d]
    return total


@njit(nogil=True, cache=True)
def scan(
    block: Any,
    first_row: int,
    first_key: int,
    row_scale: Any,
    key_scale: Any,
    row_error: Any,
    key_error: Any,
    shift: Any,
    queries: Any,
    keys: Any,
    heap_scores: Any,
    heap_keys: Any,
    thresholds: Any,
    exact: bool,
) -> None:
    """Put the scores of a block that exceed the threshold of their row into its heap.

    A score that is not exact counts with its largest error, and is computed again in float32.
    """
    for first in range(0, block.shape[1], COLUMNS):
        width = min(COLUMNS, block.shape[1] - first)
        start, stop = first_key + first, first_key + first + width
        scales, raised = key_scale[start:stop], shift[start:stop] + key_error[start:stop]
        flags, hits = new_flags(width)
        for r in range(block.shape[0]):
            row, cells = first_row + r, block[r, first : first + width]
            _flag(cells, row_scale[row], scales, raised, thresholds[row] - row_error[row], flags)
            for h in range(flagged(flags, hits)):
                key = start + hits[h]
                score = np.float32(cells[hits[h]]) if exact else float32_dot(queries, row, keys, key)
                if score + shift[key] > thresholds[row]:
                    push(heap_scores, heap_keys, thresholds, row, key, score + shift[key])


@njit(nogil=True, cache=True)
def _flag(cells: Any, scale: Any, scales: Any, raised: Any, threshold: Any, flags: Any) -> None:
    """Say which scores of a row may exceed its threshold; compiled to vectors."""
    for c in range(cells.shape[0]):
        flags[c] = np.uint8(np.float32(cells[c]) * scale * scales[c] + raised[c] >= threshold)


@njit(nogil=True, cache=True, fastmath=True)
def exact_scores(candidates: Any, queries: Any, keys: Any, shift: Any, out: Any) -> None:
    """The scores of each query's candidates, summed in float64."""
    for row in range(candidates.shape[0]):
        for c in range(candidates.shape[1]):
            key = candidates[row, c]
            total = 0.0
            for d in range(queries.shape[1]):
                total += np.float64(queries[row, d]) * np.float64(keys[key, d])
            out[row, c] = np.float32(total + np.float64(shift[key]))
