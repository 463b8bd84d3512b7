"""Compiled loops behind `bilex.similarity.stochastic`: scan blocks of scores for both directions at once.

A block holds the scores of some source rows with all target rows. `survey` finds, sixteen scores at a
time, the best score of each column of the block, and in each row the best of every group of columns;
`highest` and `match` then look closely only at the few groups and columns that can change anything, the
best groups first. Scores are float32 or the upper 16 bits of one (bfloat16, seen as uint16). Every
function releases the GIL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bilex.similarity.kernels import _score

LOWEST = np.float32(-1e30)
_compiled = njit(nogil=True, cache=True, fastmath=True)


@_compiled
def survey(block: Any, row_penalty: Any, column_penalty: Any, group_best: Any, column_best: Any) -> None:
    """Find the best score − penalty of each group of columns in each row, and of each column.

    Group g of w groups holds the columns g, g + w, g + 2w, ...: maxima over them read memory in order.

    Args:
        block: Scores.
        row_penalty: Of the block's rows; taken off where candidates for a column are compared.
        column_penalty: Of all columns; taken off where candidates for a row are compared.
        group_best: Where the maxima go, one line a row, one column a group.
        column_best: Where the maxima of the columns go.
    """
    columns, groups = block.shape[1], group_best.shape[1]
    group_best[:] = LOWEST
    column_best[:] = LOWEST
    for row in range(block.shape[0]):
        scores, own, best = block[row], row_penalty[row], group_best[row]
        for column in range(columns):
            score = _score(scores[column]) - own
            column_best[column] = score if score > column_best[column] else column_best[column]
        for first in range(0, columns, groups):
            part, penalty = scores[first : first + groups], column_penalty[first : first + groups]
            for group in range(part.shape[0]):
                score = _score(part[group]) - penalty[group]
                best[group] = score if score > best[group] else best[group]


@njit(nogil=True, cache=True, inline="always")
def _place_of_highest(values: Any) -> Any:
    place = 0
    for i in range(values.shape[0]):
        if values[i] > values[place]:
            place = i
    return place


@_compiled
def _insert(best: Any, score: float) -> None:
    """Put `score` into a rising list in place of its smallest member."""
    place = 0
    while place + 1 < best.shape[0] and best[place + 1] < score:
        best[place] = best[place + 1]
        place += 1
    best[place] = score


@_compiled
def highest(block: Any, of_rows: Any, of_columns: Any, group_best: Any, column_best: Any) -> None:
    """Keep the k highest scores of each row and of each column, in rising order.

    Args:
        block: Scores.
        of_rows: k scores a row, `LOWEST` before the call.
        of_columns: k scores a column, updated from block to block.
        group_best: What `survey` found without penalties; spoiled by the call.
        column_best: Likewise.
    """
    columns, groups = block.shape[1], group_best.shape[1]
    for row in range(block.shape[0]):
        best = of_rows[row]
        group = _place_of_highest(group_best[row])
        while group_best[row, group] > best[0]:
            group_best[row, group] = LOWEST
            for column in range(group, columns, groups):
                score = _score(block[row, column])
                if score > best[0]:
                    _insert(best, score)
            group = _place_of_highest(group_best[row])
    for column in range(columns):
        best = of_columns[column]
        if column_best[column] > best[0]:
            for row in range(block.shape[0]):
                score = _score(block[row, column])
                if score > best[0]:
                    _insert(best, score)


@njit(nogil=True, cache=True, inline="always")
def _kept(key: Any, query: int, candidate: int, limit: Any) -> Any:
    """Whether chance keeps a score: a hash of its place, mixed twice, against keep·2³²."""
    mixed = np.uint64(key) ^ ((np.uint64(query) << np.uint64(32)) | np.uint64(candidate))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)) < np.uint64(limit)


@_compiled
def match_rows(
    block: Any,
    offset: int,
    penalty: Any,
    group_best: Any,
    key: Any,
    limit: Any,
    partner: Any,
    partner_score: Any,
) -> None:
    """Find each row's best kept column by score − penalty of the column; the first of equal ones.

    Args:
        block: Scores; its first row is source row `offset`.
        offset: See above.
        penalty: Of all columns.
        group_best: What `survey` found with that penalty; spoiled by the call.
        key: Where chance starts.
        limit: The probability of being kept, times 2³².
        partner: Best columns of all source rows.
        partner_score: Their scores, `LOWEST` before the call.
    """
    columns, groups = block.shape[1], group_best.shape[1]
    for row in range(block.shape[0]):
        number, best, found = offset + row, LOWEST, columns
        group = _place_of_highest(group_best[row])
        while group_best[row, group] >= best and group_best[row, group] > LOWEST:
            group_best[row, group] = LOWEST
            for column in range(group, columns, groups):
                score = _score(block[row, column]) - penalty[column]
                if (score > best or (score == best and column < found)) and _kept(key, number, column, limit):
                    best, found = score, column
            group = _place_of_highest(group_best[row])
        if found < columns:
            partner[number], partner_score[number] = found, best


@_compiled
def match_columns(
    block: Any,
    offset: int,
    penalty: Any,
    column_best: Any,
    key: Any,
    limit: Any,
    partner: Any,
    partner_score: Any,
) -> None:
    """Find each column's best kept row by score − penalty of the row, going on from earlier blocks.

    Args:
        block: Scores; its first row is source row `offset`.
        offset: See above.
        penalty: Of the block's rows.
        column_best: What `survey` found with that penalty.
        key: Where chance starts.
        limit: The probability of being kept, times 2³².
        partner: Best source rows of all columns.
        partner_score: Their scores, `LOWEST` before the first block.
    """
    for column in range(block.shape[1]):
        best = partner_score[column]
        if column_best[column] > best:
            for row in range(block.shape[0]):
                score = _score(block[row, column]) - penalty[row]
                if score > best and _kept(key, column, offset + row, limit):
                    best = score
                    partner[column] = offset + row
            partner_score[column] = best


@_compiled
def zero_wins(score: Any, partner: Any, candidates: int, key: Any, limit: Any) -> None:
    """Give a query whose best kept score is negative its first hidden candidate, whose score is zero."""
    for query in range(score.shape[0]):
        if score[query] < 0:
            for candidate in range(candidates):
                if not _kept(key, query, candidate, limit):
                    partner[query] = candidate
                    break
