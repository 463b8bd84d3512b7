"""Top-k search, the mean of the k best, and CSLS."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


def top_k(
    queries: Floats, keys: Floats, k: int, *, key_penalty: Floats | None = None, device: str = "auto",
    memory: int | None = None,
) -> tuple[Floats, Rows]:
    """For each query the k keys of highest score, best first.

    The score is the dot product q·y, or 2·q·y − penalty(y) when `key_penalty` is given ("half CSLS":
    the penalty is the mean similarity of y to its neighbours). Ties go to the lower index. Rows are
    taken as they are: give unit rows for cosines.

    Args:
        queries: One query a row.
        keys: One key a row.
        k: How many; if there are fewer keys, all of them.
        key_penalty: One number a key.
        device: "auto", "cpu" or "cuda".
        memory: Bytes that the working blocks may take; None follows the memory that there is.

    Returns:
        Scores and key indices, each of shape (queries, k).
    """
    k = min(k, len(keys))
    scores = np.empty((len(queries), k), np.float32)
    rows = np.empty((len(queries), k), np.int64)
    for start in range(0, len(queries), 512):
        block = queries[start : start + 512] @ keys.T
        if key_penalty is not None:
            block = 2 * block - key_penalty
        order = np.argsort(-block, axis=1, kind="stable")[:, :k]
        rows[start : start + 512] = order
        scores[start : start + 512] = np.take_along_axis(block, order, 1)
    return scores, rows


def mean_of_best(queries: Floats, keys: Floats, k: int = 10, *, device: str = "auto", memory: int | None = None) -> Floats:
    """For each query the mean of its k highest dot products with the keys (CSLS's r)."""
    scores, _ = top_k(queries, keys, k, device=device, memory=memory)
    return scores.mean(axis=1)


def neighbourhoods(
    source: Floats, target: Floats, k: int = 10, *, device: str = "auto", memory: int | None = None
) -> tuple[Floats, Floats]:
    """CSLS's two terms, r of every source row and r of every target row, from one pass."""
    return mean_of_best(source, target, k), mean_of_best(target, source, k)


def csls_top_k(
    queries: Floats, keys: Floats, k: int, *, query_mean: Floats, key_mean: Floats, device: str = "auto",
    memory: int | None = None,
) -> tuple[Floats, Rows]:
    """For each query the k keys of highest CSLS, 2·q·y − r(q) − r(y), best first.

    Args:
        queries: One query a row.
        keys: One key a row.
        k: How many.
        query_mean: r of each query.
        key_mean: r of each key.
        device: "auto", "cpu" or "cuda".
        memory: Bytes for the working blocks.

    Returns:
        CSLS scores and key indices, each of shape (queries, k).
    """
    scores, rows = top_k(queries, keys, k, key_penalty=key_mean, device=device, memory=memory)
    return scores - query_mean[:, None], rows
