from __future__ import annotations

import numpy as np
import pytest
import torch

from bilex.similarity.stochastic import Matches, StochasticMatcher
from bilex.similarity.stochastic_gpu import GpuMatching, k_highest

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


def _found(path: str, matcher: StochasticMatcher, x: np.ndarray, y: np.ndarray, keep: float) -> Matches:
    """What a path finds, as arrays; the GPU's code is run where there is no GPU."""
    if path == "kernels":
        found = matcher(x, y, keep)
    else:
        matching = GpuMatching(torch.from_numpy(x), torch.from_numpy(y), matcher.k, keep, 5)
        found = Matches(*matching.run(matcher._blocks))
    return Matches(found.forward.numpy(), found.backward.numpy(), found.objective)


@pytest.mark.parametrize("memory", [2 << 30, 300 * ROW])
@pytest.mark.parametrize("path", ["kernels", "torch"])
def test_nothing_hidden_is_plain_csls(sides, memory, path) -> None:
    x, y = sides
    matcher = StochasticMatcher(device="cpu", memory=memory)
    found = _found(path, matcher, x, y, 1.0)
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


def test_chance_is_reproducible_and_moves_on(sides) -> None:
    x, y = sides
    one, two = StochasticMatcher(device="cpu", seed=7), StochasticMatcher(device="cpu", seed=7)
    first, again = one(x, y, 0.2), two(x, y, 0.2)
    assert (first.forward == again.forward).all() and (first.backward == again.backward).all()
    assert (one(x, y, 0.2).forward != first.forward).any()
    assert (StochasticMatcher(device="cpu", seed=8)(x, y, 0.2).forward != first.forward).any()


def test_results_do_not_depend_on_memory_or_threads(sides) -> None:
    x, y = sides
    whole = StochasticMatcher(device="cpu", seed=7)(x, y, 0.3)
    parts = StochasticMatcher(device="cpu", seed=7, memory=300 * ROW)(x, y, 0.3)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        alone = StochasticMatcher(device="cpu", seed=7)(x, y, 0.3)
    finally:
        torch.set_num_threads(threads)
    for other in (parts, alone):
        assert (whole.forward == other.forward).double().mean() > 0.99
        assert (whole.backward == other.backward).double().mean() > 0.99
        assert whole.objective == pytest.approx(other.objective, abs=1e-4)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("shape", [(7, 300), (330, 401), (160, 16)])
def test_the_highest_of_lines_are_those_of_a_sort(shape) -> None:
    """Sizes under, on and off the multiples of a group; ties too."""
    scores = torch.from_numpy(np.random.default_rng(2).integers(-40, 40, size=shape).astype(np.float32))
    for dim in (0, 1):
        k = min(10, shape[dim])
        found = k_highest(scores, k, dim).sort(dim=1).values
        assert torch.equal(found, scores.movedim(dim, 1).sort(dim=1).values[:, -k:])
