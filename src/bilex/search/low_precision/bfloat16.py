"""Rows in bfloat16, as a GPU multiplies them, and how far their products are off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from bilex.search.plain import FLOAT32_ROUNDING, check_finite
from bilex.vectors.stored import slices

_ROWS_AT_ONCE = 1 << 17
# How far a product of two rounded unit rows, itself rounded, can lie from the true cosine: bfloat16 moves
# each row by at most 2^-8 of its length and the result by at most 2^-8; sums of 2,000 float32 terms by 2^-12.
UNIT_ERROR = (1 + 2.0**-8) ** 2 * (1 + 2.0**-12) - 1 + 2.0**-8


class Operand(NamedTuple):
    """Rows in bfloat16, their distance from the true rows, and their lengths."""

    rows: torch.Tensor
    error: torch.Tensor
    norm: torch.Tensor


def operand(rows: torch.Tensor, extra: torch.Tensor | None, scale: float) -> Operand:
    """Round `scale`·rows, with `extra` columns beside them, to a width that tensor cores like."""
    width = rows.shape[1] + (0 if extra is None else extra.shape[1])
    low = torch.zeros(len(rows), -(-width // 8) * 8, dtype=torch.bfloat16, device=rows.device)
    error, norm = torch.zeros(len(rows), device=rows.device), torch.zeros(len(rows), device=rows.device)
    for block in slices(len(rows), _ROWS_AT_ONCE):
        part = rows[block] * scale
        part = part if extra is None else torch.cat([part, extra[block]], 1)
        rounded = part.to(torch.bfloat16)
        low[block, :width] = rounded
        error[block] = (part - rounded.float()).square().sum(1)
        norm[block] = rounded.float().square().sum(1)
    check_finite(torch.isfinite(norm).cpu().numpy())
    return Operand(low, error.sqrt() * (1 + 1e-5), norm.sqrt() * (1 + 1e-5))


def rounded_units(rows: torch.Tensor) -> torch.Tensor:
    """Unit rows in bfloat16, padded to a width that tensor cores like."""
    return torch.nn.functional.pad(rows.to(torch.bfloat16), (0, -rows.shape[1] % 8))


def error_bound(queries: Operand, keys: Operand) -> torch.Tensor:
    """Per query, the largest possible distance of a proposed score from the true one."""
    largest_norm, largest_error = keys.norm.max(), keys.error.max()
    bound = queries.error * (largest_norm + largest_error) + queries.norm * largest_error
    rounding = queries.rows.shape[1] * FLOAT32_ROUNDING
    largest_score = queries.norm * largest_norm * (1 + rounding)
    return (bound + rounding * largest_score + rounding_error(largest_score)) * (1 + 1e-6)


def rounding_error(largest: torch.Tensor) -> torch.Tensor:
    """The furthest that rounding to bfloat16 moves a number of at most this size.

    With p the power of two at or under `largest`: numbers under p move by at most p/512, those from p on
    by at most p/256 and no further than back to p.
    """
    power = torch.ldexp(torch.ones_like(largest), torch.frexp(largest).exponent - 1)
    return torch.maximum(power / 512, torch.minimum(largest - power, power / 256))


@contextmanager
def full_sums() -> Iterator[None]:
    """Forbid cuBLAS to add partial sums in bfloat16."""
    before = torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = before
