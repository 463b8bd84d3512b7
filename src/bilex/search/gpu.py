"""Exact top-k and random matching on a GPU: bfloat16 products propose scores, float64 decides.

A strip of queries meets all keys in one product. The k best keys of a query lie in the k groups of keys with
the highest maxima, so only group maxima are ranked; the best groups' proposals are ranked in turn, and the
leading ones are scored again in float64. A row whose last re-scored proposal could still hide a better key
behind it (by the measured rounding errors) is done again with twice as many.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from bilex.core.device import in_blocks
from bilex.core.errors import BilexError

_GROUP = 16
_ROUNDED_AT_ONCE = 1 << 17
_FLOAT32_ROUNDING = 2.0**-23
_FEWEST_ROWS = 256
_STRIP = 1 << 26  # scores that are penalised and hidden at a time
# How far a product of two rounded unit rows, itself rounded, can lie from the true cosine: bfloat16 moves
# each row by at most 2^-8 of its length and the result by at most 2^-8; sums of 2,000 float32 terms by 2^-12.
UNIT_ERROR = (1 + 2.0**-8) ** 2 * (1 + 2.0**-12) - 1 + 2.0**-8


class Operand(NamedTuple):
    """Rows in bfloat16, their distance from the true rows, and their lengths."""

    rows: torch.Tensor
    error: torch.Tensor
    norm: torch.Tensor


def operand(rows: torch.Tensor, extra: torch.Tensor | None, scale: float) -> Operand:
    """Round `scale`·rows with `extra` columns beside them; pad to widths that tensor cores like."""
    width = rows.shape[1] + (0 if extra is None else extra.shape[1])
    low = torch.zeros(len(rows), -(-width // 8) * 8, dtype=torch.bfloat16, device=rows.device)
    error, norm = torch.zeros(len(rows), device=rows.device), torch.zeros(len(rows), device=rows.device)
    for start in range(0, len(rows), _ROUNDED_AT_ONCE):
        block = slice(start, start + _ROUNDED_AT_ONCE)
        first = 0
        for part in [rows[block] * scale] if extra is None else [rows[block] * scale, extra[block]]:
            rounded = part.to(torch.bfloat16)
            low[block, first : first + part.shape[1]] = rounded
            error[block] += (part - rounded.float()).square().sum(1)
            norm[block] += rounded.float().square().sum(1)
            first += part.shape[1]
    if not bool(torch.isfinite(norm).all()):
        row = int(torch.nonzero(~torch.isfinite(norm))[0])
        raise BilexError(f"row {row} of the vectors holds NaN or infinite values; remove that word.")
    return Operand(low, error.sqrt() * (1 + 1e-5), norm.sqrt() * (1 + 1e-5))


def rounded_units(rows: torch.Tensor) -> torch.Tensor:
    """Unit rows in bfloat16, padded to widths that tensor cores like."""
    return torch.nn.functional.pad(rows.to(torch.bfloat16), (0, -rows.shape[1] % 8))


def error_bound(queries: Operand, keys: Operand) -> torch.Tensor:
    """Per query, the largest possible distance of a proposed score from the true one."""
    largest_norm, largest_error = keys.norm.max(), keys.error.max()
    bound = queries.error * (largest_norm + largest_error) + queries.norm * largest_error
    rounding = queries.rows.shape[1] * _FLOAT32_ROUNDING
    largest_score = queries.norm * largest_norm * (1 + rounding)
    return (bound + rounding * largest_score + _bfloat16_rounding(largest_score)) * (1 + 1e-6)


def _bfloat16_rounding(largest: torch.Tensor) -> torch.Tensor:
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


class KeySearch:
    """Keys prepared once for any number of searches; see `bilex.search.KeySearch`."""

    def __init__(self, keys: torch.Tensor, penalty: torch.Tensor | None) -> None:
        self.keys, self.scale = keys, 1.0 if penalty is None else 2.0
        extra = None
        if penalty is not None:
            high = penalty.to(torch.bfloat16).float()
            extra = torch.stack([high, penalty - high], 1)
        rounded = operand(keys, extra, 1.0)
        self.right = rounded._replace(rows=padded(rounded.rows))
        self.shift = torch.zeros(len(keys), device=keys.device) if penalty is None else -penalty

    def top_k(self, queries: torch.Tensor, k: int, memory: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Exact top-k of some queries, in strips that fit the memory."""
        extra = None if self.scale == 1 else -torch.ones(len(queries), 2, device=queries.device)
        left = operand(queries, extra, self.scale)
        bound = error_bound(left, self.right)
        scores = torch.empty(len(queries), k, device=queries.device)
        rows = torch.empty(len(queries), k, dtype=torch.int64, device=queries.device)
        wanted, look_at = torch.arange(len(queries), device=queries.device), k + max(22, k // 2)
        with full_sums():
            while len(wanted):
                look_at = min(look_at, len(self.keys))
                wanted = self._fill(queries, left, bound, wanted, look_at, memory, scores, rows)
                look_at *= 2
        return scores, rows

    def _fill(
        self,
        queries: torch.Tensor,
        left: Operand,
        bound: torch.Tensor,
        wanted: torch.Tensor,
        look_at: int,
        memory: int,
        scores: torch.Tensor,
        rows: torch.Tensor,
    ) -> torch.Tensor:
        """Write the k best among the `look_at` best proposals of the `wanted` queries; those not decided."""
        undecided = []

        def search(block: slice) -> None:
            part = wanted[block]
            candidates, worst = best_proposals(left.rows[part], self.right.rows, len(self.keys), look_at)
            candidates = candidates.sort(dim=1).values
            exact = torch.einsum("qd,qcd->qc", queries[part].double(), self.keys[candidates].double())
            exact = (exact * self.scale + self.shift[candidates].double()).float()
            exact, order = exact.sort(dim=1, descending=True, stable=True)
            scores[part] = exact[:, : scores.shape[1]]
            rows[part] = candidates.gather(1, order[:, : scores.shape[1]])
            sure = scores[part][:, -1] > worst + bound[part]
            undecided.append(part[~sure] if look_at < len(self.keys) else part[:0])

        cost = len(self.right.rows) * 2 + look_at * (_GROUP * 16 + self.keys.shape[1] * 12)
        in_blocks(len(wanted), memory // cost, search)
        return torch.cat(undecided)


def top_k(
    queries: torch.Tensor, keys: torch.Tensor, k: int, penalty: torch.Tensor | None, memory: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Exact top-k; see `bilex.search.top_k`."""
    return KeySearch(keys, penalty).top_k(queries, k, memory)


def best_proposals(
    queries: torch.Tensor, keys: torch.Tensor, key_count: int, look_at: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The `look_at` best keys of each query by the low-precision product, and a score that no other exceeds.

    `keys` are padded with zero rows to a multiple of the group size; `key_count` of them are real.
    """
    block = queries @ keys.T
    if len(keys) > key_count:
        block[:, key_count:] = -torch.inf
    # Group g holds the columns g, g + width, g + 2·width, ...: maxima over them read memory in order.
    groups = block.view(len(queries), _GROUP, -1)
    width = groups.shape[2]
    best_groups = groups.amax(1).topk(min(look_at, width), dim=1, sorted=False).indices
    members = groups.gather(2, best_groups[:, None, :].expand(-1, _GROUP, -1)).flatten(1)
    values, places = members.topk(look_at, dim=1, sorted=False)
    looked = best_groups.shape[1]
    chosen = best_groups.gather(1, places % looked) + places // looked * width
    return chosen, values.amin(1).float()


def padded(keys: torch.Tensor) -> torch.Tensor:
    """Key rows with zero rows behind them up to a multiple of the group size."""
    padding = -len(keys) % _GROUP
    return torch.nn.functional.pad(keys, (0, 0, 0, padding)) if padding else keys


def match(
    x: torch.Tensor, y: torch.Tensor, k: int, keep: float, seed: int, memory: int
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Forward partners, backward partners and the objective; see `bilex.search.matching.StochasticMatcher`.

    On a GPU a random number for each score costs little; what counts is how often scores are read and
    written. Scores that do not fit into `memory` are computed twice.
    """
    if keep < 1:
        x, y = rounded_units(x), rounded_units(y)
    n, m, device = len(x), len(y), x.device
    random = torch.Generator(device).manual_seed(seed)
    height = min(n, max(_FEWEST_ROWS, memory // (4 * m)))
    buffer = torch.empty(height, m, dtype=x.dtype, device=device)
    starts = range(0, n, height)

    def products(start: int) -> torch.Tensor:
        return torch.mm(x[start : start + height], y.T, out=buffer[: n - start])

    def hide(scores: torch.Tensor) -> torch.Tensor:
        """Set each score to zero with probability 1 − keep, in place."""
        if keep >= 1:
            return scores
        kept = torch.empty(scores.shape, dtype=torch.bool, device=device)
        return scores.mul_(kept.bernoulli_(keep, generator=random))

    of_rows, of_columns = torch.empty(n, min(k, m), device=device), torch.empty(m, 0, device=device)
    forward = torch.empty(n, dtype=torch.int64, device=device)
    backward = torch.zeros(m, dtype=torch.int64, device=device)
    backward_score = torch.full((m,), -torch.inf, device=device)
    with full_sums():
        for start in starts:
            block = products(start)
            of_rows[start : start + height] = k_highest(block, min(k, m), 1)
            highest = torch.cat([of_columns, k_highest(block, min(k, len(block)), 0)], dim=1)
            few = highest.shape[1] <= min(k, n)
            of_columns = highest if few else highest.topk(min(k, n), dim=1, sorted=False).values
        row_penalty, column_penalty = of_rows.mean(dim=1) / 2, of_columns.mean(dim=1) / 2
        for start in starts:
            block = buffer if len(starts) == 1 else products(start)
            step = max(1, _STRIP // m)
            for first in range(0, len(block), step):
                part, at = block[first : first + step], start + first
                forward[at : at + len(part)] = hide(part - column_penalty).argmax(dim=1)
                score, row = hide(part - row_penalty[at : at + len(part), None]).max(dim=0)
                backward = torch.where(score > backward_score, row + at, backward)
                backward_score = torch.maximum(score, backward_score)
    best = of_rows.amax(dim=1).double().mean() + of_columns.amax(dim=1).double().mean()
    return forward, backward, float(best) / 2


def k_highest(scores: torch.Tensor, k: int, dim: int) -> torch.Tensor:
    """The k highest scores of each column (dim 0) or of each row (dim 1), one line each, in no order."""
    width = scores.shape[dim] // _GROUP
    if width <= k:
        return scores.movedim(dim, 1).topk(k, dim=1, sorted=False).values
    # Group g holds the places g, g + width, g + 2·width, ...: maxima over them read memory in order.
    groups = torch.unflatten(scores.narrow(dim, 0, _GROUP * width), dim, (_GROUP, width))
    best = groups.amax(dim).movedim(dim, 1).contiguous()
    chosen = best.topk(k, dim=1, sorted=False).indices[:, None].expand(-1, _GROUP, -1)
    lines = groups.movedim(2, 0) if dim == 0 else groups
    rest = scores.narrow(dim, _GROUP * width, scores.shape[dim] - _GROUP * width).movedim(dim, 1)
    return torch.cat([lines.gather(2, chosen).flatten(1), rest], dim=1).topk(k, dim=1, sorted=False).values
