"""The searches of this package written plainly, with numpy alone.

`top_k` serves the few queries of a command such as `bilex translate`, for which torch and the compiled loops
would take longer to load than this takes. The tests compare the fast searches with these functions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.vectors.stored import Matrix, slices

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_MOST_QUERIES = 32
_MOST_SCORES = 1 << 24  # 128 MB
_BLOCK = 8192
FLOAT32_ROUNDING = 2.0**-23
_FLOAT64_ROUNDING = 2.0**-52


def are_few(queries: int, keys: int) -> bool:
    """Whether `top_k` answers these queries sooner than the other searches could start."""
    return 0 < queries <= _MOST_QUERIES and 0 < queries * keys <= _MOST_SCORES


def top_k(queries: Floats, keys: Matrix, k: int, penalty: Floats | None) -> tuple[Floats, Rows]:
    """For each query the k keys of highest score, computed in float64; see `bilex.search.top_k`.

    A matrix product may give two equal keys scores that differ in the last bit, depending on where they are.
    So the product only selects candidates; these are summed once more, each in the same order.
    """
    scale, shift = 1.0, np.zeros(len(keys))
    if penalty is not None:
        scale, shift = 2.0, -penalty.astype(np.float64)
    largest_shift = abs(shift).max(initial=0.0)
    scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
    step = max(1, _MOST_SCORES // max(1, len(keys)))
    for block in slices(len(queries), step):
        scaled = scale * queries[block].astype(np.float64)
        proposed, longest = _products(scaled, keys)
        proposed += shift
        for row, (query, found) in enumerate(zip(scaled, proposed, strict=True), block.start):
            threshold = np.partition(found, -k)[-k]
            length = float(np.linalg.norm(query))
            threshold -= 4 * len(query) * _FLOAT64_ROUNDING * (length * longest + largest_shift)
            threshold -= 2 * FLOAT32_ROUNDING * abs(threshold) + np.finfo(np.float32).tiny
            candidates = np.flatnonzero(found >= threshold)
            exact = (_in_float64(keys, candidates) * query).sum(axis=1) + shift[candidates]
            rounded = exact.astype(np.float32)
            best = np.argsort(-rounded, kind="stable")[:k]
            scores[row], rows[row] = rounded[best], candidates[best]
    return scores, rows


def _products(queries: Doubles, keys: Matrix) -> tuple[Doubles, float]:
    """Every product, and the length of the longest key."""
    check_finite(np.asarray(np.isfinite(queries).all(axis=1)))
    products, longest = np.empty((len(queries), len(keys))), 0.0
    for at in slices(len(keys), _BLOCK):
        block = _in_float64(keys, at)
        squares = np.einsum("ij,ij->i", block, block)
        check_finite(np.isfinite(squares), at.start)
        longest = max(longest, float(squares.max()) ** 0.5)
        products[:, at] = queries @ block.T
    return products, longest


def _in_float64(keys: Matrix, which: slice | Rows) -> Doubles:
    return np.asarray(keys[which], np.float32).astype(np.float64)


def check_finite(finite: npt.NDArray[np.bool_], first: int = 0) -> None:
    """Refuse rows, counted from `first`, that are not all finite."""
    if not finite.all():
        row = first + int(np.argmin(finite))
        raise BilexError(f"row {row} of the vectors holds NaN or infinite values; remove that word.")


def match(source: Floats, target: Floats, k: int, kept: tuple[Rows, Rows]) -> tuple[Rows, Rows, float]:
    """Best partners by CSLS, both ways, and the mean best similarity; see `bilex.search.matching`.

    `kept` says for each direction which scores count, one query per row; the others count as zero.
    """
    scores = source.astype(np.float64) @ target.astype(np.float64).T
    partners, best = [], []
    for some, mask in zip((scores, scores.T), kept, strict=True):
        mean_of_keys = np.sort(some, axis=0)[-k:].mean(axis=0)
        partners.append(np.where(mask, some - mean_of_keys / 2, 0).argmax(axis=1))
        best.append(some.max(axis=1).mean())
    return partners[0], partners[1], float(best[0] + best[1]) / 2


def nearest(query_units: Doubles, key_units: Doubles, n: int, forbidden: list[set[int]]) -> Rows:
    """The n keys of highest score of each query, without its forbidden ones (`bilex.search.negatives`)."""
    scores = query_units @ key_units.T
    for row, keys in enumerate(forbidden):
        scores[row, list(keys)] = -np.inf
    return np.argsort(-scores, axis=1, kind="stable")[:, :n]
