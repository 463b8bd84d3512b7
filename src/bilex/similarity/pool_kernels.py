"""Compiled loop of `hard_negatives_cpu`: score a query's pool, prove it sufficient, weigh the nearest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.compiling import njit
from bilex.similarity.kernels import kth_largest

_LOOK_AGAIN = 32


class Pools(NamedTuple):
    """Pools of all queries. A pool is sorted by falling `stale` score (an upper bound at search time)."""

    candidate: npt.NDArray[np.int32]
    stale: npt.NDArray[np.float32]
    size: npt.NDArray[np.int64]
    outside: npt.NDArray[np.float32]
    drift: npt.NDArray[np.float32]
    level: npt.NDArray[np.float32]
    settled: npt.NDArray[np.bool_]
    forbidden_starts: npt.NDArray[np.int64]
    forbidden_keys: npt.NDArray[np.int64]


class Output(NamedTuple):
    """Where the results go; the fields are those of `hard_negatives.Nearest`."""

    total: npt.NDArray[np.float32]
    context: npt.NDArray[np.float32]
    chosen: npt.NDArray[np.int64]
    score: npt.NDArray[np.float32]


@njit(nogil=True, cache=True, fastmath=True)
def _dot(x: Any, y: Any) -> Any:
    total = np.float32(0)
    for d in range(x.shape[0]):
        total += x[d] * y[d]
    return total


@njit(nogil=True, cache=True, fastmath=True)
def _add_scaled(sums: Any, weight: Any, row: Any) -> None:
    for d in range(sums.shape[0]):
        sums[d] += weight * row[d]


@njit(nogil=True, cache=True)
def _holds(keys: Any, key: int) -> Any:
    held = False
    for other in keys:
        held |= other == key
    return held


@njit(nogil=True, cache=True)
def _choose(found: Any, scores: Any, count: int, n: int, level: Any, chosen: Any, chosen_score: Any) -> None:
    """The n best of the scored candidates; of those that tie at the level, the lowest keys.

    Scores that are NaN compare with nothing: key 0 then fills what is missing, the level shows the NaN.
    """
    taken = 0
    ties = np.empty(count, np.int64)
    tied = 0
    for c in range(count):
        if scores[c] > level and taken < n:
            chosen[taken] = found[c]
            chosen_score[taken] = scores[c]
            taken += 1
        elif scores[c] == level:
            ties[tied] = found[c]
            tied += 1
    lowest = np.sort(ties[:tied])
    for c in range(n - taken):
        chosen[taken + c] = lowest[c] if c < tied else 0
        chosen_score[taken + c] = level


@njit(nogil=True, cache=True)
def attend(
    queries: Any,
    keys: Any,
    inverse_norm: Any,
    temperature: float,
    pools: Any,
    wanted: Any,
    start: int,
    stop: int,
    output: Any,
) -> None:
    """Find the n nearest keys of the `wanted` queries from `start` to `stop`, or mark them unsettled."""
    n = output.chosen.shape[1]
    capacity = pools.candidate.shape[1]
    scores, found = np.empty(capacity, np.float32), np.empty(capacity, np.int64)
    for place in range(start, stop):
        i = wanted[place]
        query = queries[i]
        drift = pools.drift[i]
        candidate, stale = pools.candidate[i], pools.stale[i]
        forbidden = pools.forbidden_keys[pools.forbidden_starts[i] : pools.forbidden_starts[i + 1]]
        count, check = 0, n
        level = np.float32(-np.inf)
        enough = False
        for c in range(pools.size[i]):
            if count == check:
                level = kth_largest(scores, count, n)
                check += _LOOK_AGAIN
            if count >= n and stale[c] + drift < level:
                enough = True
                break
            key = candidate[c]
            if _holds(forbidden, key):
                continue
            scores[count] = _dot(query, keys[key]) * inverse_norm[key]
            found[count] = key
            count += 1
        pools.settled[i] = False
        pools.level[i] = -np.inf
        if count < n:
            continue
        level = kth_largest(scores, count, n)
        pools.level[i] = level
        if not enough and pools.outside[i] + drift >= level:
            continue
        pools.settled[i] = True
        _choose(found, scores, count, n, level, output.chosen[i], output.score[i])
        _weigh(keys, inverse_norm, temperature, i, output)


@njit(nogil=True, cache=True)
def _weigh(keys: Any, inverse_norm: Any, temperature: float, i: int, output: Any) -> None:
    """The sum of the weights of a query's nearest keys, and the weighted sum of their rows."""
    total = 0.0
    context = output.context[i]
    context[:] = 0
    for c in range(output.chosen.shape[1]):
        weight = np.exp(output.score[i, c] / np.float32(temperature))
        total += weight
        key = output.chosen[i, c]
        _add_scaled(context, np.float32(weight * inverse_norm[key]), keys[key])
    output.total[i] = total


@njit(nogil=True, cache=True)
def store(
    pools: Any,
    wanted: Any,
    candidate: Any,
    value: Any,
    filled: Any,
    bar: Any,
    half_slack: Any,
    start: int,
    stop: int,
) -> None:
    """Turn the candidate lists of a search into the pools of the queries it was made for."""
    for place in range(start, stop):
        i, count = wanted[place], filled[place]
        order = np.argsort(-value[place, :count], kind="mergesort")
        for c in range(count):
            pools.candidate[i, c] = candidate[place, order[c]]
            pools.stale[i, c] = value[place, order[c]] + half_slack[place]
        pools.size[i] = count
        pools.outside[i] = bar[place] + half_slack[place]
        pools.drift[i] = 0


@njit(nogil=True, cache=True, fastmath=True)
def make_units(image: Any, previous: Any, inverse: Any, step: Any, start: int, stop: int) -> None:
    """Bring rows to length one in place; note 1/length, and how far each lies from its previous unit row."""
    for i in range(start, stop):
        row, old = image[i], previous[i]
        square = np.float32(0)
        for d in range(row.shape[0]):
            square += row[d] * row[d]
        inverse[i] = np.float32(1) / np.sqrt(max(square, np.float32(1e-37)))
        moved = np.float32(0)
        for d in range(row.shape[0]):
            row[d] *= inverse[i]
            moved += (row[d] - old[d]) * (row[d] - old[d])
        step[i] = np.sqrt(moved)


@njit(nogil=True, cache=True, fastmath=True)
def round_rows(rows: Any, low: Any, error: Any, norm: Any, start: int, stop: int) -> None:
    """Round float32 rows (seen as uint32) to bfloat16 (uint16), to nearest even, and measure the loss."""
    for i in range(start, stop):
        lost, length = np.float32(0), np.float32(0)
        row, out = rows[i], low[i]
        for d in range(row.shape[0]):
            bits = row[d]
            kept = np.uint32(
                np.uint32(bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
                >> np.uint32(16)
            )
            out[d] = np.uint16(kept)
            value = np.uint32(kept << np.uint32(16)).view(np.float32)
            off = value - np.uint32(bits).view(np.float32)
            lost += off * off
            length += value * value
        error[i] = np.sqrt(lost)
        norm[i] = np.sqrt(length)
