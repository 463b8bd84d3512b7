"""Compiled loops behind `bilex.similarity.stochastic`: scan blocks of scores for both directions at once.

A block holds the scores of some source rows with all target rows. A chunk of 64 scores is first
compared as a whole with what they would have to beat, which the processor does sixteen at a time; only
the few chunks that might contain something are looked at closely. Scores are float32 or the upper 16
bits of one (bfloat16, seen as uint16). Every function releases the GIL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bilex.similarity.kernels import _score

LOWEST = np.float32(-1e30)
_CHUNK = 64
_ROUNDING = np.float32(1e-6)
_compiled = njit(nogil=True, cache=True, fastmath=True)


@_compiled
def _insert(best: Any, score: float) -> None:
    """Put `score` into a rising list in place of its smallest member."""
    place = 0
    while place + 1 < best.shape[0] and best[place + 1] < score:
        best[place] = best[place + 1]
        place += 1
    best[place] = score


@_compiled
def highest(block: Any, of_rows: Any, of_columns: Any, bars: Any) -> None:
    """Keep the k highest scores of each row and of each column, in rising order.

    Args:
        block: Scores.
        of_rows: k scores a row, `LOWEST` before the first call.
        of_columns: k scores a column, updated from block to block.
        bars: The smallest of each column's k scores.
    """
    for row in range(block.shape[0]):
        for first in range(0, block.shape[1], _CHUNK):
            last = min(first + _CHUNK, block.shape[1])
            bar, excess = of_rows[row, 0], LOWEST
            for column in range(first, last):
                score = _score(block[row, column])
                excess = max(excess, score - bar, score - bars[column])
            if excess > 0:
                for column in range(first, last):
                    score = _score(block[row, column])
                    if score > of_rows[row, 0]:
                        _insert(of_rows[row], score)
                    if score > bars[column]:
                        _insert(of_columns[column], score)
                        bars[column] = of_columns[column, 0]


@njit(nogil=True, cache=True, inline="always")
def _kept(key: Any, query: int, candidate: int, limit: Any) -> Any:
    """Whether chance keeps a score: a hash of its place, mixed twice, against keep·2³²."""
    mixed = np.uint64(key) ^ ((np.uint64(query) << np.uint64(32)) | np.uint64(candidate))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)) < np.uint64(limit)


@_compiled
def match(
    block: Any,
    offset: int,
    row_penalty: Any,
    column_penalty: Any,
    keys: Any,
    limit: Any,
    forward: Any,
    forward_score: Any,
    backward: Any,
    backward_score: Any,
) -> None:
    """Find each row's best kept column by score − penalty of the column, and each column's best row.

    Args:
        block: Scores; its first row is source row `offset`.
        offset: See above.
        row_penalty: Of all source rows.
        column_penalty: Of all target rows.
        keys: Where chance starts, forward and backward.
        limit: The probability of being kept, times 2³².
        forward: Best columns of all source rows.
        forward_score: Their scores, `LOWEST` before the first call.
        backward: Best source rows of the columns.
        backward_score: Their scores, updated from block to block.
    """
    for row in range(block.shape[0]):
        number = offset + row
        own, best = row_penalty[number], forward_score[number]
        for first in range(0, block.shape[1], _CHUNK):
            last = min(first + _CHUNK, block.shape[1])
            excess = LOWEST
            for column in range(first, last):
                score = _score(block[row, column])
                ahead = score - column_penalty[column] - best
                excess = max(excess, ahead, score - own - backward_score[column])
            if excess > -_ROUNDING:
                for column in range(first, last):
                    score = _score(block[row, column]) - column_penalty[column]
                    if score > best and _kept(keys[0], number, column, limit):
                        best = score
                        forward[number] = column
                    score = _score(block[row, column]) - own
                    if score > backward_score[column] and _kept(keys[1], column, number, limit):
                        backward_score[column] = score
                        backward[column] = number
        forward_score[number] = best


@_compiled
def zero_wins(score: Any, partner: Any, candidates: int, key: Any, limit: Any) -> None:
    """Give a query whose best kept score is negative its first hidden candidate, whose score is zero."""
    for query in range(score.shape[0]):
        if score[query] < 0:
            for candidate in range(candidates):
                if not _kept(key, query, candidate, limit):
                    partner[query] = candidate
                    break
