"""Exact top-k for a handful of queries, with numpy alone.

A word or two against a vocabulary is less work than rounding that vocabulary to a fast precision, and far
less than starting torch and the compiled loops. So every score is computed in float64 at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.vectors.stored import Matrix

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

_MOST_QUERIES = 32
_MOST_SCORES = 1 << 24
_BLOCK = 8192
_FLOAT32_ROUNDING = 2.0**-23
_FLOAT64_ROUNDING = 2.0**-52


def are_few(queries: int, keys: int) -> bool:
    """Whether so many queries against so many keys are best served here; their scores fill 128 MB at most."""
    return 0 < queries <= _MOST_QUERIES and 0 < queries * keys <= _MOST_SCORES


def top_k(queries: Floats, keys: Matrix, k: int, penalty: Floats | None) -> tuple[Floats, Rows]:
    """For each query the k keys of highest score; see `bilex.search.top_k`.

    A matrix product may give two equal keys scores that differ in the last bit of a float64, by where they
    stand. So the product only says which keys can be among the best; those are summed once more, row by
    row, each in the same order.
    """
    scale = 1.0 if penalty is None else 2.0
    shift = np.zeros(len(keys)) if penalty is None else -penalty.astype(np.float64)
    asked = scale * queries.astype(np.float64)
    proposed, longest = _scores(asked, keys, shift)
    scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
    for place, query in enumerate(asked):
        bar = np.partition(proposed[place], -k)[-k]
        length = float(np.linalg.norm(query))
        bar -= 4 * len(query) * _FLOAT64_ROUNDING * (length * longest + abs(shift).max())
        bar -= 2 * _FLOAT32_ROUNDING * abs(bar) + np.finfo(np.float32).tiny
        candidates = np.flatnonzero(proposed[place] >= bar)
        exact = (_block(keys, candidates) * query).sum(axis=1) + shift[candidates]
        rounded = exact.astype(np.float32)
        best = np.argsort(-rounded, kind="stable")[:k]
        scores[place], rows[place] = rounded[best], candidates[best]
    return scores, rows


def _scores(
    asked: npt.NDArray[np.float64], keys: Matrix, shift: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], float]:
    """Every score, and the length of the longest key.

    Raises:
        BilexError: A query or a key is not finite.
    """
    _check_finite(asked)
    scores, longest = np.empty((len(asked), len(keys))), 0.0
    for start in range(0, len(keys), _BLOCK):
        block = _block(keys, slice(start, start + _BLOCK))
        squares = np.einsum("ij,ij->i", block, block)
        if not np.isfinite(squares).all():
            _check_finite(block, start)
        longest = max(longest, float(squares.max()) ** 0.5)
        scores[:, start : start + _BLOCK] = asked @ block.T
    return scores + shift, longest


def _block(keys: Matrix, which: slice | Rows) -> npt.NDArray[np.float64]:
    return np.asarray(keys[which], np.float32).astype(np.float64)


def _check_finite(rows: npt.NDArray[np.float64], first: int = 0) -> None:
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        row = first + int(np.flatnonzero(~finite)[0])
        raise BilexError(f"row {row} of the vectors holds NaN or infinite values; remove that word.")
