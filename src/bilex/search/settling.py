"""The exact k best among candidates whose keys lie in a file, with as few keys read as can be.

The k candidates of highest proposed score are scored exactly first. Any other is read only if its proposed
score and what that may be off reach the k-th best exact score so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bilex.core.compiling import njit
from bilex.search.kernels import dot, kth_largest

_compiled = njit(nogil=True, cache=True)


@_compiled
def settle(lists: Any, parts: int, off: Any, reach: Any, key_error: Any, scores: Any, keys: Any) -> None:
    """Write the exact k best of every query, best first; of equal ones the first keys.

    Args:
        lists: `kernels.Lists`; each part of the keys has a list for every query, one part after the other.
        parts: How many there are.
        off: For each query, how far a proposed score may be off whatever the key.
        reach: For each query, how far it may be off for each unit that a key moved when it was rounded.
        key_error: How far each key moved.
        scores: Exact scores, one query a row.
        keys: Their keys.
    """
    count, k = scores.shape
    for query in range(count):
        value, candidate = _joined(lists, parts, query, count)
        first = kth_largest(value, value.shape[0], k)
        for place in range(k):
            scores[query, place] = -np.inf
        for best in (True, False):
            for c in range(value.shape[0]):
                key = candidate[c]
                most = value[c] + off[query] + reach[query] * key_error[key]
                if (value[c] >= first) == best and most >= scores[query, k - 1]:
                    product = lists.scale * dot(lists.queries[query], lists.keys[key])
                    _insert(scores[query], keys[query], np.float32(product + lists.shift[key]), key)


@_compiled
def _insert(scores: Any, keys: Any, score: Any, key: int) -> None:
    """Put a key in its place among the best, if it has one."""
    place = scores.shape[0]
    while place > 0 and (score > scores[place - 1] or (score == scores[place - 1] and key < keys[place - 1])):
        place -= 1
    for later in range(scores.shape[0] - 1, place, -1):
        scores[later], keys[later] = scores[later - 1], keys[later - 1]
    if place < scores.shape[0]:
        scores[place], keys[place] = score, key


@_compiled
def _joined(lists: Any, parts: int, query: int, count: int) -> Any:
    """The proposed scores and keys of a query's candidates that reach the highest bar of its lists."""
    bar, total = lists.bar[query], 0
    for part in range(parts):
        bar = max(bar, lists.bar[part * count + query])
        total += lists.filled[part * count + query]
    value, candidate = np.empty(total, np.float32), np.empty(total, np.int32)
    kept = 0
    for part in range(parts):
        row = part * count + query
        for c in range(lists.filled[row]):
            if lists.value[row, c] >= bar:
                value[kept], candidate[kept] = lists.value[row, c], lists.candidate[row, c]
                kept += 1
    return value[:kept], candidate[:kept]
