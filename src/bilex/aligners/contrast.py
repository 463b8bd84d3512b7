"""InfoNCE over two linear maps, with its gradient in closed form.

For a pair i with unit mapped vectors x̂ᵢ, ŷᵢ the logits are x̂ᵢ·ŷᵢ, x̂ᵢ·ŷ for its target negatives and
ŷᵢ·x̂ for its source negatives, over τ; the loss is the mean of log Σ exp(logits) − positive. With p the
softmax weights and g = (p − [positive])/(nτ), the gradient is a sum over all logits of g·x̄ᵀŷ for W_x and
g·ȳᵀx̂ for W_y, where x̄ = x/‖xW_x‖ and ŷ = ȳW_y. Grouped by pair, with a = Σ g·ȳ over target negatives and the
positive, and b = Σ g·x̄ over source negatives, both come from one matrix:

    M = X̄ᵀa + bᵀȲ        ∂L/∂W_x = M W_y        ∂L/∂W_y = Mᵀ W_x

That is exact when the norms count as constants, as in the authors' program. Letting the gradient through
the norms subtracts s·x̂ from each ŷ (and s·ŷ from each x̂), with s = x̂·ŷ. All of that which concerns W_x
comes from one symmetric matrix over the words, with c a word's sum of g·s over the logits that it is in (W_y
likewise):

    S = Σ c·x̄ᵀx̄        ∂L/∂W_x = M W_y − S W_x

A pair's word is mostly one of the keys, so each word is mapped once and takes part in S once.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.preparation import UnitRows
from bilex.search.negatives import Forbidden, HardNegatives, Moment, Nearest, to_units

# A sum of outer products is symmetric: only blocks of columns on and right of the diagonal are multiplied,
# for a number of words at a time that fits in the cache.
_COLUMN_BLOCKS, _WORDS_AT_A_TIME = 3, 2500


class KnownNegatives(NamedTuple):
    """Rejected partners, which are negatives of their pairs besides the hard ones.

    Attributes:
        pair: Indices of pairs.
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


class Step(NamedTuple):
    """Loss and gradients of one update."""

    loss: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor


class Rows(Protocol):
    """Anything that returns rows of a vocabulary by a slice or by their indices."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice | Pairs, /) -> torch.Tensor: ...


class Words(NamedTuple):
    """The words of one language that a contrast sees.

    Attributes:
        rows: Their vectors: those of the keys, then those of pairs' words that are no keys.
        keys: How many of them are keys, among which negatives are found.
        of_pair: For each pair, the row of its word.
    """

    rows: torch.Tensor
    keys: int
    of_pair: torch.Tensor

    @classmethod
    def of(cls, vocabulary: Rows, words: np.ndarray, keys: int) -> Words:
        """The words of a vocabulary that are needed."""
        keys = min(keys, len(vocabulary))
        rare, place = np.unique(words[words >= keys], return_inverse=True)
        of_pair = words.astype(np.int64)
        of_pair[words >= keys] = keys + place
        rows = vocabulary[:keys]
        if len(rare):
            rows = torch.cat([rows, vocabulary[rare]])
        return cls(rows, keys, torch.from_numpy(of_pair).to(rows.device))


class _Mapped(NamedTuple):
    """Words under a map: 1/‖row W‖, the unit vectors, and how far these moved since the last update."""

    inverse: torch.Tensor
    unit: torch.Tensor
    step: torch.Tensor

    def of(self, places: torch.Tensor) -> _Mapped:
        """Some of them."""
        return _Mapped(*(part[places] for part in self))


class Contrast:
    """The contrastive objective of one dictionary between two vocabularies.

    Forbidden keys may not be negatives of a pair. `rejected` are source words and target words that pairs
    have as negatives whatever their scores; they must be forbidden, so that none counts twice.
    """

    def __init__(
        self,
        source: Words,
        target: Words,
        source_forbidden: Forbidden,
        target_forbidden: Forbidden,
        negatives: int,
        temperature: float = 1.0,
        through_norms: bool = False,
        rejected: tuple[KnownNegatives, KnownNegatives] | None = None,
    ) -> None:
        self.words = (source, target)
        self.rows = (source.rows[source.of_pair], target.rows[target.of_pair])
        self.temperature, self.through_norms = temperature, through_norms
        self.rejected = rejected
        self.search = (
            HardNegatives(source.rows[: source.keys], negatives, temperature, source_forbidden),
            HardNegatives(target.rows[: target.keys], negatives, temperature, target_forbidden),
        )
        # The unit vectors of the last update, and those before it, whose memory the next ones take.
        self.previous: list[torch.Tensor | None] = [None, None]
        self.spare: list[torch.Tensor | None] = [None, None]

    @property
    def searched(self) -> int:
        """How many full searches the two sides have made so far."""
        return self.search[0].searched + self.search[1].searched

    def step(self, w_source: torch.Tensor, w_target: torch.Tensor) -> Step:
        """Loss and gradient at the two maps, with the negatives that these maps give."""
        mapped = self._mapped(0, w_source), self._mapped(1, w_target)
        x, y = (side.of(words.of_pair) for side, words in zip(mapped, self.words, strict=True))
        at_target = self._moment(x, w_target, mapped[1], self.words[1].keys)
        at_source = self._moment(y, w_source, mapped[0], self.words[0].keys)
        of_target, of_source = self.search[1].nearest(at_target), self.search[0].nearest(at_source)
        if self.rejected is not None:
            of_source = self.rejected[0].joined(of_source, y.unit, w_source, self.temperature)
            of_target = self.rejected[1].joined(of_target, x.unit, w_target, self.temperature)
        positive = (x.unit * y.unit).sum(1)
        weight = (positive / self.temperature).exp()
        total = weight + of_target.total + of_source.total
        loss = (total.log() - positive / self.temperature).double().mean()
        share = 1 / (len(total) * self.temperature * total)
        pull = weight * share - 1 / (len(total) * self.temperature)
        # M = X̄ᵀa + bᵀȲ; the positive is added to b instead of a, which gives the same sum
        y_bar = self.rows[1] * y.inverse[:, None]
        beside_y = of_source.context * share[:, None]
        beside_y.addcmul_(self.rows[0], (x.inverse * pull)[:, None])
        joint = (self.rows[0] * (x.inverse * share)[:, None]).T @ of_target.context + beside_y.T @ y_bar
        source, target = joint @ w_target, joint.T @ w_source
        if self.through_norms:
            pull_target = (of_target.score / self.temperature).exp() * of_target.score * share[:, None]
            pull_source = (of_source.score / self.temperature).exp() * of_source.score * share[:, None]
            of_x = pull * positive + pull_target.sum(1)
            of_y = pull * positive + pull_source.sum(1)
            if self.rejected is not None:
                amount, own = self.rejected[1].through_norms(x.unit, w_target, self.temperature, share)
                of_x += amount
                target -= own
                amount, own = self.rejected[0].through_norms(y.unit, w_source, self.temperature, share)
                of_y += amount
                source -= own
            source -= self._norms(0, mapped[0], of_x, of_source.key, pull_source) @ w_source
            target -= self._norms(1, mapped[1], of_y, of_target.key, pull_target) @ w_target
        return Step(loss, source, target)

    def _mapped(self, side: int, matrix: torch.Tensor) -> _Mapped:
        """The words of a language under its map."""
        rows, spare, previous = self.words[side].rows, self.spare[side], self.previous[side]
        if spare is None:
            spare = rows.new_empty(len(rows), matrix.shape[1])
        mapped = _Mapped(*to_units(torch.mm(rows, matrix, out=spare), previous))
        self.spare[side], self.previous[side] = previous, mapped.unit
        return mapped

    def _moment(self, queries: _Mapped, key_map: torch.Tensor, words: _Mapped, keys: int) -> Moment:
        """The pairs' words of one language as queries among the keys of the other."""
        return Moment(
            queries.unit @ key_map.T,
            words.inverse[:keys],
            queries.unit,
            words.unit[:keys],
            queries.step,
            words.step[:keys].max(),
        )

    def _norms(
        self, side: int, mapped: _Mapped, of_pair: torch.Tensor, keys: torch.Tensor, of_key: torch.Tensor
    ) -> torch.Tensor:
        """S of a language: its pairs' words and its negatives, each with what it takes off."""
        amounts = torch.zeros_like(mapped.inverse)
        amounts.index_add_(0, keys.flatten(), of_key.flatten())
        amounts.index_add_(0, self.words[side].of_pair, of_pair)
        return _outer_sum(self.words[side].rows, mapped.inverse.square() * amounts)


def _outer_sum(rows: torch.Tensor, amounts: torch.Tensor) -> torch.Tensor:
    """The sum of each row's outer product with itself, times its amount."""
    width = rows.shape[1]
    block = -(-width // _COLUMN_BLOCKS)
    total = rows.new_zeros(width, width)
    at_a_time = _WORDS_AT_A_TIME if rows.device.type == "cpu" else len(rows)  # a GPU starts each product
    for start in range(0, len(rows), at_a_time):
        part, weight = rows[start : start + at_a_time], amounts[start : start + at_a_time]
        weighted = part * weight[:, None]
        for first in range(0, width, block):
            columns = slice(first, first + block)
            total[columns, first:].addmm_(weighted[:, columns].T, part[:, first:])
    for first in range(0, width, block):
        columns = slice(first, first + block)
        total[first + block :, columns] = total[columns, first + block :].T
    return total


def forbidden_partners(
    pairs: np.ndarray, keys: int, *, all_known: bool, rejected: np.ndarray | None = None
) -> tuple[Forbidden, Forbidden]:
    """Which source keys and which target keys may not be negatives of each pair.

    These are its own partners, with `all_known` every known translation, and the rejected ones, which are
    negatives anyhow.
    """
    wrong = np.zeros((0, 2), np.int64) if rejected is None else rejected
    return (
        _forbidden(pairs[:, 1], pairs[:, 0], keys, all_known, rejected_partners(pairs[:, 1], wrong, 1)),
        _forbidden(pairs[:, 0], pairs[:, 1], keys, all_known, rejected_partners(pairs[:, 0], wrong, 0)),
    )


def _forbidden(
    own_words: np.ndarray,
    partner: np.ndarray,
    keys: int,
    all_known: bool,
    rejected: tuple[np.ndarray, np.ndarray],
) -> Forbidden:
    """Per pair, its own word's partners (or only its own) and rejected ones that are among the keys."""
    own = np.arange(len(own_words))
    if all_known:
        known = np.unique(np.stack([own_words, partner], 1), axis=0)
        first = np.searchsorted(known[:, 0], own_words, "left")
        last = np.searchsorted(known[:, 0], own_words, "right")
        pair = np.repeat(own, last - first)
        key = known[np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)] or [own]), 1]
    else:
        pair, key = own, partner
    if len(rejected[0]):
        order = np.argsort(np.concatenate([pair, rejected[0]]), kind="stable")
        pair, key = (np.concatenate(both)[order] for both in zip((pair, key), rejected, strict=True))
    inside = key < keys
    starts = np.concatenate([[0], np.cumsum(np.bincount(pair[inside], minlength=len(own)))])
    return Forbidden(starts.astype(np.int64), np.ascontiguousarray(key[inside], np.int64))


def rejected_partners(words: np.ndarray, rejected: Pairs, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The rejected partners of each pair's word: numbers of pairs, rising, and the row of a partner.

    `side` is the column of `rejected` that holds the words: 0 for source words, 1 for target words.
    """
    partners: dict[int, list[int]] = {}
    for pair in rejected.tolist():
        partners.setdefault(pair[side], []).append(pair[1 - side])
    found = [(i, row) for i, word in enumerate(words.tolist()) for row in partners.get(word, ())]
    table = np.array(found, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def known_negatives(
    x: UnitRows, y: UnitRows, dictionary: Pairs, rejected: Pairs
) -> tuple[KnownNegatives, KnownNegatives] | None:
    """Rejected partners of a dictionary's words, source and target; None where none was rejected."""
    rejected = rejected[(rejected[:, 0] < len(x)) & (rejected[:, 1] < len(y))]
    if not len(rejected):
        return None
    found = []
    for side, rows in ((1, x), (0, y)):
        pair, partner = rejected_partners(dictionary[:, side], rejected, side)
        found.append(KnownNegatives(torch.from_numpy(pair).to(rows.device), rows[partner]))
    return found[0], found[1]
