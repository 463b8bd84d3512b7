"""Compiled loops of `negatives_cpu`: score a query's pool, prove it sufficient, weigh the nearest.

Most of the time goes into fetching the keys' rows, so a row is fetched as seldom as the bounds allow: keys
that cannot be among the nearest are not scored at all, and those that must be are weighed while their row is
still at hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit
from bilex.search.heaps import flagged, kth_largest, new_flags

_AT_ONCE = 4
_AT_HAND = 8


class Pools(NamedTuple):
    """Pools of all queries.

    Attributes:
        candidate: The keys of a pool, none of them forbidden to its query.
        stale: With `drift` added, an upper bound on each key's score.
        size: Keys in the pool.
        outside: With `drift` added, an upper bound on the score of every key outside the pool.
        drift: How much a score may have risen since the pool was filled.
        level: The n-th best score when the pool was last looked at; less where it is known to have run out.
        settled: Whether the n best of the pool are the n best of all keys.
        forbidden_starts: Where a query's keys begin in `forbidden_keys`.
        forbidden_keys: Keys that a query may not have.
    """

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
    """Where the results go; the fields are those of `negatives.Nearest`."""

    total: npt.NDArray[np.float32]
    context: npt.NDArray[np.float32]
    chosen: npt.NDArray[np.int64]
    score: npt.NDArray[np.float32]


@njit(nogil=True, cache=True, fastmath=True)
def _score(query: Any, keys: Any, inverse_norm: Any, index: Any, first: int, last: int, scores: Any) -> None:
    """Scores of the keys at index[first:last], four rows at once while there are four."""
    j = first
    while j + _AT_ONCE <= last:
        a, b, c, d = keys[index[j]], keys[index[j + 1]], keys[index[j + 2]], keys[index[j + 3]]
        of_a, of_b, of_c, of_d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        for k in range(query.shape[0]):
            of_a += query[k] * a[k]
            of_b += query[k] * b[k]
            of_c += query[k] * c[k]
            of_d += query[k] * d[k]
        scores[j] = of_a * inverse_norm[index[j]]
        scores[j + 1] = of_b * inverse_norm[index[j + 1]]
        scores[j + 2] = of_c * inverse_norm[index[j + 2]]
        scores[j + 3] = of_d * inverse_norm[index[j + 3]]
        j += _AT_ONCE
    for rest in range(j, last):
        row = keys[index[rest]]
        total = np.float32(0)
        for k in range(query.shape[0]):
            total += query[k] * row[k]
        scores[rest] = total * inverse_norm[index[rest]]


@njit(nogil=True, cache=True, fastmath=True)
def _add_rows(context: Any, keys: Any, index: Any, weights: Any, first: int, last: int) -> None:
    """Add the keys at index[first:last] times their weights to the context, four rows at once."""
    j = first
    while j + _AT_ONCE <= last:
        a, b, c, d = keys[index[j]], keys[index[j + 1]], keys[index[j + 2]], keys[index[j + 3]]
        w_a, w_b, w_c, w_d = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        for k in range(context.shape[0]):
            context[k] += w_a * a[k] + w_b * b[k] + w_c * c[k] + w_d * d[k]
        j += _AT_ONCE
    for rest in range(j, last):
        row, weight = keys[index[rest]], weights[rest]
        for k in range(context.shape[0]):
            context[k] += weight * row[k]


@njit(nogil=True, cache=True)
def _weigh(
    keys: Any,
    inverse_norm: Any,
    temperature: float,
    index: Any,
    scores: Any,
    first: int,
    last: int,
    weights: Any,
    context: Any,
) -> float:
    """Add the rows of the keys at index[first:last], weighted by exp(score/τ); the sum of the weights."""
    total = 0.0
    for c in range(first, last):
        weight = np.exp(scores[c] / np.float32(temperature))
        total += weight
        weights[c] = np.float32(weight * inverse_norm[index[c]])
    _add_rows(context, keys, index, weights, first, last)
    return total


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
def _sort_out(stale: Any, size: int, drift: Any, bar: Any, sure_bar: Any, most: int, places: Any) -> Any:
    """Which keys of a pool must be scored: first those that are surely among the nearest, then the others.

    `places` has room for one more than the pool has.

    Returns:
        How many are sure (at most `most`), and how many in all.
    """
    sure: Any = 0
    for c in range(size):  # without branches, which nothing could predict
        places[sure] = c
        sure += np.int64(stale[c] + drift > sure_bar)
    sure = min(sure, most)
    last = places[sure - 1] if sure else -1
    count: Any = sure
    for c in range(size):
        bound = stale[c] + drift
        places[count] = c
        count += np.int64(bound >= bar) & (np.int64(bound <= sure_bar) | np.int64(c > last))
    return sure, count


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
    bars: Any,
    sure_bars: Any,
    output: Any,
) -> None:
    """Find the n nearest keys of the `wanted` queries from `start` to `stop`, or mark them unsettled.

    Args:
        queries: One row per query, in the keys' unmapped space.
        keys: Unmapped keys.
        inverse_norm: 1/length of each mapped key.
        temperature: τ of the weights.
        pools: The pools.
        wanted: The queries in the order in which they are served.
        start: First of them.
        stop: Last of them, not included.
        bars: Per query, a score that at least n keys of its pool reach: what cannot is not scored.
        sure_bars: Per query, the upper bound on a score from which on a key is among the nearest whatever the
            others do.
        output: Where the results go.
    """
    n = output.chosen.shape[1]
    capacity = pools.candidate.shape[1]
    scores, weights = np.empty(capacity, np.float32), np.empty(capacity, np.float32)
    found, places = np.empty(capacity, np.int64), np.empty(capacity + 1, np.int64)
    for place in range(start, stop):
        i = wanted[place]
        query, drift, candidate, stale = queries[i], pools.drift[i], pools.candidate[i], pools.stale[i]
        sure, count = _sort_out(stale, pools.size[i], drift, bars[i], sure_bars[i], n - 1, places)
        for c in range(count):
            found[c] = candidate[places[c]]
        pools.settled[i] = False
        pools.level[i] = -np.inf
        if count < n:
            continue
        context = output.context[i]
        context[:] = 0
        total = 0.0
        for first in range(0, sure, _AT_HAND):
            last = min(first + _AT_HAND, sure)
            _score(query, keys, inverse_norm, found, first, last, scores)
            total += _weigh(keys, inverse_norm, temperature, found, scores, first, last, weights, context)
        _score(query, keys, inverse_norm, found, sure, count, scores)
        for c in range(count):
            stale[places[c]] = scores[c] - drift
        level = kth_largest(scores[sure:count], count - sure, n - sure)
        pools.level[i] = level
        if pools.outside[i] + drift >= level:
            continue
        pools.settled[i] = True
        chosen, score = output.chosen[i], output.score[i]
        chosen[:sure] = found[:sure]
        score[:sure] = scores[:sure]
        _choose(found[sure:], scores[sure:], count - sure, n - sure, level, chosen[sure:], score[sure:])
        total += _weigh(keys, inverse_norm, temperature, chosen, score, sure, n, weights, context)
        output.total[i] = total


class Refill(NamedTuple):
    """Pools that are being filled again from a product with all keys.

    Attributes:
        wanted: The queries whose pools they are.
        filled: Keys in each so far.
        threshold: The score that a key must exceed to enter.
        error: How far a score of the product can lie from the true one.
        size: Keys that a pool is cut down to when it overflows.
    """

    wanted: npt.NDArray[np.int64]
    filled: npt.NDArray[np.int64]
    threshold: npt.NDArray[np.float32]
    error: npt.NDArray[np.float32]
    size: int


@njit(nogil=True, cache=True)
def _cut_down(candidate: Any, value: Any, count: int, size: int) -> Any:
    """Keep fewer than `size` of a pool's keys, those with the best scores; how many, and the new bar."""
    bar = kth_largest(value, count, size)
    kept = 0
    for c in range(count):
        if value[c] > bar:
            candidate[kept] = candidate[c]
            value[kept] = value[c]
            kept += 1
    return kept, bar


@njit(nogil=True, cache=True)
def refill(block: Any, first_row: int, first_key: int, pools: Any, new: Any) -> None:
    """Put the keys of a block of scores into the pools of their rows where they exceed the thresholds.

    Until `close` the pools' `stale` are these scores.
    """
    rows, columns = block.shape
    flags, hits = new_flags(columns)
    for r in range(rows):
        row, cells = first_row + r, block[r]
        i = new.wanted[row]
        candidate, value = pools.candidate[i], pools.stale[i]
        threshold, place = new.threshold[row], new.filled[row]
        for c in range(columns):  # compiled to vectors
            flags[c] = np.uint8(cells[c] > threshold)
        for h in range(flagged(flags, hits)):
            c = hits[h]
            if cells[c] > threshold:
                if place == candidate.shape[0]:
                    place, threshold = _cut_down(candidate, value, place, new.size)
                candidate[place], value[place] = first_key + c, cells[c]
                place += 1
        new.threshold[row], new.filled[row] = threshold, place


@njit(nogil=True, cache=True)
def _holds(keys: Any, key: int) -> Any:
    held = False
    for other in keys:
        held |= other == key
    return held


@njit(nogil=True, cache=True)
def close(pools: Any, new: Any, n: int, start: int, stop: int, bars: Any, sure_bars: Any) -> None:
    """Finish the filled pools: without forbidden keys, with upper bounds instead of proposed scores.

    Where the n-th best proposed score lies tells, up to the slack, where the n-th best score lies: `bars` and
    `sure_bars` are set to what `attend` may conclude from that.
    """
    for row in range(start, stop):
        i = new.wanted[row]
        candidate, stale = pools.candidate[i], pools.stale[i]
        forbidden = pools.forbidden_keys[pools.forbidden_starts[i] : pools.forbidden_starts[i + 1]]
        count = 0
        for c in range(new.filled[row]):
            if not _holds(forbidden, candidate[c]):
                candidate[count] = candidate[c]
                stale[count] = stale[c] + new.error[row]
                count += 1
        pools.size[i] = count
        pools.outside[i] = new.threshold[row] + new.error[row]
        pools.drift[i] = 0
        bars[i], sure_bars[i] = -np.inf, np.inf
        if count >= n:
            nth = kth_largest(stale, count, n)
            bars[i] = nth - 2 * new.error[row]
            sure_bars[i] = nth + 2 * new.error[row]


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
