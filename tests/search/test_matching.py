from __future__ import annotations

import numpy as np
import pytest
import torch

from bilex.search import plain
from bilex.search.gpu import k_best, match
from bilex.search.low_precision import operands
from bilex.search.matching import CpuMatcher, Matches, StochasticMatcher

ROW = 4 * 900  # bytes of the scores of one source row


@pytest.fixture(scope="module")
def sides() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(700, 30)), random.normal(size=(900, 30))
    return tuple((s / np.linalg.norm(s, axis=1, keepdims=True)).astype(np.float32) for s in (x, y))


def _penalised(x: np.ndarray, y: np.ndarray, k: int = 10) -> tuple[np.ndarray, np.ndarray, float]:
    """Forward and backward CSLS scores up to a constant a query, and the objective, in float64."""
    scores = x.astype(np.float64) @ y.astype(np.float64).T
    of_rows = np.sort(scores, axis=1)[:, -k:].mean(1)
    of_columns = np.sort(scores, axis=0)[-k:].mean(0)
    objective = (scores.max(1).mean() + scores.max(0).mean()) / 2
    return scores - of_columns / 2, (scores - of_rows[:, None] / 2).T, objective


def _found(
    path: str, matcher: StochasticMatcher, x: np.ndarray, y: np.ndarray, keep: float, memory: int = 2 << 30
) -> Matches:
    """What a path finds, as arrays; the GPU's code is run where there is no GPU."""
    if path == "kernels":
        found = matcher(x, y, keep)
    else:
        found = Matches(*match(torch.from_numpy(x), torch.from_numpy(y), matcher.k, keep, 5, memory))
    return Matches(found.forward.numpy(), found.backward.numpy(), found.objective)


@pytest.mark.parametrize(("path", "memory"), [("kernels", 0), ("torch", 2 << 30), ("torch", 300 * ROW)])
def test_nothing_hidden_is_plain_csls(sides, path, memory) -> None:
    x, y = sides
    found = _found(path, StochasticMatcher(device="cpu"), x, y, 1.0, memory)
    forward, backward, objective = _penalised(x, y)
    assert (found.forward == forward.argmax(1)).all()
    assert (found.backward == backward.argmax(1)).all()
    assert found.objective == pytest.approx(objective, abs=1e-6)


@pytest.mark.parametrize("path", ["kernels", "torch"])
@pytest.mark.parametrize("keep", [0.1, 0.5])
def test_a_best_partner_survives_with_the_probability_of_being_kept(sides, path, keep) -> None:
    """The rank of the partner found is geometric: rank r with probability keep·(1 − keep)^r."""
    x, y = sides
    matcher = StochasticMatcher(device="cpu", seed=3)
    found = _found(path, matcher, x, y, keep)
    forward, backward, _ = _penalised(x, y)
    for scores, partner in ((forward, found.forward), (backward, found.backward)):
        chosen = scores[np.arange(len(scores)), partner]
        rank = (scores > chosen[:, None] + 5e-3).sum(1)  # bfloat16 may swap what is nearer than that
        assert rank.mean() == pytest.approx((1 - keep) / keep, rel=0.25)
        assert (rank == 0).mean() == pytest.approx(keep, abs=0.09)


@pytest.mark.parametrize("path", ["kernels", "torch"])
def test_hidden_scores_count_as_zero(path) -> None:
    """Against negative scores a hidden candidate wins, and it is the first one."""
    x = np.tile(np.array([[1.0, 0.0]], np.float32), (40, 1))
    y = np.tile(np.array([[-1.0, 0.0]], np.float32), (50, 1))
    y[:, 1] = 0.5
    found = _found(path, StochasticMatcher(k=1, device="cpu", seed=1), x, y, 0.5)
    # sim = −1, r = −1, so a kept score is −1 + ½ < 0 and a hidden one 0: the first hidden column.
    assert found.forward.max() < 12
    assert (found.forward == 0).mean() == pytest.approx(0.5, abs=0.25)


def test_randomness_is_reproducible_and_moves_on(sides) -> None:
    x, y = sides
    one, two = StochasticMatcher(device="cpu", seed=7), StochasticMatcher(device="cpu", seed=7)
    first, again = one(x, y, 0.2), two(x, y, 0.2)
    assert (first.forward == again.forward).all() and (first.backward == again.backward).all()
    assert (one(x, y, 0.2).forward != first.forward).any()
    assert (StochasticMatcher(device="cpu", seed=8)(x, y, 0.2).forward != first.forward).any()


def test_results_do_not_depend_on_threads(sides) -> None:
    x, y = sides
    whole = StochasticMatcher(device="cpu", seed=7)(x, y, 0.3)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        alone = StochasticMatcher(device="cpu", seed=7)(x, y, 0.3)
    finally:
        torch.set_num_threads(threads)
    assert (whole.forward == alone.forward).double().mean() > 0.99
    assert (whole.backward == alone.backward).double().mean() > 0.99
    assert whole.objective == pytest.approx(alone.objective, abs=1e-4)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("shape", [(7, 300), (330, 401), (160, 16)])
def test_the_highest_of_lines_are_those_of_a_sort(shape) -> None:
    """Sizes under, on and off the multiples of a group; ties too."""
    scores = torch.from_numpy(np.random.default_rng(2).integers(-40, 40, size=shape).astype(np.float32))
    for some in (scores, scores.T):
        k = min(10, some.shape[1])
        found, columns = k_best(some, k)
        assert torch.equal(found.sort(dim=1).values, some.sort(dim=1).values[:, -k:])
        assert torch.equal(found, some.gather(1, columns))
        assert all(len(set(row)) == k for row in columns.tolist())


def _drift(rows: np.ndarray, size: float, seed: int) -> np.ndarray:
    moved = rows + size * np.random.default_rng(seed).normal(size=rows.shape) / np.sqrt(rows.shape[1])
    return (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("limit", [127, 63, 0])
@pytest.mark.parametrize("drift", [0.02, 0.3, 3.0])
def test_partners_are_those_of_the_plain_version(sides, monkeypatch, limit: int, drift: float) -> None:
    """After a call that was alike, or wholly different, in every precision."""
    monkeypatch.setattr(operands, "int8_limit", lambda: limit)
    x, y = sides
    matcher = CpuMatcher(10)
    for number, keep in enumerate((0.1, 0.1, 0.4, 0.8, 1.0, 1.0, 0.1)):
        x = _drift(x, drift, number)
        masks = 11 + number, 12345 + number
        found = matcher(torch.from_numpy(x), torch.from_numpy(y), keep, masks)
        low = [_rounded(rows, bool(limit) and keep < 1) for rows in (x, y)]
        shapes = (len(x), len(y)), (len(y), len(x))
        kept = tuple(_kept(key, shape, keep) for key, shape in zip(masks, shapes, strict=True))
        forward, backward, objective = plain.match(*low, 10, kept)
        assert (found[0].numpy() == forward).all()
        assert (found[1].numpy() == backward).all()
        assert found[2] == pytest.approx(objective, abs=1e-6)


def _rounded(rows: np.ndarray, int8: bool) -> np.ndarray:
    low = operands.operand(rows, int8=int8, rotate=False)
    return low.rows.astype(np.float64)[:, : rows.shape[1]] * low.scale[:, None].astype(np.float64)


def _kept(key: int, shape: tuple[int, int], keep: float) -> np.ndarray:
    """SplitMix64's mixing of key ⊕ (query, candidate), its upper half against keep·2³²."""
    query, candidate = np.indices(shape).astype(np.uint64)
    mixed = np.uint64(key) ^ (query * np.uint64(2**32) + candidate)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))) / 2.0**64 < keep


def test_rounding_to_eight_bits_is_measured(sides) -> None:
    x, _ = sides
    low = operands.operand(x, int8=True, rotate=False)
    away = np.linalg.norm(_rounded(x, True) - x, axis=1)
    limit = operands.int8_limit()
    assert (away <= low.error).all() and low.error.max() < 1.27 / limit
    assert (np.abs(low.rows).max(axis=1) == limit).all()


@pytest.mark.parametrize("keep", [0.3, 1.0])
def test_a_target_that_was_changed_in_place_is_seen(sides, keep: float) -> None:
    x, y = (torch.from_numpy(side) for side in sides)
    matcher, changing = StochasticMatcher(device="cpu", seed=2), y.clone()
    matcher(x, changing, keep)
    changing.copy_(y.flip(0))
    fresh = StochasticMatcher(device="cpu", seed=2, calls=1)
    found, expected = matcher(x, changing, keep), fresh(x, y.flip(0), keep)
    assert torch.equal(found.forward, expected.forward)
    assert torch.equal(found.backward, expected.backward)


def test_few_rows_and_lines_without_room() -> None:
    """One row per side, and more equal scores than a list has room for."""
    alone = np.array([[1.0, 0.0]], np.float32)
    assert StochasticMatcher(device="cpu")(alone, alone, 1.0).forward.tolist() == [0]
    many = np.tile(alone, (700, 1))
    matcher = StochasticMatcher(device="cpu")
    for _ in range(3):
        found = matcher(many, many, 1.0)
        assert (found.forward == 0).all() and (found.backward == 0).all()
        assert found.objective == pytest.approx(1)
    assert (matcher(many, many, 0.5).forward < 30).all()
