"""Exact top-k on the CPU: products of blocks propose scores, heaps keep the best, float64 decides.

Each query has a heap of a few more than its k best keys so far; the worst of them is the query's threshold.
A block of products is small enough to stay in a core's cache while every score is compared with the
threshold of its row. Products of 8-bit rows count with their largest error, and what passes is scored again
in float32. In the end a heap's keys are scored in float64. No key outside it exceeds the threshold by more
than the error bound of float32, so a row whose k-th best score does is exact. The few other rows (with many
equal scores) go through `bilex.search.plain`.

Threads share many queries by rows, and torch multiplies. They share a few queries at a time, as a server has
them, by keys, and compiled loops multiply 8-bit rows without torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit
from bilex.core.errors import BilexError
from bilex.core.machine import processor
from bilex.search import plain
from bilex.search.low_precision import operands
from bilex.search.low_precision.int8_keys import Int8Keys
from bilex.search.low_precision.operands import Operand, multiply, operand
from bilex.search.search import Floats, Rows, placed
from bilex.search.threads import in_threads, single_threaded_torch, worker_count
from bilex.vectors.stored import slices

if TYPE_CHECKING:
    import torch

COLUMNS = 512  # scores of a row that are compared with the same threshold
_BLOCK_ROWS = 1024  # a block takes 2 MB
_FEWEST_BLOCK_ROWS = 16
_SPARE = 6  # keys in a heap beyond the k best, which decide near ties
_SERVED_QUERIES = 32  # at a time: more gain little, and the keys that they read of a file take memory
_SERVED_KEYS = 8192  # whose products are compared together
_ROUNDED = 1024  # keys that are read and rounded together
_LARGEST = 127  # 8-bit number in a server's keys
Visit = Callable[[npt.NDArray[np.generic], int, int], None]


class CpuSearch:
    """Keys prepared once for any number of searches; see `bilex.search.KeySearch`."""

    def __init__(self, keys: Floats, penalty: Floats | None, int8: bool | None = None) -> None:
        self.keys, self.penalty, self.int8 = _read_only(keys), penalty, int8
        self.prepared: dict[bool, Operand] = {}

    def top_k(self, queries: Floats, k: int) -> tuple[Floats, Rows]:
        """Exact top-k of some queries."""
        int8 = operands.int8_pays(len(queries), len(self.keys), k) if self.int8 is None else self.int8
        if int8 not in self.prepared:
            self.prepared[int8] = operand(self.keys, int8=int8)
        search = _Search(queries, self.keys, self.penalty, k, self.prepared[int8], int8=int8)
        heaps = search.new_heaps()
        row_blocks(search.left.rows, search.right.rows, lambda *block: search.scan(heaps, *block))
        return search.best([heaps])


class ServedKeys:
    """Keys prepared once for any number of searches by a few queries, in a quarter of their memory.

    `read` is called after rows of `keys` were read, so that the caller may release the pages of a file; only
    the few rows that come near the best are read after the preparation. `instruction` says whether AVX-512
    VNNI multiplies; None decides by the processor.
    """

    def __init__(
        self,
        keys: Floats,
        penalty: Floats | None = None,
        read: Callable[[], None] = lambda: None,
        *,
        instruction: bool | None = None,
    ) -> None:
        self.keys, self._penalty, self._read = _read_only(keys), penalty, read
        self._low = Int8Keys(len(keys), keys.shape[1], instruction)
        self._threads = processor().threads
        self._pool = ThreadPoolExecutor(self._threads, "served-keys")
        measures, longest = [], 0.0
        for at in slices(len(keys), _ROUNDED):
            part = operand(self.keys[at], int8=True, limit=_LARGEST, first=at.start)
            self._low.put(part.rows[:, : keys.shape[1]], at.start)
            measures.append((part.scale, part.error, part.norm))
            longest = max(longest, part.longest)
            read()
        scale, error, norm = map(np.concatenate, zip(*measures, strict=True))
        self._prepared = Operand(np.zeros(0, np.int8), scale, error, norm, longest)

    def top_k(self, queries: Floats, k: int, *, penalised: bool = True) -> tuple[Floats, Rows]:
        """For each query the k keys of highest score, best first; with or without the penalty."""
        scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
        for at in slices(len(queries), _SERVED_QUERIES):
            scores[at], rows[at] = self._search(queries[at], k, self._penalty if penalised else None)
            self._read()
        return scores, rows

    def _search(self, queries: Floats, k: int, penalty: Floats | None) -> tuple[Floats, Rows]:
        """The best keys of a few queries; each thread has a part of the keys and its own heaps."""
        if not np.isfinite(queries).all():
            raise BilexError("a query holds NaN or infinite values; nothing can be near it.")
        search = _Search(queries, self.keys, penalty, k, self._prepared, int8=True, limit=_LARGEST)
        low = search.left.rows[:, : self.keys.shape[1]]
        blocks = range(0, len(self.keys), _SERVED_KEYS)
        parts = max(1, min(self._threads, len(self.keys) // (k + _SERVED_KEYS)))

        def search_part(part: int) -> Heaps:
            heaps, memory = search.new_heaps(), np.empty(len(queries) * _SERVED_KEYS, np.int32)
            for start in blocks[len(blocks) * part // parts : len(blocks) * (part + 1) // parts]:
                width = min(_SERVED_KEYS, len(self.keys) - start)
                block = memory[: len(queries) * width].reshape(len(queries), width)
                self._low.products(low, start, block)
                search.scan(heaps, block, 0, start)
            return heaps

        others = [self._pool.submit(search_part, part) for part in range(1, parts)]
        return search.best([search_part(0), *(other.result() for other in others)])


class Heaps(NamedTuple):
    """A binary heap per query with the worst key first, whose score is the query's threshold."""

    score: npt.NDArray[np.float32]
    key: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]


class _Scores(NamedTuple):
    """What a compiled loop needs: the score of query q and key y is queries[q]·keys[y] + shift[y]."""

    queries: Floats  # doubled where there is a penalty
    keys: Floats
    shift: Floats  # −penalty
    query_scale: Floats  # times a factor of both sides, a product of rounded rows is close to the true one
    key_scale: Floats
    query_error: Floats  # how far a rounded product may be off: the sum of a number of both sides
    key_error: Floats


class _Search:
    """One search: its scores, from the first comparison of rounded products to the exact result."""

    def __init__(
        self, queries: Floats, keys: Floats, penalty: Floats | None, k: int, right: Operand, **rounding: Any
    ) -> None:
        self.queries, self.penalty, self.k, self.right = queries, penalty, k, right
        scaled = _read_only(queries if penalty is None else queries * np.float32(2))
        none = np.zeros(len(keys), np.float32)
        shift = none if penalty is None else -np.ascontiguousarray(penalty, np.float32)
        self.left, self.largest_shift = operand(scaled, **rounding), float(np.abs(shift).max(initial=0.0))
        errors = operands.quantization_error(self.left, right, self.largest_shift)
        self.scores = _Scores(scaled, keys, shift, self.left.scale, right.scale, *errors)

    def new_heaps(self) -> Heaps:
        """Heaps that any score enters."""
        shape = len(self.queries), min(self.k + _SPARE, len(self.scores.keys))
        lowest = np.full(shape, -np.inf, np.float32)
        return Heaps(lowest, np.zeros(shape, np.int32), lowest[:, 0].copy())

    def scan(self, heaps: Heaps, block: npt.NDArray[np.generic], row: int, key: int) -> None:
        """Put the best scores of a block of products into the heaps; `row` and `key` are its first ones."""
        _scan(block, row, key, self.scores, heaps, self.left.exact)

    def best(self, found: list[Heaps]) -> tuple[Floats, Rows]:
        """The k best keys of each query in any of its heaps, by their scores in float64.

        The lower of equal ones comes first. No key outside the heaps exceeds their highest threshold by more
        than the error of float32; a query whose k-th best score does not either is searched plainly.
        """
        candidates = np.concatenate([heaps.key for heaps in found], axis=1)
        keys, shape = self.scores.keys, (len(self.queries), self.k)
        scores, rows = np.empty(shape, np.float32), np.empty(shape, np.int64)

        def rescore(start: int, stop: int) -> None:
            ordered = np.sort(candidates[start:stop], axis=1)
            exact = np.empty(ordered.shape, np.float32)
            _exact_scores(ordered, start, self.scores, exact)
            order = np.argsort(-exact, axis=1, kind="stable")[:, : self.k]
            scores[start:stop] = np.take_along_axis(exact, order, axis=1)
            rows[start:stop] = np.take_along_axis(ordered, order, axis=1)

        in_threads(len(self.queries), rescore, 1024)
        if candidates.shape[1] < len(keys):
            bound = np.max([heaps.threshold for heaps in found], axis=0)
            bound += operands.float32_error(self.left, self.right, self.largest_shift)
            undecided = np.flatnonzero(scores[:, -1] <= bound)
            if len(undecided):
                found_plainly = plain.top_k(self.queries[undecided], keys, self.k, self.penalty)
                scores[undecided], rows[undecided] = found_plainly
        return scores, rows


def row_blocks(rows: npt.NDArray[Any], others: npt.NDArray[Any], visit: Visit) -> None:
    """Call `visit(products, first row, first column)` for every block of the product of two sides.

    A thread goes through all columns of its rows before it takes the next rows; threads start at different
    columns, so that they seldom want the same ones.
    """
    import torch

    left, right, workers = as_tensor(rows), as_tensor(others), worker_count()
    height = max(_FEWEST_BLOCK_ROWS, min(_BLOCK_ROWS, -(-len(left) // workers)))
    starts, columns = range(0, len(left), height), range(0, len(right), COLUMNS)
    kind = torch.int32 if left.dtype == torch.int8 else left.dtype
    local = threading.local()

    def work(number: int) -> None:
        if not hasattr(local, "memory"):
            local.memory = torch.empty(height * COLUMNS, dtype=kind)
        strip = left[starts[number] : starts[number] + height]
        for turn in range(len(columns)):
            first = columns[(turn + number * len(columns) // workers) % len(columns)]
            keys = right[first : first + COLUMNS]
            out = local.memory[: len(strip) * len(keys)].view(len(strip), len(keys))
            visit(multiply(strip, keys, out).numpy(), starts[number], first)

    with single_threaded_torch() as one_thread, ThreadPoolExecutor(workers, initializer=one_thread) as pool:
        list(pool.map(work, range(len(starts))))


def _read_only(rows: Floats) -> Floats:
    """Rows as one type of array, so that the loops are compiled once."""
    view = np.ascontiguousarray(rows, np.float32).view(np.ndarray)[:]
    view.flags.writeable = False
    return view


def as_tensor(rows: npt.NDArray[Any]) -> torch.Tensor:
    """An array as a tensor for reading."""
    import torch

    return torch.from_numpy(rows) if rows.dtype == np.int8 else placed(rows, torch.device("cpu"))


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
    """Flags for `count` scores, and an array for the places of those that are set."""
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
def _scan(block: Any, first_row: int, first_key: int, given: Any, heaps: Any, exact: bool) -> None:
    """Put the scores of a block that exceed the threshold of their row into its heap.

    A score that is not exact counts with its largest error, and is computed again in float32.
    """
    shift, thresholds = given.shift, heaps.threshold
    for first in range(0, block.shape[1], COLUMNS):
        width = min(COLUMNS, block.shape[1] - first)
        start, stop = first_key + first, first_key + first + width
        scales, raised = given.key_scale[start:stop], shift[start:stop] + given.key_error[start:stop]
        flags, hits = new_flags(width)
        for r in range(block.shape[0]):
            row, cells = first_row + r, block[r, first : first + width]
            threshold = thresholds[row] - given.query_error[row]
            _flag(cells, given.query_scale[row], scales, raised, threshold, flags)
            for h in range(flagged(flags, hits)):
                key, score = start + hits[h], np.float32(cells[hits[h]])
                if not exact:
                    score = float32_dot(given.queries, row, given.keys, key)
                if score + shift[key] > thresholds[row]:
                    push(heaps.score, heaps.key, thresholds, row, key, score + shift[key])


@njit(nogil=True, cache=True)
def _flag(cells: Any, scale: Any, scales: Any, raised: Any, threshold: Any, flags: Any) -> None:
    """Say which scores of a row may exceed its threshold; compiled to vectors."""
    for c in range(cells.shape[0]):
        flags[c] = np.uint8(np.float32(cells[c]) * scale * scales[c] + raised[c] >= threshold)


@njit(nogil=True, cache=True, fastmath=True)
def _exact_scores(candidates: Any, first: int, given: Any, out: Any) -> None:
    """The scores of each query's candidates, summed in float64; `first` is the first query."""
    queries, keys, shift = given.queries, given.keys, given.shift
    for row in range(candidates.shape[0]):
        for c in range(candidates.shape[1]):
            key = candidates[row, c]
            total = 0.0
            for d in range(queries.shape[1]):
                total += np.float64(queries[first + row, d]) * np.float64(keys[key, d])
            out[row, c] = np.float32(total + np.float64(shift[key]))


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def score_pools(
    queries: Any, keys: Any, inverse_norm: Any, pool: Any, scores: Any, level: Any, wanted: Any,
    start: int, stop: int,
) -> None:  # fmt: skip
    """Score the pools of `bilex.search.negatives`, without keys whose upper bounds do not reach the level."""
    for i in wanted[start:stop]:
        for c in range(pool.shape[1]):
            key = pool[i, c]
            if key >= 0 and not scores[i, c] < level[i]:
                total = np.float32(0)
                for d in range(keys.shape[1]):
                    total += queries[i, d] * keys[key, d]
                scores[i, c] = total * inverse_norm[key]
