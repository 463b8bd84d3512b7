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

from bilex.aligners.base import NO_PAIRS, Pairs
from bilex.search.negatives import Forbidden, HardNegatives, Moment, Nearest, to_units

# A sum of outer products is symmetric: only blocks of columns on and right of the diagonal are multiplied,
# for a number of words at a time that fits in the cache.
_COLUMN_BLOCKS, _WORDS_AT_A_TIME = 3, 2500


class Step(NamedTuple):
    """Loss and gradients of one update."""

    loss: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor


class Contrast:
    """The contrastive objective of one dictionary between two vocabularies.

    Args:
        source: The rows of the source vocabulary.
        target: The rows of the target vocabulary.
        pairs: The dictionary.
        keys: Negatives are found among this number of frequent words of each language.
        negatives: Hard negatives of each pair, per side.
        temperature: τ.
        through_norms: Whether the gradient goes through the norms.
        mask_known: Whether no known translation of a word is a negative of it.
        rejected: Pairs that are no translations; their words are negatives of each other whatever their
            scores.
    """

    def __init__(
        self,
        source: Rows,
        target: Rows,
        pairs: Pairs,
        keys: int,
        negatives: int,
        temperature: float = 1.0,
        *,
        through_norms: bool = False,
        mask_known: bool = False,
        rejected: Pairs = NO_PAIRS,
    ) -> None:
        self.temperature, self.through_norms, self.rejects = temperature, through_norms, len(rejected) > 0
        forbidden = forbidden_partners(pairs, keys, all_known=mask_known, rejected=rejected)
        self.source, self.target = sides = (
            _Language(source, pairs[:, 0], keys, rejected_partners(pairs[:, 1], rejected, 1)),
            _Language(target, pairs[:, 1], keys, rejected_partners(pairs[:, 0], rejected, 0)),
        )
        for side, not_these in zip(sides, forbidden, strict=True):
            side.search = HardNegatives(side.rows[: side.keys], negatives, temperature, not_these)

    @property
    def searched(self) -> int:
        """How many full searches the two sides have made so far."""
        return self.source.search.searched + self.target.search.searched

    def step(self, w_source: torch.Tensor, w_target: torch.Tensor) -> Step:
        """Loss and gradient at the two maps, with the negatives that these maps give."""
        x_words, y_words = self.source.mapped(w_source), self.target.mapped(w_target)
        x, y = x_words.of(self.source.of_pair), y_words.of(self.target.of_pair)
        of_target = self.target.nearest(x, y_words, w_target)
        of_source = self.source.nearest(y, x_words, w_source)
        if self.rejects:
            wrong_source = self.source.rejected_under(w_source, y, self.temperature)
            wrong_target = self.target.rejected_under(w_target, x, self.temperature)
            of_source, of_target = wrong_source.added_to(of_source), wrong_target.added_to(of_target)
        positive = (x.unit * y.unit).sum(1)
        weight = (positive / self.temperature).exp()
        total = weight + of_target.total + of_source.total
        loss = (total.log() - positive / self.temperature).double().mean()
        share = 1 / (len(total) * self.temperature * total)
        pull = weight * share - 1 / (len(total) * self.temperature)
        # M = X̄ᵀa + bᵀȲ; the positive is added to b instead of a, which gives the same sum
        y_bar = self.target.of_pairs * y.inverse[:, None]
        beside_y = of_source.context * share[:, None]
        beside_y.addcmul_(self.source.of_pairs, (x.inverse * pull)[:, None])
        x_shares = self.source.of_pairs * (x.inverse * share)[:, None]
        joint = x_shares.T @ of_target.context + beside_y.T @ y_bar
        source, target = joint @ w_target, joint.T @ w_source
        if self.through_norms:
            pull_target = (of_target.score / self.temperature).exp() * of_target.score * share[:, None]
            pull_source = (of_source.score / self.temperature).exp() * of_source.score * share[:, None]
            of_x = pull * positive + pull_target.sum(1)
            of_y = pull * positive + pull_source.sum(1)
            if self.rejects:
                of_x += wrong_target.per_pair(share)
                of_y += wrong_source.per_pair(share)
                target -= wrong_target.through_norms(share)
                source -= wrong_source.through_norms(share)
            source -= self.source.norms(x_words, of_x, of_source.key, pull_source) @ w_source
            target -= self.target.norms(y_words, of_y, of_target.key, pull_target) @ w_target
        return Step(loss, source, target)


class Rows(Protocol):
    """Anything that returns rows of a vocabulary by a slice or by their indices."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice | Pairs, /) -> torch.Tensor: ...


class _Language:
    """The words of one language that a contrast sees.

    Attributes:
        rows: The vectors of the keys, among which negatives are found, then those of other words of pairs.
        keys: How many of the rows are keys.
        of_pair: For each pair, the row of its word; `of_pairs` are their vectors.
        rejected: Numbers of pairs, and for each the vector of a rejected partner.
        search: Finds the nearest keys.
    """

    search: HardNegatives

    def __init__(
        self, vocabulary: Rows, words: np.ndarray, keys: int, rejected: tuple[np.ndarray, np.ndarray]
    ) -> None:
        keys = self.keys = min(keys, len(vocabulary))
        rare, place = np.unique(words[words >= keys], return_inverse=True)
        of_pair = words.astype(np.int64)
        of_pair[words >= keys] = keys + place
        rows = vocabulary[:keys]
        self.rows = torch.cat([rows, vocabulary[rare]]) if len(rare) else rows
        self.of_pair = torch.from_numpy(of_pair).to(rows.device)
        self.of_pairs = self.rows[self.of_pair]
        self.rejected = torch.from_numpy(rejected[0]).to(rows.device), vocabulary[rejected[1]]
        # The unit vectors of the last update, and those before it, whose memory the next ones take.
        self._previous: torch.Tensor | None = None
        self._spare: torch.Tensor | None = None

    def mapped(self, matrix: torch.Tensor) -> _Mapped:
        """The words under a map."""
        if self._spare is None:
            self._spare = self.rows.new_empty(len(self.rows), matrix.shape[1])
        found = _Mapped(*to_units(torch.mm(self.rows, matrix, out=self._spare), self._previous))
        self._spare, self._previous = self._previous, found.unit
        return found

    def nearest(self, queries: _Mapped, words: _Mapped, matrix: torch.Tensor) -> Nearest:
        """The hard negatives, among these words, of the pairs' words of the other language."""
        inverse, unit, step = (part[: self.keys] for part in words)
        moment = Moment(queries.unit @ matrix.T, inverse, queries.unit, unit, queries.step, step.max())
        return self.search.nearest(moment)

    def rejected_under(self, matrix: torch.Tensor, queries: _Mapped, temperature: float) -> _Rejected:
        """The rejected partners, among these words, of the pairs' words of the other language."""
        pair, rows = self.rejected
        image = rows @ matrix
        inverse = image.norm(dim=1, keepdim=True).clamp_min(1e-37).reciprocal()
        unit = image * inverse
        score = (queries.unit[pair] * unit).sum(1)
        return _Rejected(pair, rows * inverse, unit, score, (score / temperature).exp())

    def norms(
        self, words: _Mapped, of_pair: torch.Tensor, keys: torch.Tensor, of_key: torch.Tensor
    ) -> torch.Tensor:
        """S: its pairs' words and its negatives, each with its sum of g·s."""
        amounts = torch.zeros_like(words.inverse)
        amounts.index_add_(0, keys.flatten(), of_key.flatten())
        amounts.index_add_(0, self.of_pair, of_pair)
        return _outer_sum(self.rows, words.inverse.square() * amounts)


class _Mapped(NamedTuple):
    """Words under a map: 1/‖row W‖, the unit vectors, and how far these moved since the last update."""

    inverse: torch.Tensor
    unit: torch.Tensor
    step: torch.Tensor

    def of(self, places: torch.Tensor) -> _Mapped:
        return _Mapped(*(part[places] for part in self))


class _Rejected(NamedTuple):
    """Rejected partners under a map: their pairs, x/‖xW‖, unit vectors, scores, and exp(score/τ)."""

    pair: torch.Tensor
    bar: torch.Tensor
    unit: torch.Tensor
    score: torch.Tensor
    weight: torch.Tensor

    def added_to(self, nearest: Nearest) -> Nearest:
        """The pairs' nearest keys with these among them, as far as sums over negatives go."""
        return nearest._replace(
            total=nearest.total.index_add(0, self.pair, self.weight),
            context=nearest.context.index_add(0, self.pair, self.bar * self.weight[:, None]),
        )

    def per_pair(self, share: torch.Tensor) -> torch.Tensor:
        """The sum of g·s over the rejected partners of each pair."""
        amount = self.weight * self.score * share[self.pair]
        return torch.zeros_like(share).index_add(0, self.pair, amount)

    def through_norms(self, share: torch.Tensor) -> torch.Tensor:
        """What the norms of the rejected partners take off the gradient of their map."""
        amount = self.weight * self.score * share[self.pair]
        return (self.bar * amount[:, None]).T @ self.unit


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
    pairs: Pairs, keys: int, *, all_known: bool = False, rejected: Pairs = NO_PAIRS
) -> tuple[Forbidden, Forbidden]:
    """Which source keys and which target keys may not be negatives of each pair.

    These are its own partners, with `all_known` every known translation, and the rejected ones, which are
    negatives anyhow.
    """
    source, target = (_forbidden(pairs, side, keys, all_known, rejected) for side in (0, 1))
    return source, target


def _forbidden(pairs: Pairs, side: int, keys: int, all_known: bool, rejected: Pairs) -> Forbidden:
    own, words, partner = np.arange(len(pairs)), pairs[:, 1 - side], pairs[:, side]
    if all_known:
        known = np.unique(np.stack([words, partner], 1), axis=0)
        first = np.searchsorted(known[:, 0], words, "left")
        last = np.searchsorted(known[:, 0], words, "right")
        pair = np.repeat(own, last - first)
        key = known[np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)] or [own]), 1]
    else:
        pair, key = own, partner
    wrong_pair, wrong_key = rejected_partners(words, rejected, 1 - side)
    pair, key = np.concatenate([pair, wrong_pair]), np.concatenate([key, wrong_key])
    order = np.argsort(pair, kind="stable")
    pair, key = pair[order], key[order]
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
