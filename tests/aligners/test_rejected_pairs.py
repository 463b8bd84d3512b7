"""What C1 makes of pairs that people have rejected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from c1_worlds import World, quick, same_maps

import bilex.aligners.c1 as c1_module
from bilex.aligners.contrast import Contrast, KnownNegatives, Words, forbidden_partners, rejected_partners
from bilex.aligners.induction import without_pairs
from bilex.lexicon import Lexicon

WORDS, DIM, PAIRS, NEGATIVES = 200, 12, 30, 6


@pytest.mark.parametrize("through_norms", [False, True])
@pytest.mark.parametrize("limit", [WORDS, 120])
def test_the_gradient_with_known_negatives_equals_autograd(through_norms: bool, limit: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(WORDS, DIM, generator=generator, dtype=torch.float64) for _ in range(2))
    maps = [torch.randn(DIM, DIM, generator=generator, dtype=torch.float64) for _ in range(2)]
    pairs = np.stack([np.arange(PAIRS), np.arange(PAIRS)], 1) * 5
    rejected = np.array([[0, 7], [0, 190], [5, 3], [150, 10], [40, 100]])
    leaves = [matrix.clone().requires_grad_() for matrix in maps]

    def unit(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        image = rows @ weights
        norm = image.norm(dim=1, keepdim=True)
        return image / (norm if through_norms else norm.detach())

    x_hat, y_hat = unit(x, leaves[0]), unit(y, leaves[1])
    losses = []
    for source, target in pairs.tolist():
        logits = [(x_hat[source] @ y_hat[target])[None]]
        for scores, own, wrong in (
            (x_hat[source] @ y_hat.T, target, [b for a, b in rejected.tolist() if a == source]),
            (y_hat[target] @ x_hat.T, source, [a for a, b in rejected.tolist() if b == target]),
        ):
            left = scores.detach().clone()
            left[limit:] = left[own] = -torch.inf
            left[wrong] = -torch.inf
            logits += [scores[left.topk(NEGATIVES).indices], scores[wrong]]
        losses.append(-torch.log_softmax(torch.cat(logits), 0)[0])
    loss = torch.stack(losses).mean()
    loss.backward()
    known = [
        KnownNegatives(*(torch.from_numpy(part) for part in (found[0],)), rows[torch.from_numpy(found[1])])
        for rows, found in (
            (x, rejected_partners(pairs[:, 1], rejected, 1)),
            (y, rejected_partners(pairs[:, 0], rejected, 0)),
        )
    ]
    step = Contrast(
        Words.of(x, pairs[:, 0], limit),
        Words.of(y, pairs[:, 1], limit),
        *forbidden_partners(pairs, limit, all_known=False, rejected=rejected),
        NEGATIVES,
        1.0,
        through_norms,
        (known[0], known[1]),
    ).step(*maps)
    assert float(step.loss) == pytest.approx(float(loss.detach()), rel=1e-12)
    for found, leaf in zip((step.source, step.target), leaves, strict=True):
        torch.testing.assert_close(found, leaf.grad, rtol=1e-9, atol=1e-13)


def test_rejected_pairs_are_never_induced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word from anybody these pairs are found; rejected, they are in no dictionary of any round."""
    world = World()
    learned: list[set[tuple[int, int]]] = []

    def listening(self: Any, rows: Any, dictionary: dict[Any, np.ndarray], progress: Any) -> Any:
        learned.append(set(map(tuple, dictionary["source", "target"].tolist())))
        return plain(self, rows, dictionary, progress)

    plain = c1_module.C1._mapping
    monkeypatch.setattr(c1_module.C1, "_mapping", listening)
    world.fit(quick(), 100)
    wrong = sorted(set.union(*learned) - {(i, i) for i in range(100)})[::20]
    assert len(wrong) > 5
    learned.clear()
    rejected = tuple((f"s{a}", f"t{b}") for a, b in wrong)
    world.fit(quick(), Lexicon(world.seeds(100).pairs, "seeds", rejected=rejected))
    assert len(learned) > 2 and not set(wrong) & set.union(*learned)


def test_a_rejected_pair_is_pushed_apart() -> None:
    """A rejected pair pushes apart: that word's cosine with it falls."""
    world = World(noise=1.0)

    def cosine(rejected: tuple[tuple[str, str], ...]) -> float:
        seeds = Lexicon(world.seeds(60).pairs, "seeds", rejected=rejected)
        fitted = world.fit(quick(updates=40, iterations=1), seeds)
        x, y = fitted.source_map_(world.source.vectors[:1]), fitted.target_map_(world.target.vectors)
        return float((x @ y.T)[0, place])

    place = 0
    plain = world.fit(quick(updates=40, iterations=1), 60)
    near = plain.source_map_(world.source.vectors[:1]) @ plain.target_map_(world.target.vectors).T
    # A word far down the list is no hard negative of the pair: only the rejection makes it one.
    place = int(np.argsort(-near[0])[450])
    assert cosine((("s0", f"t{place}"),)) < cosine(())


def test_nothing_changes_where_nothing_is_rejected() -> None:
    world = World()
    other = (("s500", "nowhere"),)
    assert same_maps(
        world.fit(quick(iterations=1), 100),
        world.fit(quick(iterations=1), Lexicon(world.seeds(100).pairs, "seeds", rejected=other)),
    )


def test_a_checkpoint_of_other_rejections_is_not_resumed(tmp_path: Any) -> None:
    from bilex.core.errors import BilexError

    world = World()
    world.fit(quick(iterations=1), 100, checkpoint=tmp_path / "state")
    with pytest.raises(BilexError, match="other vectors, seeds or settings"):
        world.fit(
            quick(iterations=1),
            Lexicon(world.seeds(100).pairs, "seeds", rejected=(("s1", "t2"),)),
            checkpoint=tmp_path / "state",
        )


def test_helpers() -> None:
    pairs, rejected = np.array([[0, 1], [2, 3], [2, 4]]), np.array([[2, 3], [0, 9]])
    assert without_pairs(pairs, rejected).tolist() == [[0, 1], [2, 4]]
    who, what = rejected_partners(pairs[:, 0], rejected, 0)
    assert list(zip(who.tolist(), what.tolist(), strict=True)) == [(0, 9), (1, 3), (2, 3)]
