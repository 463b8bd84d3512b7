"""Exact top-k on a GPU, by the same argument as on the CPU: propose cheaply, bound, re-score exactly.

A strip of queries meets all keys in one bfloat16 product. The k best keys of a query lie in the k
groups of neighbouring keys with the highest maxima, so only group maxima are ranked; the best groups'
proposals are ranked in turn, and the leading ones re-scored in float64. A row whose last re-scored
proposal could still hide a better key behind it (by the measured rounding errors) is done again with
twice as many, so the result is exact.
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
# How far a product of two rounded unit rows, itself rounded, can lie from the true cosine: bfloat16 moves
# each row by at most 2^-8 of its length and the result by at most 2^-8; sums of 2,000 float32 terms by 2^-12.
UNIT_ERROR = (1 + 2.0**-8) ** 2 * (1 + 2.0**-12) - 1 + 2.0**-8


class Proposer(NamedTuple):
    """Rows in bfloat16, their distance from the true rows, and their lengths."""

    rows: torch.Tensor
    error: torch.Tensor
    norm: torch.Tensor


def proposer(rows: torch.Tensor, extra: torch.Tensor | None, scale: float) -> Proposer:
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
    return Proposer(low, error.sqrt() * (1 + 1e-5), norm.sqrt() * (1 + 1e-5))


def rounded_units(rows: torch.Tensor) -> torch.Tensor:
    """Unit rows in bfloat16, padded to widths that tensor cores like."""
    return torch.nn.functional.pad(rows.to(torch.bfloat16), (0, -rows.shape[1] % 8))


def error_bound(queries: Proposer, keys: Proposer) -> torch.Tensor:
    """Per query, the largest possible distance of a proposed score from the true one."""
    largest_norm, largest_error = keys.norm.max(), keys.error.max()
    bound = queries.error * (largest_norm + largest_error) + queries.norm * largest_error
    rounding = queries.rows.shape[1] * _FLOAT32_ROUNDING
    largest_score = queries.norm * largest_norm * (1 + rounding)
    return (bound + rounding * largest_score + _bfloat16_rounding(largest_score)) * (1 + 1e-6)


def _bfloat16_rounding(largest: torch.Tensor) -> torch.Tensor:
    """The furthest that rounding to bfloat16 moves a number of at most this size; see `cpu`."""
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
    """Keys made ready once for any number of searches; see `bilex.search.KeySearch`."""

    def __init__(self, keys: torch.Tensor, penalty: torch.Tensor | None) -> None:
        self.keys, self.scale = keys, 1.0 if penalty is None else 2.0
        extra = None
        if penalty is not None:
            high = penalty.to(torch.bfloat16).float()
            extra = torch.stack([high, penalty - high], 1)
        rounded = proposer(keys, extra, 1.0)
        self.right = rounded._replace(rows=padded(rounded.rows))
        self.shift = torch.zeros(len(keys), device=keys.device) if penalty is None else -penalty

    def top_k(self, queries: torch.Tensor, k: int, memory: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Exact top-k of some queries."""
        extra = None if self.scale == 1 else -torch.ones(len(queries), 2, device=queries.device)
        left = proposer(queries, extra, self.scale)
        search = _Search(queries, self.keys, left, self.right, self.scale, self.shift, k, memory)
        scores = torch.empty(len(queries), k, device=queries.device)
        rows = torch.empty(len(queries), k, dtype=torch.int64, device=queries.device)
        with full_sums():
            search.fill(torch.arange(len(queries), device=queries.device), k + max(22, k // 2), scores, rows)
        return scores, rows


def top_k(
    queries: torch.Tensor, keys: torch.Tensor, k: int, penalty: torch.Tensor | None, memory: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Exact top-k; see `bilex.search.top_k`."""
    return KeySearch(keys, penalty).top_k(queries, k, memory)


def neighbourhoods(
    source: torch.Tensor, target: torch.Tensor, k: int, memory: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """CSLS's two terms. On a GPU the product is the cheap part, so each direction has its own."""
    forward, _ = top_k(source, target, min(k, len(target)), None, memory)
    backward, _ = top_k(target, source, min(k, len(source)), None, memory)
    return forward.double().mean(1).float(), backward.double().mean(1).float()


class _Search:
    """Queries against all keys, in strips that fit the memory."""

    def __init__(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        left: Proposer,
        right: Proposer,
        scale: float,
        shift: torch.Tensor,
        k: int,
        memory: int,
    ) -> None:
        self.queries, self.keys, self.left, self.right = queries, keys, left, right
        self.scale, self.shift, self.k, self.memory = scale, shift, k, memory
        self.bound = error_bound(left, right)
        self.columns = len(self.right.rows)

    def fill(self, wanted: torch.Tensor, look_at: int, scores: torch.Tensor, rows: torch.Tensor) -> None:
        """Write the exact k best of the `wanted` queries, looking at the `look_at` best proposals of each."""
        look_at = min(look_at, len(self.keys))
        cost = self.columns * 2 + look_at * (_GROUP * 16 + self.keys.shape[1] * 12)
        undecided = []

        def search(block: slice) -> None:
            part = wanted[block]
            sure, best, keys = self._strip(part, look_at)
            scores[part], rows[part] = best, keys
            undecided.append(part[~sure])

        in_blocks(len(wanted), self.memory // cost, search)
        left = torch.cat(undecided)
        if len(left):
            self.fill(left, 2 * look_at, scores, rows)

    def _strip(self, part: torch.Tensor, look_at: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Which queries are decided, with the exact scores and keys of their k best."""
        candidates, worst = self._proposals(part, look_at)
        candidates = candidates.sort(dim=1).values
        exact = torch.einsum("qd,qcd->qc", self.queries[part].double(), self.keys[candidates].double())
        exact = (exact * self.scale + self.shift[candidates].double()).float()
        exact, order = exact.sort(dim=1, descending=True, stable=True)
        best = exact[:, : self.k]
        sure = best[:, -1] > worst + self.bound[part]
        if look_at == len(self.keys):
            sure = torch.ones_like(sure)
        return sure, best, candidates.gather(1, order[:, : self.k])

    def _proposals(self, part: torch.Tensor, look_at: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The `look_at` best proposed keys of each query, and the score that none of the others exceeds."""
        return best_proposals(self.left.rows[part], self.right.rows, len(self.keys), look_at)


def best_proposals(
    queries: torch.Tensor, keys: torch.Tensor, key_count: int, look_at: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The `look_at` best keys of each query by the low-precision product, in no order.

    Args:
        queries: Rounded queries.
        keys: Rounded keys, padded with zero rows to a multiple of the group size.
        key_count: How many of the rows are real keys.
        look_at: How many are wanted.

    Returns:
        Key indices, and per query a score that no other key's proposal exceeds.
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
