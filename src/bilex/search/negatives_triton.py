"""Fused GPU kernels for `negatives_gpu`: score pooled keys, and weigh them, without gathering rows.

A gathered copy of the pools would be queries × pool × dimension floats, written and read again for each
update; these kernels read each key row where it lies.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_CANDIDATES = 32
_DIMENSIONS = 64


@triton.jit
def _score_kernel(
    queries,
    keys,
    inverse,
    pool,
    barred,
    wanted,
    scores,
    pool_size: tl.constexpr,
    dimension: tl.constexpr,
    block: tl.constexpr,
    width: tl.constexpr,
) -> None:
    """Scores of one block of one query's pool."""
    query = tl.load(wanted + tl.program_id(0))
    place = tl.program_id(1) * block + tl.arange(0, block)
    inside = place < pool_size
    key = tl.load(pool + query * pool_size + place, mask=inside, other=0)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, dimension, width):
        d = start + tl.arange(0, width)
        q = tl.load(queries + query * dimension + d, mask=d < dimension, other=0.0)
        rows = tl.load(
            keys + key[:, None] * dimension + d[None, :],
            mask=inside[:, None] & (d < dimension)[None, :],
            other=0.0,
        )
        total += tl.sum(rows * q[None, :], axis=1)
    total *= tl.load(inverse + key, mask=inside, other=0.0)
    hidden = tl.load(barred + query * pool_size + place, mask=inside, other=1)
    total = tl.where(hidden != 0, float("-inf"), total)
    tl.store(scores + query * pool_size + place, total, mask=inside)


@triton.jit
def _weigh_kernel(
    keys,
    inverse,
    index,
    score,
    wanted,
    total,
    context,
    temperature,
    n: tl.constexpr,
    dimension: tl.constexpr,
    block: tl.constexpr,
    width: tl.constexpr,
) -> None:
    """One slice of the weighted sum of one query's nearest keys, and the sum of the weights."""
    query = tl.load(wanted + tl.program_id(0))
    d = tl.program_id(1) * width + tl.arange(0, width)
    sums = tl.zeros((width,), tl.float32)
    weights = tl.zeros((block,), tl.float32)
    for start in range(0, n, block):
        place = start + tl.arange(0, block)
        inside = place < n
        key = tl.load(index + query * n + place, mask=inside, other=0)
        value = tl.load(score + query * n + place, mask=inside, other=float("-inf"))
        weight = tl.exp(value / temperature)
        weights += weight
        weight *= tl.load(inverse + key, mask=inside, other=0.0)
        rows = tl.load(
            keys + key[:, None] * dimension + d[None, :],
            mask=inside[:, None] & (d < dimension)[None, :],
            other=0.0,
        )
        sums += tl.sum(rows * weight[:, None], axis=0)
    tl.store(context + query * dimension + d, sums, mask=d < dimension)
    if tl.program_id(1) == 0:
        tl.store(total + query, tl.sum(weights, axis=0))


def score_pools(
    queries: torch.Tensor,
    keys: torch.Tensor,
    inverse: torch.Tensor,
    pool: torch.Tensor,
    barred: torch.Tensor,
    wanted: torch.Tensor,
    scores: torch.Tensor,
) -> None:
    """Write into `scores` those of the `wanted` queries with their pooled keys; barred keys get −∞."""
    grid = (len(wanted), triton.cdiv(pool.shape[1], _CANDIDATES))
    _score_kernel[grid](
        queries,
        keys,
        inverse,
        pool,
        barred,
        wanted,
        scores,
        pool.shape[1],
        keys.shape[1],
        _CANDIDATES,
        _DIMENSIONS,
    )


def weigh_nearest(
    keys: torch.Tensor,
    inverse: torch.Tensor,
    index: torch.Tensor,
    score: torch.Tensor,
    wanted: torch.Tensor,
    total: torch.Tensor,
    context: torch.Tensor,
    temperature: float,
) -> None:
    """Write into `total` and `context` the weights' sum and the weighted sum of the `wanted` queries."""
    grid = (len(wanted), triton.cdiv(keys.shape[1], _DIMENSIONS))
    _weigh_kernel[grid](
        keys,
        inverse,
        index,
        score,
        wanted,
        total,
        context,
        temperature,
        index.shape[1],
        keys.shape[1],
        _CANDIDATES,
        _DIMENSIONS,
    )
