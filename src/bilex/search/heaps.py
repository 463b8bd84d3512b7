"""The best keys of each query so far, in compiled code that releases the interpreter's lock."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit


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
def kth_largest(values: Any, count: int, k: int) -> Any:
    """The k-th largest of the first `count` values, by quickselect on a copy."""
    work = values[:count].copy()
    low, high, want = 0, count - 1, k - 1
    while low < high:
        pivot = work[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while work[i] > pivot:
                i += 1
            while work[j] < pivot:
                j -= 1
            if i <= j:
                work[i], work[j] = work[j], work[i]
                i += 1
                j -= 1
        if want <= j:
            high = j
        elif want >= i:
            low = i
        else:
            break
    return work[want]
