"""InfoNCE over two linear maps, with its gradient in closed form.

For a pair i with unit mapped vectors x̂ᵢ, ŷᵢ the logits are x̂ᵢ·ŷᵢ, x̂ᵢ·ŷ for its target negatives and
ŷᵢ·x̂ for its source negatives, over τ; the loss is the mean of log Σ exp(logits) − positive. With p the
softmax weights and g = (p − [positive])/(nτ), the gradient is a sum over all logits of g·x̄ᵀŷ for W_x and
g·ȳᵀx̂ for W_y, where x̄ = x/‖xW_x‖ and ŷ = ȳW_y. Grouped by pair, with a = Σ g·ȳ over target negatives and the
positive, and b = Σ g·x̄ over source negatives, both come from one matrix:

    M = X̄ᵀa + bᵀȲ        ∂L/∂W_x = M W_y        ∂L/∂W_y = Mᵀ W_x

That is exact when the norms count as constants, as in the authors' program. Letting the gradient through
the norms takes s·x̂ off each ŷ (and s·ŷ off each x̂).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from bilex.aligners.rejected import KnownNegatives, rejected_partners
from bilex.similarity.hard_negatives import Forbidden, Moment, hard_negatives, to_units


class Step(NamedTuple):
    """Loss and gradients of one update."""

    loss: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor


class _Mapped(NamedTuple):
    """Rows under a map: 1/‖row W‖, the unit vectors, and how far these moved since the last update."""

    inverse: torch.Tensor
    unit: torch.Tensor
    step: torch.Tensor


class Contrast:
    """The contrastive objective of one dictionary between two vocabularies.

    Args:
        source_rows: Vectors of the pairs' source words.
        target_rows: Vectors of the pairs' target words.
        source_keys: Vectors among which source negatives are found.
        target_keys: Vectors among which target negatives are found.
        source_forbidden: Source keys that may not be negatives of a pair.
        target_forbidden: Target keys that may not be negatives of a pair.
        negatives: Negatives a side (N_neg).
        temperature: τ.
        through_norms: Whether the gradient goes through the norms too.
        rejected: Source words and target words that pairs have as negatives whatever their scores; they
            must be among the forbidden keys, so that none counts twice.
    """

    def __init__(
        self,
        source_rows: torch.Tensor,
        target_rows: torch.Tensor,
        source_keys: torch.Tensor,
        target_keys: torch.Tensor,
        source_forbidden: Forbidden,
        target_forbidden: Forbidden,
        negatives: int,
        temperature: float = 1.0,
        through_norms: bool = False,
        rejected: tuple[KnownNegatives, KnownNegatives] | None = None,
    ) -> None:
        self.rows = (source_rows, target_rows)
        self.keys = (source_keys, target_keys)
        self.stacked = (torch.cat([source_rows, source_keys]), torch.cat([target_rows, target_keys]))
        self.temperature, self.through_norms = temperature, through_norms
        self.rejected = rejected
        self.search = (
            hard_negatives(source_keys, negatives, temperature, source_forbidden),
            hard_negatives(target_keys, negatives, temperature, target_forbidden),
        )
        self.previous: list[torch.Tensor | None] = [None, None]

    @property
    def searched(self) -> int:
        """How many full searches the two sides have made so far."""
        return self.search[0].searched + self.search[1].searched

    def step(self, w_source: torch.Tensor, w_target: torch.Tensor) -> Step:
        """Loss and gradient at the two maps, with the negatives that these maps give."""
        x, y, x_keys, y_keys = self._mapped(w_source, w_target)
        at_target = Moment(
            x.unit @ w_target.T, y_keys.inverse, x.unit, y_keys.unit, x.step, y_keys.step.max()
        )
        at_source = Moment(
            y.unit @ w_source.T, x_keys.inverse, y.unit, x_keys.unit, y.step, x_keys.step.max()
        )
        self.search[1].look(at_target)
        self.search[0].look(at_source)
        of_target, of_source = self.search[1].nearest(at_target), self.search[0].nearest(at_source)
        if self.rejected is not None:
            of_source = self.rejected[0].joined(of_source, y.unit, w_source, self.temperature)
            of_target = self.rejected[1].joined(of_target, x.unit, w_target, self.temperature)
        positive = (x.unit * y.unit).sum(1)
        weight = (positive / self.temperature).exp()
        total = weight + of_target.total + of_source.total
        loss = (total.log() - positive / self.temperature).double().mean()
        share = 1 / (len(total) * self.temperature * total)
        x_bar, y_bar = self.rows[0] * x.inverse[:, None], self.rows[1] * y.inverse[:, None]
        pull = weight * share - 1 / (len(total) * self.temperature)
        a = of_target.context * share[:, None] + y_bar * pull[:, None]
        b = of_source.context * share[:, None]
        joint = x_bar.T @ a + b.T @ y_bar
        source, target = joint @ w_target, joint.T @ w_source
        if self.through_norms:
            pull_target = (of_target.score / self.temperature).exp() * of_target.score * share[:, None]
            pull_source = (of_source.score / self.temperature).exp() * of_source.score * share[:, None]
            source -= x_bar.T @ (x.unit * (pull * positive + pull_target.sum(1))[:, None])
            source -= self._key_norms(0, x_keys, of_source.key, pull_source)
            target -= y_bar.T @ (y.unit * (pull * positive + pull_source.sum(1))[:, None])
            target -= self._key_norms(1, y_keys, of_target.key, pull_target)
            if self.rejected is not None:
                amount, own = self.rejected[1].through_norms(x.unit, w_target, self.temperature, share)
                source -= x_bar.T @ (x.unit * amount[:, None])
                target -= own
                amount, own = self.rejected[0].through_norms(y.unit, w_source, self.temperature, share)
                target -= y_bar.T @ (y.unit * amount[:, None])
                source -= own
        return Step(loss, source, target)

    def _mapped(self, w_source: torch.Tensor, w_target: torch.Tensor) -> list[_Mapped]:
        """The pairs' words and the keys of both languages under the two maps: x, y, x keys, y keys."""
        whole = [
            to_units(rows @ matrix, old)
            for rows, matrix, old in zip(self.stacked, (w_source, w_target), self.previous, strict=True)
        ]
        self.previous = [mapped[1] for mapped in whole]
        pairs = len(self.rows[0])
        return [
            _Mapped(*(part[cut] for part in mapped))
            for cut in (slice(None, pairs), slice(pairs, None))
            for mapped in whole
        ]

    def _key_norms(self, side: int, keys: _Mapped, index: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
        """What the norms of the negatives take off a gradient."""
        weights = torch.zeros(len(keys.inverse), dtype=amount.dtype, device=amount.device)
        weights.index_add_(0, index.flatten(), amount.flatten())
        return (self.keys[side] * (keys.inverse * weights)[:, None]).T @ keys.unit


def forbidden_partners(
    pairs: np.ndarray, keys: int, *, all_known: bool, rejected: np.ndarray | None = None
) -> tuple[Forbidden, Forbidden]:
    """Which source keys and which target keys may not be negatives of each pair.

    Args:
        pairs: Source and target rows.
        keys: How many of the first words of each language are keys.
        all_known: Forbid every known translation of the pair's other word, not only its own partner.
        rejected: Pairs that are negatives anyhow, and so may not be found as such.
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
        who = np.repeat(own, last - first)
        what = known[np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)] or [own]), 1]
    else:
        who, what = own, partner
    if len(rejected[0]):
        order = np.argsort(np.concatenate([who, rejected[0]]), kind="stable")
        who, what = (np.concatenate(both)[order] for both in zip((who, what), rejected, strict=True))
    inside = what < keys
    starts = np.concatenate([[0], np.cumsum(np.bincount(who[inside], minlength=len(own)))])
    return Forbidden(starts.astype(np.int64), np.ascontiguousarray(what[inside], np.int64))
