"""A fused GPU kernel that scores pooled keys where they lie.

A gathered copy of the pools would be queries × pool × dimension floats, written and read in each update.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_KEYS, _DIMENSIONS = 32, 64  # per block


@triton.jit
def _score_kernel(
    queries,
    keys,
    inverse_norm,
    pool,
    wanted,
    scores,
    forbidden,
    pool_size: tl.constexpr,
    dimension: tl.constexpr,
    block: tl.constexpr,
    width: tl.constexpr,
) -> None:
    """Scores of one block of the pool of one query."""
    query = tl.load(wanted + tl.program_id(0))
    place = tl.program_id(1) * block + tl.arange(0, block)
    inside = place < pool_size
    key = tl.load(pool + query * pool_size + place, mask=inside, other=-1)
    allowed = key >= 0
    row = tl.where(allowed, key, 0)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, dimension, width):
        d = start + tl.arange(0, width)
        q = tl.load(queries + query * dimension + d, mask=d < dimension, other=0.0)
        part = tl.load(
            keys + row[:, None] * dimension + d[None, :],
            mask=allowed[:, None] & (d < dimension)[None, :],
            other=0.0,
        )
        total += tl.sum(part * q[None, :], axis=1)
    total *= tl.load(inverse_norm + row, mask=allowed, other=0.0)
    tl.store(scores + query * pool_size + place, tl.where(allowed, total, forbidden), mask=inside)


def score_pools(
    queries: torch.Tensor,
    keys: torch.Tensor,
    inverse_norm: torch.Tensor,
    pool: torch.Tensor,
    wanted: torch.Tensor,
    scores: torch.Tensor,
    forbidden: float,
) -> None:
    """Write into `scores` those of the `wanted` queries with their pooled keys; `forbidden` for key −1."""
    grid = (len(wanted), triton.cdiv(pool.shape[1], _KEYS))
    sizes = pool.shape[1], keys.shape[1], _KEYS, _DIMENSIONS
    tensors = queries.contiguous(), keys, inverse_norm.contiguous(), pool, wanted, scores
    _score_kernel[grid](*tensors, forbidden, *sizes)
