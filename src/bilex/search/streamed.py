"""Exact top-k for a few queries at a time against keys that stay: what a server needs, without torch.

Keys and queries are rotated and rounded to 8 bits, so that keys take a quarter of their memory, and a batch
of queries reads them only once. A key whose proposed score plus its largest error reaches the k-th best of
the proposed scores less theirs is a candidate; candidates are read from the float32 vectors and scored in
float64, the best proposals first, so that few of them are read.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit
from bilex.core.errors import BilexError
from bilex.core.machine import processor
from bilex.search import plain
from bilex.search.heaps import Heaps, flagged, new_flags, push
from bilex.search.low_precision import rounding, vnni
from bilex.search.search import Floats, Rows

_BLOCK = 128 * vnni.LANES  # keys that are rounded, and whose products are looked at, together
_COLUMNS = 16 * vnni.LANES  # keys whose scores are compared with the same threshold
_ROOM = 512  # candidates of a query beyond k
_AT_A_TIME = 32  # queries: more gain little, and the keys that they read of a file take memory
_FLOAT32_ROUNDING = 2.0**-23


class _Queries(NamedTuple):
    """Rounded queries, their scales, and how far their scores may be off: `error` + `reach` · key error."""

    rows: npt.NDArray[np.int8]
    scale: Floats
    error: Floats
    reach: Floats


class _Candidates(NamedTuple):
    """Keys that may be among the best, and the most that they can score; `number` may exceed the room."""

    heaps: Heaps
    key: npt.NDArray[np.int32]
    highest: Floats
    number: npt.NDArray[np.int64]


class StreamedKeys:
    """Keys prepared once for any number of small searches.

    Args:
        keys: One float32 row per key; only the few rows that come near the best are read later.
        penalty: CSLS's term of each key.
        read: Called after rows of `keys` were read, so that the caller may release a file's pages.
        instruction: Whether AVX-512 VNNI multiplies; None decides by the processor.

    Raises:
        BilexError: A row is not finite.
    """

    def __init__(
        self,
        keys: Floats,
        penalty: Floats | None = None,
        read: Callable[[], None] = lambda: None,
        *,
        instruction: bool | None = None,
    ) -> None:
        self.keys, self._read, self._penalty = keys, read, penalty
        self._vnni = vnni.available() if instruction is None else instruction
        self._threads = processor().threads
        self._pool = ThreadPoolExecutor(self._threads, "streamed-keys")
        count, self._width = keys.shape
        self._shift = np.zeros(count, np.float32) if penalty is None else -np.asarray(penalty, np.float32)
        self._rotation = rounding.rotation(self._width)
        self._low: npt.NDArray[Any] = (
            vnni.empty(count, self._width) if self._vnni else np.empty((count, self._width), np.int8)
        )
        self._scale, self._error = np.zeros(count, np.float32), np.zeros(count, np.float32)
        self._longest = 0.0
        for start in range(0, count, _BLOCK):
            self._round(start, min(start + _BLOCK, count))
            read()

    def _round(self, start: int, stop: int) -> None:
        low, scale, error, norm = rounding.rounded(np.asarray(self.keys[start:stop]) @ self._rotation)
        if not np.isfinite(norm).all():
            row = start + int(np.flatnonzero(~np.isfinite(norm))[0])
            raise BilexError(f"row {row} of the vectors holds NaN or infinite values; remove that word.")
        error += rounding.rotation_error(self._width) * (norm + error)
        self._scale[start:stop], self._error[start:stop] = scale, error * (1 + 1e-6)
        self._longest = max(self._longest, float((norm + error).max()))
        if self._vnni:
            vnni.put(low, self._low, start)
        else:
            self._low[start:stop] = low

    def top_k(self, queries: Floats, k: int, *, penalised: bool = True) -> tuple[Floats, Rows]:
        """For each query the k keys of highest score, best first.

        Args:
            queries: One float32 row per query.
            k: How many keys; at most as many as there are.
            penalised: Whether the score is twice the similarity less the key's penalty, if there are any,
                or the similarity.

        Raises:
            BilexError: A query is not finite.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
        penalty = self._penalty if penalised else None
        for start in range(0, len(queries), _AT_A_TIME):
            some = queries[start : start + _AT_A_TIME]
            found = self._candidates(some, k, penalty)
            for place, query in enumerate(some):
                answer = self._best(query, place, found, k, penalty)
                scores[start + place], rows[start + place] = answer
            self._read()
        return scores, rows

    def _candidates(self, queries: Floats, k: int, penalty: Floats | None) -> list[_Candidates]:
        """The candidates of some queries, from each thread's part of the keys."""
        scale, shift = (1.0, np.zeros(len(self.keys), np.float32)) if penalty is None else (2.0, self._shift)
        rounded = self._rounded(queries * np.float32(scale), float(np.abs(shift).max(initial=0)))
        blocks = range(0, len(self.keys), _BLOCK)
        parts = max(1, min(self._threads, len(self.keys) // (k + _BLOCK)))

        def scan(part: int) -> _Candidates:
            shape = len(queries), k + _ROOM
            found = _Candidates(
                Heaps.empty(len(queries), k),
                np.empty(shape, np.int32),
                np.empty(shape, np.float32),
                np.zeros(len(queries), np.int64),
            )
            memory = np.empty(len(queries) * _BLOCK, np.int32)
            for start in blocks[len(blocks) * part // parts : len(blocks) * (part + 1) // parts]:
                width = min(_BLOCK, len(self.keys) - start)
                block = memory[: len(queries) * width].reshape(len(queries), width)
                multiply = vnni.products if self._vnni else rounding.products
                multiply(self._low, rounded.rows, start, block)
                for at in range(0, width, _COLUMNS):  # thresholds rise from one to the next
                    _collect(block, at, start, *rounded[1:], self._scale, self._error, shift, *found)
            return found

        others = [self._pool.submit(scan, part) for part in range(1, parts)]
        return [scan(0), *(other.result() for other in others)]

    def _rounded(self, queries: Floats, largest_shift: float) -> _Queries:
        """Queries in 8 bits, with bounds on the errors of their scores."""
        norm = np.linalg.norm(queries.astype(np.float64), axis=1)
        if not np.isfinite(norm).all():
            raise BilexError("a query holds NaN or infinite values; nothing can be near it.")
        rotated = np.empty(queries.shape, np.float32)
        rounding.rotate(queries, self._rotation, rotated)
        low, scale, error, _ = rounding.rounded(rotated)
        off = _FLOAT32_ROUNDING * ((self._width + 16) * norm * self._longest + 4 * largest_shift)
        off += (error + norm * rounding.rotation_error(self._width)) * self._longest
        off, reach = (np.asarray(bound * (1 + 1e-6), np.float32) for bound in (off, norm))
        return _Queries(vnni.padded(low) if self._vnni else low, scale, off, reach)

    def _best(
        self, query: Floats, place: int, found: list[_Candidates], k: int, penalty: Floats | None
    ) -> tuple[Floats, Rows]:
        """The exact k best keys of a query; those whose proposals are best are read first."""
        if any(part.number[place] > part.key.shape[1] for part in found):  # masses of equal scores
            scores, rows = plain.top_k(query[None], self.keys, k, penalty)
            return scores[0], rows[0]
        keys = np.concatenate([part.key[place, : part.number[place]] for part in found])
        highest = np.concatenate([part.highest[place, : part.number[place]] for part in found])
        order = np.argsort(-highest, kind="stable")
        first, rest = order[:k], order[k:]
        exact = self._exact(query, keys[first], penalty)
        rest = rest[highest[rest] >= np.sort(exact)[-k]]
        exact = np.concatenate([exact, self._exact(query, keys[rest], penalty)])
        rows = keys[np.concatenate([first, rest])].astype(np.int64)
        best = np.lexsort((rows, -exact))[:k]
        return exact[best], rows[best]

    def _exact(self, query: Floats, keys: npt.NDArray[np.int32], penalty: Floats | None) -> Floats:
        scale = 1.0 if penalty is None else 2.0
        scores = (self.keys[keys].astype(np.float64) * (scale * query.astype(np.float64))).sum(axis=1)
        return np.asarray(
            scores if penalty is None else scores - penalty[keys].astype(np.float64), np.float32
        )


@njit(nogil=True, cache=True)
def _collect(
    block: Any,
    at: int,
    first: int,
    query_scale: Any,
    query_error: Any,
    reach: Any,
    key_scale: Any,
    key_error: Any,
    shift: Any,
    heaps: Any,
    found: Any,
    highest: Any,
    count: Any,
) -> None:
    """Note the keys of a block whose score may reach the threshold of their query, and raise that."""
    room = found.shape[1]
    width = min(_COLUMNS, block.shape[1] - at)
    flags, hits = new_flags(width)
    start, stop = first + at, first + at + width
    scales, errors, shifts = key_scale[start:stop], key_error[start:stop], shift[start:stop]
    scores, keys, thresholds = heaps.score, heaps.key, heaps.threshold
    for q in range(block.shape[0]):
        cells = block[q][at : at + width]
        scale, error, of_keys = query_scale[q], query_error[q], reach[q]
        _flag(cells, scale, error, of_keys, scales, errors, shifts, thresholds[q], flags)
        for h in range(flagged(flags, hits)):
            c = hits[h]
            key, off = start + c, error + of_keys * errors[c]
            most = np.float32(cells[c]) * (scale * scales[c]) + shifts[c] + off
            if most < thresholds[q] or count[q] > room:
                continue
            if count[q] == room:
                count[q] = _without_worst(found, highest, q, thresholds[q])
            if count[q] < room:
                found[q, count[q]], highest[q, count[q]] = key, most
            count[q] += 1
            if most - 2 * off > thresholds[q]:
                push(scores, keys, thresholds, q, key, most - 2 * off)


@njit(nogil=True, cache=True)
def _without_worst(found: Any, highest: Any, query: int, threshold: Any) -> int:
    """Drop the candidates of a query that cannot reach its threshold; how many are left."""
    kept = 0
    for place in range(found.shape[1]):
        if highest[query, place] >= threshold:
            found[query, kept], highest[query, kept] = found[query, place], highest[query, place]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def _flag(
    cells: Any,
    scale: Any,
    error: Any,
    reach: Any,
    scales: Any,
    errors: Any,
    shifts: Any,
    threshold: Any,
    flags: Any,
) -> None:
    """Say which scores of a query may reach its threshold; compiled to vectors."""
    for c in range(cells.shape[0]):
        score = np.float32(cells[c]) * (scale * scales[c]) + shifts[c]
        flags[c] = np.uint8(score + (error + reach * errors[c]) >= threshold)
