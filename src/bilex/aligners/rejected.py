"""Pairs that people have rejected: never new pairs of C1, always negatives of its contrast."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.unit_rows import UnitRows
from bilex.search.hard_negatives import Nearest


def without_pairs(pairs: Pairs, rejected: Pairs) -> Pairs:
    """The pairs that are not rejected, in order."""
    wrong = set(map(tuple, rejected.tolist()))
    if not wrong:
        return pairs
    return pairs[[tuple(pair) not in wrong for pair in pairs.tolist()]]


def rejected_partners(words: np.ndarray, rejected: Pairs, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The rejected partners of each pair's word.

    Args:
        words: The word of each pair, as a row of its vocabulary.
        rejected: The rejected pairs.
        side: Which column of `rejected` holds the queries: 0 for source words, 1 for target words.

    Returns:
        Numbers of pairs, rising, and the row of a partner for each.
    """
    partners: dict[int, list[int]] = {}
    for pair in rejected.tolist():
        partners.setdefault(pair[side], []).append(pair[1 - side])
    found = [(i, row) for i, word in enumerate(words.tolist()) for row in partners.get(word, ())]
    table = np.array(found, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


class KnownNegatives(NamedTuple):
    """Words that pairs always have as negatives, besides their hard ones.

    Attributes:
        pair: Numbers of pairs.
        rows: For each, the unmapped vector of a rejected partner.
    """

    pair: torch.Tensor
    rows: torch.Tensor

    def mapped(
        self, queries: torch.Tensor, matrix: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Scores with the pairs' unit vectors, x/‖xW‖ of the rejected partners, and their unit vectors."""
        image = self.rows @ matrix
        inverse = image.norm(dim=1, keepdim=True).clamp_min(1e-37).reciprocal()
        unit = image * inverse
        return (queries[self.pair] * unit).sum(1), self.rows * inverse, unit

    def joined(
        self, nearest: Nearest, queries: torch.Tensor, matrix: torch.Tensor, temperature: float
    ) -> Nearest:
        """A pair's nearest keys with these among them, as far as sums over negatives go."""
        score, bar, _ = self.mapped(queries, matrix)
        weight = (score / temperature).exp()
        return nearest._replace(
            total=nearest.total.index_add(0, self.pair, weight),
            context=nearest.context.index_add(0, self.pair, bar * weight[:, None]),
        )

    def through_norms(
        self, queries: torch.Tensor, matrix: torch.Tensor, temperature: float, share: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What the norms take off: an amount for each pair, and a gradient for the partners' own map."""
        score, bar, unit = self.mapped(queries, matrix)
        amount = (score / temperature).exp() * score * share[self.pair]
        of_pairs = torch.zeros_like(share).index_add(0, self.pair, amount)
        return of_pairs, (bar * amount[:, None]).T @ unit


def known_negatives(
    x: UnitRows, y: UnitRows, dictionary: Pairs, rejected: Pairs
) -> tuple[KnownNegatives, KnownNegatives] | None:
    """Rejected partners of a dictionary's words, source and target; None where none was rejected.

    Args:
        x: Source vectors.
        y: Target vectors.
        dictionary: The pairs that are contrasted.
        rejected: The rejected pairs; those of words that are not among the vectors do not count.
    """
    rejected = rejected[(rejected[:, 0] < len(x)) & (rejected[:, 1] < len(y))]
    if not len(rejected):
        return None
    found = []
    for side, rows in ((1, x), (0, y)):
        pair, partner = rejected_partners(dictionary[:, side], rejected, side)
        found.append(KnownNegatives(torch.from_numpy(pair).to(rows.device), rows[partner]))
    return found[0], found[1]
