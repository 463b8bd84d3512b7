"""Hard negatives on the CPU: compiled loops score pools; a product with all keys fills those that run out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bilex.core.compiling import njit
from bilex.search import cpu
from bilex.search.heaps import flagged, new_flags
from bilex.search.negatives import Forbidden, Moment, Nearest
from bilex.search.threads import in_threads

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

# A pool aims at this many times the wanted neighbours: deeper pools last longer but cost more at every
# update, which pays the more keys a search has to go through.
_POOL_FACTORS, _KEYS_PER_FACTOR = (3, 6), 10_000
# Guards the bounds against float32 rounding of scores, norms and steps.
_ROUNDING = 2e-6
_QUERIES_PER_TASK = 256
_BLOCK_MEMORY = 1 << 26


class Pools(NamedTuple):
    """Pools of all queries.

    Attributes:
        candidate: The keys of a pool, none of them forbidden to its query.
        highest: With `drift` added, an upper bound on each key's score.
        size: Keys in the pool.
        outside: With `drift` added, an upper bound on the score of every key outside the pool.
        drift: How much a score may have risen since the pool was filled.
        level: A lower bound on the n-th best score of all allowed keys.
        decided: Whether the n best of the pool are the n best of all keys.
        forbidden_starts: Where a query's keys begin in `forbidden_keys`.
        forbidden_keys: Keys that a query may not have.
    """

    candidate: npt.NDArray[np.int32]
    highest: Floats
    size: Indices
    outside: Floats
    drift: Floats
    level: Floats
    decided: npt.NDArray[np.bool_]
    forbidden_starts: Indices
    forbidden_keys: Indices


class CpuHardNegatives:
    """See `bilex.search.negatives`."""

    def __init__(self, keys: torch.Tensor, n: int, temperature: float, forbidden: Forbidden) -> None:
        self.keys = np.ascontiguousarray(keys.numpy(), np.float32)
        self.temperature = temperature
        self.searched = 0
        # How far a float32 product of two unit rows may be off.
        self.error = np.float32(2.0**-23 * (self.keys.shape[1] + 4) * (1 + 1e-5) + _ROUNDING)
        queries = len(forbidden.starts) - 1
        factor = min(_POOL_FACTORS[1], max(_POOL_FACTORS[0], len(self.keys) // _KEYS_PER_FACTOR))
        self.pool_size = min(len(self.keys), max(factor * n, n + forbidden.most + 1))
        shape = queries, 2 * self.pool_size
        self.pools = Pools(
            candidate=np.zeros(shape, np.int32),
            highest=np.zeros(shape, np.float32),
            size=np.zeros(queries, np.int64),
            outside=np.full(queries, np.inf, np.float32),
            drift=np.zeros(queries, np.float32),
            level=np.full(queries, -np.inf, np.float32),
            decided=np.zeros(queries, np.bool_),
            forbidden_starts=forbidden.starts,
            forbidden_keys=forbidden.keys,
        )
        self.output = (
            np.zeros(queries, np.float32),
            np.zeros((queries, self.keys.shape[1]), np.float32),
            np.zeros((queries, n), np.int64),
            np.zeros((queries, n), np.float32),
        )

    def look(self, now: Moment) -> None:
        """See `HardNegatives.look`: a CPU has nothing to begin with."""

    def nearest(self, now: Moment) -> Nearest:
        """See `HardNegatives.nearest`.

        A score has moved by at most a step since the last call, and so has the n-th best. A pool that could
        only serve if that has risen is filled again without a look at it.
        """
        pools = self.pools
        step = now.query_step.numpy() + np.float32(float(now.key_step) + _ROUNDING)
        np.add(pools.drift, step, out=pools.drift)
        promising = pools.outside + pools.drift < pools.level
        pools.level[:] -= step
        pools.decided[:] = False
        self._attend(now, np.flatnonzero(promising))
        due = np.flatnonzero(~pools.decided)
        if len(due):
            self._search(now, due)
            tied = due[~pools.decided[due]]
            if len(tied):
                self._search_exactly(now, tied)
        return Nearest(*(torch.from_numpy(part) for part in self.output))

    def _attend(self, now: Moment, wanted: Indices) -> None:
        """Find the n nearest keys of the `wanted` queries in their pools, where the pools decide them."""
        queries, inverse = now.queries.contiguous().numpy(), now.inverse_norm.contiguous().numpy()
        given = queries, self.keys, inverse, self.temperature, self.pools, wanted, *self.output
        in_threads(len(wanted), lambda start, stop: _attend(*given, start, stop), _QUERIES_PER_TASK)

    def _search(self, now: Moment, wanted: Indices) -> None:
        """Fill the pools of the `wanted` queries from a product with all keys."""
        self.searched += len(wanted)
        filled, outside = np.zeros(len(wanted), np.int64), np.full(len(wanted), -np.inf, np.float32)
        queries, keys = now.query_units.numpy()[wanted], now.key_units.contiguous().numpy()

        def visit(block: npt.NDArray[np.generic], row: int, key: int) -> None:
            _fill(block, row, key, self.pools, wanted, filled, outside, self.pool_size)

        cpu.row_blocks(queries, keys, _BLOCK_MEMORY, visit)
        self._close(now, wanted, filled, outside, self.error)

    def _search_exactly(self, now: Moment, wanted: Indices) -> None:
        """For queries with masses of equal scores: as many nearest keys as a pool holds, by exact search."""
        units = now.query_units[torch.from_numpy(wanted)].numpy()
        scores, keys = cpu.top_k(units, now.key_units.numpy(), self.pool_size, None, _BLOCK_MEMORY)
        self.pools.candidate[wanted, : self.pool_size] = keys
        self.pools.highest[wanted, : self.pool_size] = scores
        filled = np.full(len(wanted), self.pool_size)
        self._close(now, wanted, filled, np.full(len(wanted), -np.inf, np.float32), np.float32(_ROUNDING))
        self.pools.outside[wanted] = np.inf

    def _close(self, now: Moment, wanted: Indices, filled: Indices, outside: Floats, error: Any) -> None:
        """Finish pools that were filled, and find the nearest keys in them."""
        n = self.output[2].shape[1]
        given = self.pools, wanted, filled, outside, error, n
        in_threads(len(wanted), lambda start, stop: _close(*given, start, stop), _QUERIES_PER_TASK)
        self._attend(now, wanted)


@njit(nogil=True, cache=True)
def _attend(
    queries: Any,
    keys: Any,
    inverse_norm: Any,
    temperature: float,
    pools: Any,
    wanted: Any,
    totals: Any,
    contexts: Any,
    nearest: Any,
    nearest_scores: Any,
    start: int,
    stop: int,
) -> None:
    """Find and weigh the n nearest keys of some queries; keys that cannot reach the level are skipped."""
    n = nearest.shape[1]
    capacity = pools.candidate.shape[1]
    scores, places = np.empty(capacity, np.float32), np.empty(capacity + 1, np.int64)
    for number in range(start, stop):
        i = wanted[number]
        drift, candidate, highest = pools.drift[i], pools.candidate[i], pools.highest[i]
        count: Any = 0
        for c in range(pools.size[i]):  # without branches, which nothing could predict
            places[count] = c
            count += np.int64(highest[c] + drift >= pools.level[i])
        if count < n:
            pools.level[i] = -np.inf
            continue
        for c in range(count):
            key = candidate[places[c]]
            scores[c] = _dot(queries[i], keys[key]) * inverse_norm[key]
            highest[places[c]] = scores[c] - drift
        level = _kth_largest(scores, count, n)
        pools.level[i] = level
        pools.decided[i] = pools.outside[i] + drift < level
        if pools.decided[i]:
            _choose(candidate, places, scores, count, level, nearest[i], nearest_scores[i])
            totals[i] = _weigh(keys, inverse_norm, temperature, nearest[i], nearest_scores[i], contexts[i])


@njit(nogil=True, cache=True)
def _kth_largest(values: Any, count: int, k: int) -> Any:
    return np.partition(values[:count], count - k)[count - k]


@njit(nogil=True, cache=True, fastmath=True)
def _dot(query: Any, key: Any) -> Any:
    total = np.float32(0)
    for d in range(query.shape[0]):
        total += query[d] * key[d]
    return total


@njit(nogil=True, cache=True)
def _choose(
    candidate: Any, places: Any, scores: Any, count: int, level: Any, chosen: Any, chosen_scores: Any
) -> None:
    """The n best of the scored candidates; of those that tie at the level, the lowest keys.

    Scores that are NaN compare with nothing: key 0 then fills what is missing, the level shows the NaN.
    """
    n, taken, tied = chosen.shape[0], 0, 0
    ties = np.empty(count, np.int64)
    for c in range(count):
        if scores[c] > level and taken < n:
            chosen[taken], chosen_scores[taken] = candidate[places[c]], scores[c]
            taken += 1
        elif scores[c] == level:
            ties[tied] = candidate[places[c]]
            tied += 1
    lowest = np.sort(ties[:tied])
    for c in range(n - taken):
        chosen[taken + c] = lowest[c] if c < tied else 0
        chosen_scores[taken + c] = level


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def _weigh(keys: Any, inverse_norm: Any, temperature: float, chosen: Any, scores: Any, context: Any) -> float:
    """Sum the rows of the chosen keys, weighted by exp(score/τ); the sum of the weights."""
    total = 0.0
    context[:] = 0
    for c in range(chosen.shape[0]):
        exponential = np.exp(scores[c] / np.float32(temperature))
        total += exponential
        row, weight = keys[chosen[c]], np.float32(exponential * inverse_norm[chosen[c]])
        for d in range(context.shape[0]):
            context[d] += weight * row[d]
    return total


@njit(nogil=True, cache=True)
def _fill(
    block: Any, first_row: int, first_key: int, pools: Any, wanted: Any, filled: Any, outside: Any, size: int
) -> None:
    """Put the keys of a block of scores that exceed `outside` into the pools of their rows.

    A pool that is full keeps its best keys, fewer than `size`. Until `_close`, `highest` are the scores.
    """
    flags, hits = new_flags(block.shape[1])
    for r in range(block.shape[0]):
        row, cells = first_row + r, block[r]
        candidate, value = pools.candidate[wanted[row]], pools.highest[wanted[row]]
        threshold, place = outside[row], filled[row]
        for c in range(block.shape[1]):  # compiled to vectors
            flags[c] = np.uint8(cells[c] > threshold)
        for h in range(flagged(flags, hits)):
            c = hits[h]
            if cells[c] <= threshold:
                continue
            if place == candidate.shape[0]:
                threshold = _kth_largest(value, place, size)
                place = _keep_above(candidate, value, threshold)
            candidate[place], value[place] = first_key + c, cells[c]
            place += 1
        outside[row], filled[row] = threshold, place


@njit(nogil=True, cache=True)
def _keep_above(candidate: Any, value: Any, threshold: Any) -> Any:
    """Drop the keys of a full pool whose scores do not exceed a threshold; how many are left."""
    kept = 0
    for c in range(candidate.shape[0]):
        if value[c] > threshold:
            candidate[kept], value[kept] = candidate[c], value[c]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def _close(
    pools: Any, wanted: Any, filled: Any, outside: Any, error: Any, n: int, start: int, stop: int
) -> None:
    """Finish filled pools: without forbidden keys, with upper bounds instead of scores, and with a level."""
    for row in range(start, stop):
        i = wanted[row]
        candidate, highest = pools.candidate[i], pools.highest[i]
        forbidden = pools.forbidden_keys[pools.forbidden_starts[i] : pools.forbidden_starts[i + 1]]
        count = 0
        for c in range(filled[row]):
            allowed = True
            for other in forbidden:
                allowed &= other != candidate[c]
            if allowed:
                candidate[count], highest[count] = candidate[c], highest[c] + error
                count += 1
        pools.size[i], pools.drift[i] = count, 0
        pools.outside[i] = outside[row] + error
        pools.level[i] = _kth_largest(highest, count, n) - 2 * error if count >= n else -np.inf
