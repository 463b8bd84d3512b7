"""The exact place of one given key among all keys, for each query.

A top-k search says nothing about a right answer beyond the k-th place; the mean reciprocal rank needs
it. The place is counted, not sorted, so memory stays bounded by a block of scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bilex.core.device import resolve_device
from bilex.search.search import AnyRows, Floats, Rows, placed

_BLOCK_BYTES = 256 << 20
_COPIES = 3  # the products, their penalised form, and the masks of the comparison


def ranks_of(
    queries: Floats,
    keys: AnyRows,
    chosen: Rows,
    penalties: Sequence[Floats | None],
    *,
    device: str = "auto",
    memory: int = _BLOCK_BYTES,
) -> Rows:
    """The rank of one chosen key for each query, 1 for the best.

    Args:
        queries: One query a row.
        keys: One key per row.
        chosen: For each query the key whose rank is asked for.
        penalties: One ranking for each: None ranks by q·y, numbers (one per key) by 2·q·y − penalty(y).
            All of them are served by one product.
        device: "auto", "cpu" or "cuda".
        memory: Bytes that a block of scores may take.

    Returns:
        Ranks of shape (penalties, queries). A key of equal score and lower index stands before.
    """
    place = resolve_device(device)
    on_device = placed(keys, place)
    bias = [None if p is None else placed(p, place) for p in penalties]
    index = torch.arange(len(keys), device=place)
    ranks = np.empty((len(penalties), len(queries)), np.int64)
    step = max(1, memory // (4 * _COPIES * max(1, len(keys))))
    for start in range(0, len(queries), step):
        block = slice(start, start + step)
        rows = placed(queries[block], place)
        key = torch.as_tensor(chosen[block], device=place)[:, None]
        products = rows @ on_device.T
        for number, penalty in enumerate(bias):
            scores = products if penalty is None else torch.sub(2 * products, penalty)
            own = scores.gather(1, key)
            before = (scores > own).sum(1) + ((scores == own) & (index < key)).sum(1)
            ranks[number, block] = (before + 1).cpu().numpy()
    return ranks
