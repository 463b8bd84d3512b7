"""Pooled hard negatives, update by update, against a float64 brute force."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bilex import BilexError
from bilex.aligners.advanced import advanced_maps
from bilex.aligners.contrast import Contrast, forbidden_partners
from bilex.search import plain
from bilex.search.low_precision.bfloat16 import UNIT_ERROR
from bilex.search.negatives import Forbidden, HardNegatives, Moment, to_units

PAIRS, WORDS, DIM, NEGATIVES, UPDATES = 300, 3000, 40, 30, 40
NEARLY_TIED = 1e-6
Searcher = Callable[[torch.Tensor, int, float, Forbidden], HardNegatives]


class AsOnGpu(HardNegatives):
    """What a GPU does, on the CPU: bfloat16 proposals, and pools scored by torch."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.on_gpu, self.error = True, UNIT_ERROR


SEARCHERS = [HardNegatives, AsOnGpu]


def planted_rows(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(WORDS, DIM, generator=generator)
    turn = torch.linalg.qr(torch.randn(DIM, DIM, generator=generator))[0]
    y = x @ turn + 0.4 * torch.randn(WORDS, DIM, generator=generator)
    return torch.nn.functional.normalize(x), torch.nn.functional.normalize(y)


def known_pairs(seed: int = 0) -> np.ndarray:
    """Pairs with several translations for a word, and one pair twice."""
    rng = np.random.default_rng(seed)
    source = rng.integers(0, WORDS, PAIRS)
    source[100:200] = source[:100]
    target = np.where(np.arange(PAIRS) < 100, source, rng.integers(0, WORDS, PAIRS))
    pairs = np.stack([source, target], axis=1)
    pairs[299] = pairs[298]
    return pairs


def allowed_scores(queries: torch.Tensor, keys: torch.Tensor, barred: list[set[int]]) -> np.ndarray:
    """All cosines in float64, −∞ where a key is forbidden."""
    scores = torch.nn.functional.normalize(queries) @ torch.nn.functional.normalize(keys).T
    who = [row for row, some in enumerate(barred) for _ in some]
    scores[who, [key for some in barred for key in some]] = -torch.inf
    return scores.numpy()


def assert_nearest(chosen: np.ndarray, scores: np.ndarray) -> None:
    """The chosen keys are the best allowed ones; only scores closer than 1e-6 may change places."""
    assert (np.diff(np.sort(chosen, axis=1), axis=1) > 0).all()
    lowest_chosen = np.take_along_axis(scores, chosen, axis=1).min(1)
    others = scores.copy()
    np.put_along_axis(others, chosen, -np.inf, axis=1)
    assert np.isfinite(lowest_chosen).all()
    assert (others.max(1) < lowest_chosen + NEARLY_TIED).all()


def barred_partners(pairs: np.ndarray, side: int, mask_known: bool) -> list[set[int]]:
    """Straight from the definition: a pair's own partner, or all known partners of its other word."""
    if not mask_known:
        return [{pair[side]} for pair in pairs.tolist()]
    return [
        {other[side] for other in pairs.tolist() if other[1 - side] == pair[1 - side]}
        for pair in pairs.tolist()
    ]


@pytest.mark.parametrize("mask_known", [False, True], ids=["own partner", "all known"])
@pytest.mark.parametrize("searcher", SEARCHERS)
def test_negatives_are_those_of_a_brute_force_at_every_update(searcher: Searcher, mask_known: bool) -> None:
    x, y = planted_rows()
    pairs = known_pairs()
    forbidden = forbidden_partners(pairs, WORDS, all_known=mask_known)
    rows = torch.from_numpy(pairs)
    contrast = Contrast(x, y, pairs, WORDS, NEGATIVES, mask_known=mask_known)
    sides = contrast.source, contrast.target
    for side, keys, not_these in zip(sides, (x, y), forbidden, strict=True):
        side.search = searcher(keys, NEGATIVES, 1.0, not_these)
    barred = [barred_partners(pairs, side, mask_known) for side in (0, 1)]
    start = advanced_maps(x[rows[:, 0]], y[rows[:, 1]])
    maps = [start.source.float(), start.target.float()]
    losses = []
    for update in range(UPDATES):
        step = contrast.step(*maps)
        mapped_x, mapped_y = x.double() @ maps[0].double(), y.double() @ maps[1].double()
        of_source, of_target = (side.search.key.numpy() for side in sides)
        assert_nearest(of_target, allowed_scores(mapped_x[rows[:, 0]], mapped_y, barred[1]))
        assert_nearest(of_source, allowed_scores(mapped_y[rows[:, 1]], mapped_x, barred[0]))
        losses.append(float(step.loss))
        norm = float((step.source.square().sum() + step.target.square().sum()).sqrt())
        rate = 1.5 * 0.99**update * min(1.0, 0.15 / norm)
        maps = [maps[0] - rate * step.source, maps[1] - rate * step.target]
    assert losses[-1] < losses[0]
    # Every update a brute force searches all pairs on both sides; the pools must save most of that.
    assert contrast.searched < 0.35 * 2 * PAIRS * UPDATES


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_weights_and_context_follow_from_the_chosen_keys(searcher: Searcher) -> None:
    x, y = planted_rows()
    weights = torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(3))
    units = x[:50].clone()
    inverse, key_units, step = to_units(y @ weights, None)
    search = searcher(y, 20, 0.5, nothing_forbidden(50))
    moment = Moment(units @ weights.T, inverse, units, key_units, torch.zeros(50), step.max())
    found = search.nearest(moment)
    image = y.double() @ weights.double()
    score = (units.double() @ torch.nn.functional.normalize(image).T).gather(1, found.key)
    torch.testing.assert_close(found.score.double(), score, atol=1e-6, rtol=1e-5)
    weight = (score / 0.5).exp()
    torch.testing.assert_close(found.total.double(), weight.sum(1), atol=1e-4, rtol=1e-5)
    scaled = (weight / image.norm(dim=1)[found.key])[:, :, None] * y.double()[found.key]
    torch.testing.assert_close(found.context.double(), scaled.sum(1), atol=1e-4, rtol=1e-4)


def nothing_forbidden(queries: int) -> Forbidden:
    return Forbidden(np.zeros(queries + 1, np.int64), np.zeros(0, np.int64))


def still(queries: torch.Tensor, keys: torch.Tensor) -> Moment:
    """Queries and keys that are unit already and have not moved."""
    return Moment(queries, torch.ones(len(keys)), queries, keys, torch.zeros(len(queries)), torch.tensor(0.0))


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_unmoved_queries_are_searched_once(searcher: Searcher) -> None:
    x, y = planted_rows()
    search = searcher(y, NEGATIVES, 1.0, nothing_forbidden(100))
    first = search.nearest(still(x[:100], y)).key.clone()
    for _ in range(10):
        again = search.nearest(still(x[:100], y)).key
    assert search.searched == 100
    assert torch.equal(first.sort(1).values, again.sort(1).values)


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_a_leap_of_one_key_is_noticed(searcher: Searcher) -> None:
    """A key from outside every pool jumps onto the queries; the step that says so must bring it in."""
    x, y = planted_rows()
    search = searcher(y.clone(), 10, 1.0, nothing_forbidden(20))
    before = search.nearest(still(x[:20], y)).key.clone()
    stranger = next(key for key in range(WORDS) if key not in before)
    moved = y.clone()
    moved[stranger] = torch.nn.functional.normalize(x[:20].sum(0), dim=0)
    search.keys[stranger] = moved[stranger]
    step = (moved - y).norm(dim=1).max()
    after = search.nearest(still(x[:20], moved)._replace(key_step=step)).key.numpy()
    assert_nearest(after, allowed_scores(x[:20].double(), moved.double(), [set()] * 20))
    assert (after == stranger).any()


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_masses_of_equal_keys(searcher: Searcher) -> None:
    """All keys the same: any will do, but never a forbidden one, and none twice."""
    y = torch.nn.functional.normalize(torch.ones(WORDS, DIM))
    x = planted_rows()[0][:25]
    forbidden = Forbidden(np.arange(26), np.arange(25))
    search = searcher(y, NEGATIVES, 1.0, forbidden)
    for _ in range(3):
        chosen = search.nearest(still(x, y)).key.numpy()
        for query, row in enumerate(chosen):
            assert len(set(row)) == NEGATIVES
            assert query not in row


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_a_vocabulary_smaller_than_the_pool(searcher: Searcher) -> None:
    x, y = planted_rows()
    keys = y[:35]
    forbidden = Forbidden(np.arange(41), np.arange(40) % 35)
    search = searcher(keys, NEGATIVES, 1.0, forbidden)
    for _ in range(2):
        chosen = search.nearest(still(x[:40], keys)).key.numpy()
        barred = [{query % 35} for query in range(40)]
        assert_nearest(chosen, allowed_scores(x[:40].double(), keys.double(), barred))


def test_never_more_negatives_than_allowed_keys() -> None:
    y = planted_rows()[1][:12]
    search = HardNegatives(y, 150, 1.0, Forbidden(np.array([0, 2, 3]), np.array([0, 1, 5])))
    found = search.nearest(still(y[:2], y))
    assert found.key.shape == (2, 10)
    assert set(found.key[0].tolist()) == set(range(2, 12))
    assert 5 not in found.key[1].tolist()


def test_float64_keys_give_float64_scores() -> None:
    x, y = (rows.double() for rows in planted_rows())
    found = HardNegatives(y, 5, 1.0, nothing_forbidden(10)).nearest(still(x[:10], y))
    assert found.score.dtype == found.context.dtype == torch.float64
    expected = plain.nearest(x[:10].numpy(), y.numpy(), 5, [set()] * 10)
    assert np.array_equal(np.sort(found.key.numpy(), axis=1), np.sort(expected, axis=1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_to_units_measures_lengths_and_steps(dtype: torch.dtype) -> None:
    rows = torch.randn(500, DIM, dtype=dtype, generator=torch.Generator().manual_seed(5))
    inverse, unit, step = to_units(rows.clone(), None)
    torch.testing.assert_close(inverse, 1 / rows.norm(dim=1))
    torch.testing.assert_close(unit, torch.nn.functional.normalize(rows))
    assert (step == 0).all()
    moved = rows + 0.1
    _, new_unit, step = to_units(moved.clone(), unit)
    torch.testing.assert_close(step, (new_unit - unit).norm(dim=1))


def test_forbidden_partners_follow_the_definition() -> None:
    pairs = known_pairs()
    for all_known in (False, True):
        for limit in (WORDS, 1000):
            for side, forbidden in enumerate(forbidden_partners(pairs, limit, all_known=all_known)):
                expected = [
                    {key for key in keys if key < limit} for keys in barred_partners(pairs, side, all_known)
                ]
                found = [
                    set(forbidden.keys[a:b].tolist())
                    for a, b in zip(forbidden.starts[:-1], forbidden.starts[1:], strict=True)
                ]
                assert found == expected
                assert forbidden.most == max(map(len, expected))


@pytest.mark.parametrize("searcher", SEARCHERS)
@pytest.mark.parametrize("moment", [1, 2], ids=["at the search", "in the pool"])
def test_nan_is_seen_and_does_not_crash(searcher: Searcher, moment: int) -> None:
    x, y = planted_rows()
    search = searcher(y, 10, 1.0, nothing_forbidden(20))
    good = x[:20]
    broken = torch.full_like(good, torch.nan)
    if moment == 2:
        search.nearest(still(good, y))
    try:
        found = search.nearest(still(broken, y))
    except BilexError as error:
        assert "NaN" in str(error)
    else:
        assert found.total.isnan().all()
        assert ((found.key >= 0) & (found.key < WORDS)).all()


@pytest.mark.skipif(
    not torch.cuda.is_available() and "TRITON_INTERPRET" not in os.environ,
    reason="there is no CUDA GPU here, nor TRITON_INTERPRET=1 with triton",
)
@pytest.mark.parametrize(
    ("queries", "pool", "words", "dim"), [(5, 33, 50, 40), (3, 70, 100, 300), (2, 8, 8, 5)]
)
def test_the_fused_kernel_scores_like_torch(queries: int, pool: int, words: int, dim: int) -> None:
    kernel = pytest.importorskip("bilex.search.triton_pools", exc_type=ImportError)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(0)
    rows, keys = (torch.randn(count, dim, generator=generator).to(device) for count in (queries, words))
    norms = torch.rand(words, generator=generator).to(device)
    pools = torch.randint(-1, words, (queries, pool), generator=generator).to(device)
    scores, wanted = torch.full(pools.shape, 7.0, device=device), torch.tensor([0, queries - 1]).to(device)
    kernel.score_pools(rows, keys, norms, pools, wanted, scores, -1e30)
    expected = torch.bmm(keys[pools], rows[:, :, None])[:, :, 0] * norms[pools]
    expected[pools < 0] = -1e30
    torch.testing.assert_close(scores[wanted], expected[wanted], atol=1e-4, rtol=1e-4)
    assert (scores[1:-1] == 7).all()
