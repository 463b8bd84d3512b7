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


@triton.jit
def _units_kernel(
    image,
    previous,
    inverse,
    step,
    count,
    dimension: tl.constexpr,
    block: tl.constexpr,
    width: tl.constexpr,
) -> None:
    """Some rows brought to length one in place, with 1/length and the distance from their previous units."""
    row = (tl.program_id(0) * block + tl.arange(0, block)).to(tl.int64)
    d = tl.arange(0, width)
    inside = (row < count)[:, None] & (d < dimension)[None, :]
    place = row[:, None] * dimension + d[None, :]
    values = tl.load(image + place, mask=inside, other=0.0)
    old = tl.load(previous + place, mask=inside, other=0.0)
    scale = 1.0 / tl.maximum(tl.sqrt(tl.sum(values * values, axis=1)), 1e-37)
    values *= scale[:, None]
    moved = values - old
    tl.store(image + place, values, mask=inside)
    tl.store(inverse + row, scale, mask=row < count)
    tl.store(step + row, tl.sqrt(tl.sum(moved * moved, axis=1)), mask=row < count)


def make_units(
    image: torch.Tensor, previous: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See `bilex.search.negatives.to_units`; `image` is overwritten."""
    count, dimension = image.shape
    inverse, step = image.new_empty(count), image.new_empty(count)
    block = 4
    _units_kernel[(triton.cdiv(count, block),)](
        image,
        image if previous is None else previous,
        inverse,
        step,
        count,
        dimension,
        block,
        triton.next_power_of_2(dimension),
    )
    return inverse, image, step if previous is not None else step.zero_()


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
