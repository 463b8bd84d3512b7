"""Compiled loops for the CPU: scan blocks of proposed scores, keep candidates, re-score them exactly.

For each query row a *list* is kept: an unordered buffer of candidates (`candidate`, `value`), their number
(`filled`), and the bar below which a proposed score cannot belong to the row's k best (`bar`). Proposed
scores come in blocks whose cells are float32, the upper 16 bits of one (bfloat16, seen as uint16), or int32.
A score is its cell times the scale of its row, for int32 also times that of its column, plus the shift of
its key. Cells that are not float32 are coarse: where one comes within `coarse` of its row and `key_coarse` of
its key together of a bar, it is scored in float32 while both rows are still in the cache, and that counts.
The first block that a row meets gives it a bar; from then on a heap of its k best raises it with
every candidate. Every function releases the GIL, so that Python threads run them side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit, overload, types
from bilex.search.vector_loops import GROUP, lowest_bit, reaching

_compiled = njit(nogil=True, cache=True)


class Lists(NamedTuple):
    """Candidate lists of a set of queries, with what re-scoring them needs."""

    candidate: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    filled: npt.NDArray[np.int32]
    best: npt.NDArray[np.float32]
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


def read_only(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Rows as the compiled loops know them: one kind of array, so that the loops are compiled once."""
    view = np.ascontiguousarray(rows, np.float32).view(np.ndarray)[:]
    view.flags.writeable = False
    return view


def proposed_score(cell: Any, row_scale: Any, column_scale: Any) -> Any:
    """The score in a cell of a block, whatever the precision of its cells."""
    raise NotImplementedError


@overload(proposed_score, inline="always", strict=False)
def _proposed_score_overload(cell: Any, row_scale: Any, column_scale: Any) -> Any:
    if isinstance(cell, types.Integer) and cell.signed:
        return lambda cell, row_scale, column_scale: np.float32(cell) * row_scale * column_scale
    if isinstance(cell, types.Integer):
        return lambda cell, row_scale, column_scale: (
            np.uint32(np.uint32(cell) << np.uint32(16)).view(np.float32) * row_scale
        )
    return lambda cell, row_scale, column_scale: cell * row_scale


@njit(nogil=True, cache=True, fastmath=True)
def _float32_dot(queries: Any, row: int, keys: Any, key: int) -> Any:
    total = np.float32(0)
    for d in range(queries.shape[1]):
        total += queries[row, d] * keys[key, d]
    return total


def _values(
    values: Any, hits: Any, found: int, cells: Any, scale: Any, first_key: int, row: int, lists: Any
) -> Any:
    """Write the scores that count of a row's hits: the cells' own, or for coarse cells those of float32."""
    raise NotImplementedError


@overload(_values, inline="always", strict=False)
def _values_overload(
    values: Any, hits: Any, found: int, cells: Any, scale: Any, first_key: int, row: int, lists: Any
) -> Any:
    if isinstance(cells.dtype, types.Integer):
        return _float32_values
    return _cell_values


def _float32_values(
    values: Any, hits: Any, found: int, cells: Any, scale: Any, first_key: int, row: int, lists: Any
) -> None:
    for h in range(found):
        key = first_key + hits[h]
        product = _float32_dot(lists.queries, row, lists.keys, key)
        values[h] = np.float32(lists.scale) * product + lists.shift[key]


def _cell_values(
    values: Any, hits: Any, found: int, cells: Any, scale: Any, first_key: int, row: int, lists: Any
) -> None:
    for h in range(found):
        key = first_key + hits[h]
        values[h] = proposed_score(cells[hits[h]], scale, lists.key_scale[key]) + lists.shift[key]


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
def _sort(scores: Any, keys: Any) -> None:
    """Bring scores and their keys into order: falling score, then rising key (Shell's sort, in place).

    Lists are short, and numba takes seconds to compile numpy's sorts.
    """
    count = scores.shape[0]
    gap = count // 2
    while gap > 0:
        for at in range(gap, count):
            score, key, place = scores[at], keys[at], at
            while place >= gap and (
                scores[place - gap] < score or (scores[place - gap] == score and keys[place - gap] > key)
            ):
                scores[place], keys[place] = scores[place - gap], keys[place - gap]
                place -= gap
            scores[place], keys[place] = score, key
        gap //= 2


@_compiled
def _exact_order(lists: Any, row: int) -> Any:
    """Exact scores and keys of a row's candidates, by falling score, then rising key."""
    count = lists.filled[row]
    keys = np.empty(count, np.int32)
    scores = np.empty(count, np.float32)
    for c in range(count):
        key = lists.candidate[row, c]
        keys[c] = key
        scores[c] = np.float32(lists.scale * dot(lists.queries[row], lists.keys[key]) + lists.shift[key])
    _sort(scores, keys)
    return scores, keys


@_compiled
def _make_room(lists: Any, row: int) -> None:
    """Drop the candidates of a full row that lie under its bar.

    If that frees little (many near-ties), the candidates are re-scored exactly and the k best kept.
    """
    count, k = lists.filled[row], lists.k
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
        lists.bar[row] = max(lists.bar[row], scores[k - 1] - lists.slack[row])
        lists.filled[row] = k


@_compiled
def _raise_bar(best: Any, row: int, score: Any) -> None:
    """Put a score among a row's k best, a heap with the least first, in the place of the least."""
    k, place = best.shape[1], 0
    while True:
        child = 2 * place + 1
        if child >= k:
            break
        if child + 1 < k and best[row, child + 1] < best[row, child]:
            child += 1
        if best[row, child] >= score:
            break
        best[row, place] = best[row, child]
        place = child
    best[row, place] = score


@_compiled
def _add(
    candidate: Any, value: Any, filled: Any, best: Any, bar: Any, slack: Any, row: int, key: int, score: Any
) -> None:
    """Put a candidate on a row's list, which has room for it, and raise the row's bar."""
    place = filled[row]
    candidate[row, place] = key
    value[row, place] = score
    filled[row] = place + 1
    if score > best[row, 0]:
        _raise_bar(best, row, score)
        bar[row] = max(bar[row], best[row, 0] - slack[row])


@njit(nogil=True, cache=True, inline="always")
def _collect(
    hits: Any, block: Any, r: int, scale: Any, scales: Any, raised: Any, bar: Any, coarse: Any, bars: Any
) -> Any:
    """Write the columns of a row of a block whose score can reach the row's bar or their own; how many."""
    columns = block.shape[1]
    whole = columns - columns % GROUP
    found: Any = 0
    for start in range(0, whole, GROUP):
        bits = reaching(block, r, start, scale, scales, raised, bar, coarse, bars)
        while bits != 0:
            hits[found] = start + lowest_bit(bits)
            found += 1
            bits &= bits - np.uint64(1)
    for c in range(whole, columns):
        score = proposed_score(block[r, c], scale, scales[c]) + raised[c]
        hits[found] = c
        found += np.int32(score >= bar) | np.int32(score + coarse >= bars[c])
    return found


@_compiled
def _groups(k: int, count: int) -> int:
    """In how many groups to take the largest of each: enough that few of the k best share one."""
    return min(count, 8 * k)


@_compiled
def _first_row_bars(block: Any, first_row: int, first_key: int, lists: Any) -> None:
    """Give every row that has no bar yet one that its k-th best score is sure to reach.

    The columns fall into groups. The k-th largest of the groups' best scores, each less what it may be off,
    is no more than the k-th best of all keys, and takes one pass.
    """
    rows, columns = block.shape
    if columns < lists.k:
        return
    groups = _groups(lists.k, columns)
    best = np.empty(groups, np.float32)
    scales = lists.key_scale[first_key : first_key + columns]
    lowered = lists.shift[first_key : first_key + columns] - lists.key_coarse[first_key : first_key + columns]
    for r in range(rows):
        row = first_row + r
        if lists.bar[row] > -np.inf:
            continue
        for g in range(groups):
            best[g] = -np.inf
        for start in range(0, columns, groups):
            for g in range(min(groups, columns - start)):
                best[g] = max(
                    best[g],
                    proposed_score(block[r, start + g], lists.query_scale[row], scales[start + g])
                    + lowered[start + g],
                )
        lists.bar[row] = kth_largest(best, groups, lists.k) - lists.coarse[row] - lists.slack[row]


@_compiled
def _any_without(bar: Any, first: int, count: int) -> bool:
    """Whether one of some queries has no bar yet."""
    without = 0
    for query in range(first, first + count):
        without += int(bar[query] == -np.inf)
    return without > 0


@_compiled
def _first_column_bars(block: Any, first_row: int, first_key: int, forward: Any, backward: Any) -> None:
    """As `_first_row_bars`, for the columns of a block as queries."""
    rows, columns = block.shape
    if rows < backward.k or not _any_without(backward.bar, first_key, columns):
        return
    groups = _groups(backward.k, rows)
    best = np.empty((groups, columns), np.float32)
    for g in range(groups):
        for c in range(columns):
            best[g, c] = -np.inf
    scales = forward.key_scale[first_key : first_key + columns]
    for r in range(rows):
        row = first_row + r
        scale, lowered = forward.query_scale[row], -forward.coarse[row]
        line = best[r % groups]
        for c in range(columns):
            line[c] = max(line[c], proposed_score(block[r, c], scale, scales[c]) + lowered)
    column = np.empty(groups, np.float32)
    for c in range(columns):
        key = first_key + c
        for g in range(groups):
            column[g] = best[g, c]
        bar = kth_largest(column, groups, backward.k) - forward.key_coarse[key] - backward.slack[key]
        backward.bar[key] = max(backward.bar[key], bar)


@_compiled
def scan_one_way(block: Any, first_row: int, first_key: int, lists: Any) -> None:
    """Add to each row's list the keys of a block whose proposed score reaches the row's bar."""
    rows, columns = block.shape
    _first_row_bars(block, first_row, first_key, lists)
    hits, values = np.empty(columns + 1, np.int32), np.empty(columns, np.float32)
    scales = lists.key_scale[first_key : first_key + columns]
    raised = lists.shift[first_key : first_key + columns] + lists.key_coarse[first_key : first_key + columns]
    none = np.empty(columns, np.float32)
    for c in range(columns):
        none[c] = np.inf
    candidate, value, filled = lists.candidate, lists.value, lists.filled
    best, bar, slack = lists.best, lists.bar, lists.slack
    for r in range(rows):
        row, cells = first_row + r, block[r]
        scale = lists.query_scale[row]
        found = _collect(
            hits, block, r, scale, scales, raised, bar[row] - lists.coarse[row], np.float32(0), none
        )
        _values(values, hits, found, cells, scale, first_key, row, lists)
        for h in range(found):
            if values[h] >= bar[row]:
                if filled[row] == candidate.shape[1]:
                    _make_room(lists, row)
                _add(candidate, value, filled, best, bar, slack, row, first_key + hits[h], values[h])


@_compiled
def scan_both_ways(block: Any, first_row: int, first_key: int, forward: Any, backward: Any) -> None:
    """Serve both directions with one block: rows ask for columns, and columns for rows."""
    rows, columns = block.shape
    _first_row_bars(block, first_row, first_key, forward)
    _first_column_bars(block, first_row, first_key, forward, backward)
    hits, values = np.empty(columns + 1, np.int32), np.empty(columns, np.float32)
    candidate, value, filled = forward.candidate, forward.value, forward.filled
    best, bar, slack = forward.best, forward.bar, forward.slack
    back_candidate, back_value, back_filled = backward.candidate, backward.value, backward.filled
    back_best, back_bar, back_slack = backward.best, backward.bar, backward.slack
    bars = back_bar[first_key : first_key + columns]
    scales = forward.key_scale[first_key : first_key + columns]
    off = forward.key_coarse[first_key : first_key + columns]
    for r in range(rows):
        row, cells = first_row + r, block[r]
        scale, coarse = forward.query_scale[row], forward.coarse[row]
        found = _collect(hits, block, r, scale, scales, off, bar[row] - coarse, coarse, bars)
        _values(values, hits, found, cells, scale, first_key, row, forward)
        for h in range(found):
            key = first_key + hits[h]
            if values[h] >= bar[row]:
                if filled[row] == candidate.shape[1]:
                    _make_room(forward, row)
                _add(candidate, value, filled, best, bar, slack, row, key, values[h])
            if values[h] >= back_bar[key]:
                if back_filled[key] == back_candidate.shape[1]:
                    _make_room(backward, key)
                _add(
                    back_candidate,
                    back_value,
                    back_filled,
                    back_best,
                    back_bar,
                    back_slack,
                    key,
                    row,
                    values[h],
                )


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
