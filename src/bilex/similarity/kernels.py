"""Compiled loops for the CPU: scan blocks of proposed scores, keep candidates, re-score them exactly.

For each query row a *list* is kept: an unordered buffer of candidates (`candidate`, `value`), their number
(`filled`), and the bar below which a proposed score cannot belong to the row's k best (`bar`). Proposed
scores come in blocks whose cells are float32, the upper 16 bits of one (bfloat16, seen as uint16), or int32.
A score is its cell times the scale of its row, for int32 also times that of its column, plus the shift of
its key. An int32 cell is coarse: where it comes within `coarse` of its row and `key_coarse` of its key
together of a bar, it is scored in float32 while both rows are still in the cache, and that score counts.
Every function releases the GIL, so that Python threads run them side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.compiling import njit, overload, types

_CHUNK = 64
_PART = 16
_compiled = njit(nogil=True, cache=True)


class Lists(NamedTuple):
    """Candidate lists of a set of queries, with what re-scoring them needs."""

    candidate: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    filled: npt.NDArray[np.int32]
    bar: npt.NDArray[np.float32]
    slack: npt.NDArray[np.float32]
    coarse: npt.NDArray[np.float32]
    key_coarse: npt.NDArray[np.float32]
    query_scale: npt.NDArray[np.float32]
    key_scale: npt.NDArray[np.float32]
    queries: npt.NDArray[np.float32]
    keys: npt.NDArray[np.float32]
    shift: npt.NDArray[np.float32]
    scale: float
    k: int


def _score(cell: Any, row_scale: Any, column_scale: Any) -> Any:
    """The score in a cell of a block."""
    raise NotImplementedError


@overload(_score, inline="always", strict=False)
def _score_overload(cell: Any, row_scale: Any, column_scale: Any) -> Any:
    if isinstance(cell, types.Integer) and cell.signed:
        return lambda cell, row_scale, column_scale: np.float32(cell) * row_scale * column_scale
    if isinstance(cell, types.Integer):
        return lambda cell, row_scale, column_scale: (
            np.uint32(np.uint32(cell) << np.uint32(16)).view(np.float32) * row_scale
        )
    return lambda cell, row_scale, column_scale: cell * row_scale


@njit(nogil=True, cache=True, fastmath=True)
def _float32_dot(x: Any, y: Any) -> Any:
    total = np.float32(0)
    for d in range(x.shape[0]):
        total += x[d] * y[d]
    return total


def _refined(cell: Any, score: Any, lists: Any, row: int, key: int) -> Any:
    """The score that counts: that of the cell, or for a coarse cell that of float32."""
    raise NotImplementedError


@overload(_refined, inline="always", strict=False)
def _refined_overload(cell: Any, score: Any, lists: Any, row: int, key: int) -> Any:
    if isinstance(cell, types.Integer) and cell.signed:
        return lambda cell, score, lists, row, key: (
            np.float32(lists.scale) * _float32_dot(lists.queries[row], lists.keys[key]) + lists.shift[key]
        )
    return lambda cell, score, lists, row, key: score


@_compiled
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


@njit(nogil=True, cache=True, fastmath=True)
def dot(x: Any, y: Any) -> float:
    """Dot product of two float32 rows, summed in float64."""
    total = 0.0
    for d in range(x.shape[0]):
        total += np.float64(x[d]) * np.float64(y[d])
    return total


@_compiled
def _exact_order(lists: Any, row: int) -> Any:
    """Exact scores and keys of a row's candidates, by falling score, then rising key."""
    count = lists.filled[row]
    index = np.sort(lists.candidate[row, :count])
    scores = np.empty(count, np.float32)
    for c in range(count):
        j = index[c]
        scores[c] = np.float32(lists.scale * dot(lists.queries[row], lists.keys[j]) + lists.shift[j])
    order = np.argsort(-scores, kind="mergesort")
    return scores[order], index[order]


@_compiled
def _make_room(lists: Any, row: int) -> None:
    """Raise a full row's bar to its k-th best and drop what now lies under it.

    If that frees little (many near-ties), the candidates are re-scored exactly and the k best kept.
    """
    count, k, slack = lists.filled[row], lists.k, lists.slack[row]
    lists.bar[row] = max(lists.bar[row], kth_largest(lists.value[row], count, k) - slack)
    kept = 0
    for c in range(count):
        if lists.value[row, c] >= lists.bar[row]:
            lists.candidate[row, kept] = lists.candidate[row, c]
            lists.value[row, kept] = lists.value[row, c]
            kept += 1
    lists.filled[row] = kept
    capacity = lists.candidate.shape[1]
    if kept > capacity - (capacity - k) // 4:
        scores, index = _exact_order(lists, row)
        for c in range(k):
            lists.candidate[row, c] = index[c]
            lists.value[row, c] = scores[c]
        lists.bar[row] = max(lists.bar[row], scores[k - 1] - slack)
        lists.filled[row] = k


@njit(nogil=True, cache=True, inline="always")
def _add(index: Any, value: Any, count: Any, row: int, key: int, score: float) -> None:
    """Put one candidate on a row's list, which has room for it."""
    place = count[row]
    index[row, place] = key
    value[row, place] = score
    count[row] = place + 1


@njit(nogil=True, cache=True, inline="always")
def _any_reaches(cells: Any, length: int, bar: Any, scale: Any, scales: Any, shift: Any) -> Any:
    """Whether one of `length` scores reaches the bar; the loop's length is a constant, so it vectorises."""
    hits = np.int32(0)
    for c in range(length):
        hits += np.int32(_score(cells[c], scale, scales[c]) + shift[c] >= bar)
    return hits != 0


@njit(nogil=True, cache=True, inline="always")
def _any_reaches_either(
    cells: Any, length: int, bar: Any, scale: Any, scales: Any, bars: Any, coarse: Any, coarses: Any
) -> Any:
    """Whether one of `length` scores can reach its row's bar or its column's, with what both may be off."""
    hits = np.int32(0)
    for c in range(length):
        score = _score(cells[c], scale, scales[c]) + coarses[c]
        hits |= np.int32(score >= bar) | np.int32(score + coarse >= bars[c])
    return hits != 0


@_compiled
def raise_bars(block: Any, first_row: int, shift: Any, lists: Any) -> None:
    """Raise each row's bar to its k-th best score among a sample of keys, whose shifts are given.

    The k-th best of all keys is no lower, so that nothing is lost, and fewer scores reach the bar.
    """
    rows, columns = block.shape
    scores = np.empty(columns, np.float32)
    for r in range(rows):
        row = first_row + r
        for c in range(columns):
            scores[c] = np.float32(lists.scale) * block[r, c] + shift[c]
        bar = kth_largest(scores, columns, lists.k) - lists.slack[row]
        lists.bar[row] = max(lists.bar[row], bar)


@_compiled
def scan_one_way(block: Any, first_row: int, first_key: int, lists: Any) -> None:
    """Add to each row's list the keys of a block whose proposed score reaches the row's bar."""
    rows, columns = block.shape
    index, value, count, bar = lists.candidate, lists.value, lists.filled, lists.bar
    scales = lists.key_scale[first_key : first_key + columns]
    shift = lists.shift[first_key : first_key + columns]
    raised = shift + lists.key_coarse[first_key : first_key + columns]
    for r in range(rows):
        row, cells = first_row + r, block[r]
        scale, coarse = lists.query_scale[row], lists.coarse[row]
        for start in range(0, columns, _CHUNK):
            stop = start + _CHUNK
            if stop <= columns and not _any_reaches(
                cells[start:stop], _CHUNK, bar[row] - coarse, scale, scales[start:stop], raised[start:stop]
            ):
                continue
            for first in range(start, min(stop, columns), _PART):
                last = min(first + _PART, columns)
                if last - first == _PART and not _any_reaches(
                    cells[first:last], _PART, bar[row] - coarse, scale, scales[first:last], raised[first:last]
                ):
                    continue
                for c in range(first, last):
                    score = _score(cells[c], scale, scales[c])
                    if score + raised[c] < bar[row] - coarse:
                        continue
                    score += shift[c]
                    score = _refined(cells[c], score, lists, row, first_key + c)
                    if score >= bar[row]:
                        if count[row] == index.shape[1]:
                            _make_room(lists, row)
                        _add(index, value, count, row, first_key + c, score)


@_compiled
def scan_both_ways(  # noqa: C901 - one compiled loop; calls with lists cost more than the branches
    block: Any, first_row: int, first_key: int, forward: Any, backward: Any
) -> None:
    """Serve both directions with one block: rows ask for columns, and columns for rows."""
    rows, columns = block.shape
    index, value, count, bar = forward.candidate, forward.value, forward.filled, forward.bar
    back_index, back_value, back_count = backward.candidate, backward.value, backward.filled
    bars = backward.bar[first_key : first_key + columns]
    scales = forward.key_scale[first_key : first_key + columns]
    off = forward.key_coarse[first_key : first_key + columns]
    for r in range(rows):
        row, cells = first_row + r, block[r]
        scale, coarse = forward.query_scale[row], forward.coarse[row]
        for start in range(0, columns, _CHUNK):
            stop = start + _CHUNK
            if stop <= columns and not _any_reaches_either(
                cells[start:stop],
                _CHUNK,
                bar[row] - coarse,
                scale,
                scales[start:stop],
                bars[start:stop],
                coarse,
                off[start:stop],
            ):
                continue
            for first in range(start, min(stop, columns), _PART):
                last = min(first + _PART, columns)
                if last - first == _PART and not _any_reaches_either(
                    cells[first:last],
                    _PART,
                    bar[row] - coarse,
                    scale,
                    scales[first:last],
                    bars[first:last],
                    coarse,
                    off[first:last],
                ):
                    continue
                for c in range(first, last):
                    score = _score(cells[c], scale, scales[c])
                    if score + coarse + off[c] < min(bar[row], bars[c]):
                        continue
                    score = _refined(cells[c], score, forward, row, first_key + c)
                    if score >= bar[row]:
                        if count[row] == index.shape[1]:
                            _make_room(forward, row)
                        _add(index, value, count, row, first_key + c, score)
                    if score >= bars[c]:
                        if back_count[first_key + c] == back_index.shape[1]:
                            _make_room(backward, first_key + c)
                        _add(back_index, back_value, back_count, first_key + c, row, score)


@_compiled
def settle(lists: Any, start: int, stop: int, scores: Any, keys: Any) -> None:
    """Write the exact k best of the rows from `start` to `stop`, best first."""
    for row in range(start, stop):
        if lists.filled[row] > lists.k:
            bar = kth_largest(lists.value[row], lists.filled[row], lists.k) - lists.slack[row]
            kept = 0
            for c in range(lists.filled[row]):
                if lists.value[row, c] >= bar:
                    lists.candidate[row, kept] = lists.candidate[row, c]
                    kept += 1
            lists.filled[row] = kept
        best, index = _exact_order(lists, row)
        for c in range(lists.k):
            scores[row, c] = best[c]
            keys[row, c] = index[c]
