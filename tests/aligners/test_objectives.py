"""The rivals' objectives and gradients against independent computations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bilex.aligners import fipp
from bilex.aligners.fipp import FIPP, best_matching, filtered_gram, greedy_matching, top_eigenpairs
from bilex.aligners.lnmap import mutual_best
from bilex.aligners.rcsls import RCSLS, RelaxedCSLS, spectral_projection
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors


def _unit(random: np.random.Generator, *shape: int) -> np.ndarray:
    rows = random.normal(size=shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _rcsls_by_definition(matrix: torch.Tensor, x, y, pairs, k: int) -> torch.Tensor:
    """The loss written down term by term in float64; topk passes the gradient to the chosen entries."""
    x, y = torch.from_numpy(x).double(), torch.from_numpy(y).double()
    scores = x @ matrix @ y.T
    a, b = torch.from_numpy(pairs).T
    near_x = scores[a].topk(k, dim=1).values.mean(1)
    near_y = scores[:, b].topk(k, dim=0).values.mean(0)
    return -(2 * scores[a, b] - near_x - near_y).mean()


@pytest.mark.parametrize("k", [1, 4, 10])
def test_rcsls_loss_and_gradient_equal_autograd(k: int) -> None:
    random = np.random.default_rng(0)
    x, y = _unit(random, 90, 12), _unit(random, 110, 12)
    pairs = np.stack([random.integers(0, 90, 40), random.integers(0, 110, 40)], axis=1)
    matrix = random.normal(size=(12, 12))
    found = RelaxedCSLS(x, y, pairs, k, "cpu")(matrix)
    leaf = torch.from_numpy(matrix).requires_grad_()
    loss = _rcsls_by_definition(leaf, x, y, pairs, k)
    loss.backward()
    assert found.loss == pytest.approx(float(loss.detach()), rel=1e-10)
    np.testing.assert_allclose(found.gradient, leaf.grad.numpy(), rtol=1e-9, atol=1e-12)


def _problem() -> tuple[WordVectors, WordVectors, Lexicon]:
    random = np.random.default_rng(1)
    x = random.normal(size=(300, 10))
    y = x @ np.linalg.qr(random.normal(size=(10, 10)))[0] + 0.8 * random.normal(size=x.shape)
    source = WordVectors([f"s{i}" for i in range(300)], x.astype(np.float32))
    target = WordVectors([f"t{i}" for i in range(300)], y.astype(np.float32))
    return source, target, Lexicon([(f"s{i}", f"t{i}") for i in range(100)])


def test_rcsls_takes_back_a_step_that_raised_the_loss() -> None:
    source, target, seeds = _problem()
    fit = RCSLS(learning_rate=1e4, iterations=2, device="cpu").fit(source, target, seeds)
    start = RCSLS(iterations=0, device="cpu").fit(source, target, seeds)
    losses = fit.report_.losses
    assert losses[1] > losses[0] and losses[2] > losses[0]
    assert fit.report_.last_step_length == 2500
    np.testing.assert_array_equal(fit.source_map_.matrix, start.source_map_.matrix)
    void = RCSLS(learning_rate=1e4, iterations=2, restore=False, device="cpu").fit(source, target, seeds)
    assert not np.array_equal(void.source_map_.matrix, start.source_map_.matrix)


def test_rcsls_loss_of_accepted_steps_falls() -> None:
    source, target, seeds = _problem()
    losses = RCSLS(learning_rate=0.5, iterations=8, device="cpu").fit(source, target, seeds).report_.losses
    assert losses[-1] < losses[0]


def test_spectral_projection_cuts_singular_values() -> None:
    random = np.random.default_rng(0)
    matrix = random.normal(size=(6, 6))
    cut = spectral_projection(matrix)
    values = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(np.linalg.svd(cut, compute_uv=False), np.minimum(values, 1), atol=1e-12)
    source, target, seeds = _problem()
    fit = RCSLS(spectral=True, device="cpu").fit(source, target, seeds)
    assert np.linalg.norm(fit.source_map_.matrix, 2) <= 1 + 1e-5


def test_filtered_gram_minimises_its_objective() -> None:
    """Minimise the objective over a free matrix by autograd, and compare."""
    random = np.random.default_rng(2)
    x, y = _unit(random, 50, 8), _unit(random, 50, 8)
    y = (0.8 * x + 0.2 * y).astype(np.float32)
    epsilon, strength = 0.1, 0.7
    found = filtered_gram(x, y, epsilon, strength, "cpu")
    a, b = (torch.from_numpy(s).double() for s in (x, y))
    gram_x, gram_y = a @ a.T, b @ b.T
    close = ((gram_x - gram_y).abs() < epsilon).double()
    pull = strength * 50**2 / close.sum()
    free = torch.zeros(50, 50, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([free], max_iter=100, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = ((free - gram_x) ** 2).sum() + pull * (close * (free - gram_y) ** 2).sum()
        value.backward()
        return value

    optimizer.step(loss)
    np.testing.assert_allclose(found.gram.numpy(), free.detach().numpy(), atol=1e-5)
    distance = torch.linalg.vector_norm(free.detach() - gram_y, dim=1)
    np.testing.assert_allclose(found.weights, (1 / distance).numpy(), rtol=1e-3)
    assert found.bridged == pytest.approx(float(close.mean()))


def test_top_eigenpairs_by_iteration_equal_a_full_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fipp, "_SMALL", 100)
    random = np.random.default_rng(0)
    x = random.normal(size=(400, 20)).astype(np.float32)
    blur = 0.05 * random.normal(size=(400, 400)).astype(np.float32)
    matrix = x @ x.T + blur + blur.T
    values, vectors = top_eigenpairs(
        torch.from_numpy(matrix), torch.from_numpy(random.normal(size=(400, 40))).float(), 20
    )
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(matrix)[::-1][:20], rtol=1e-3)
    residual = matrix @ vectors.numpy() - vectors.numpy() * values.numpy()
    assert np.linalg.norm(residual, axis=0).max() < 1e-2 * values[-1]


@pytest.mark.parametrize("most", [1, 7, 25, 100])
def test_greedy_matching_equals_the_greedy_rule(most: int) -> None:
    random = np.random.default_rng(4)
    x, y = _unit(random, 30, 5), _unit(random, 40, 5)
    scores = x @ y.T
    expected = []
    while len(expected) < min(most, 30):
        row, column = np.unravel_index(scores.argmax(), scores.shape)
        expected.append((row, column))
        scores[row, :] = scores[:, column] = -np.inf
    pairs, values = greedy_matching(x, y, most, device="cpu")
    assert pairs.tolist() == [[int(a), int(b)] for a, b in expected]
    assert (np.diff(values) <= 0).all()


@pytest.mark.parametrize("most", [1, 7, 100])
def test_best_matching_keeps_the_most_similar_word_of_each_target(most: int) -> None:
    random = np.random.default_rng(4)
    x, y = _unit(random, 30, 5), _unit(random, 20, 5)
    scores = x @ y.T
    best = scores.argmax(1)
    expected = [
        (int(row), int(best[row]))
        for row in np.argsort(-scores.max(1))
        if scores[row].max() == max(scores[other].max() for other in np.flatnonzero(best == best[row]))
    ]
    pairs, values = best_matching(x, y, most, device="cpu")
    assert pairs.tolist() == [list(pair) for pair in expected[:most]]
    assert (np.diff(values) <= 0).all()


@pytest.mark.parametrize("settings", [{}, {"centred": True, "matching": "greedy", "frequent": 150}])
def test_fipp_is_the_plain_program(settings: dict[str, Any]) -> None:
    """Ours in float32, the formulas in float64 (`research.plain_fipp`), self-learning included."""
    from research.plain_fipp import fipp as plain
    from research.plain_vecmap import Problem

    source, target, seeds = _problem()
    fitted = FIPP(pairs=160, epsilon=0.2, device="cpu", **settings).fit(source, target, seeds)
    assert fitted.report_.self_learning and fitted.report_.pairs > len(seeds)
    pairs = torch.from_numpy(seeds.index(source.key_to_index, target.key_to_index))
    x, y = (torch.from_numpy(side.vectors) for side in (source, target))
    way = {name: settings[name] for name in ("centred", "frequent") if name in settings}
    problem = Problem(x, y, pairs, few_seeds=True)
    expected = plain(problem, wanted_pairs=160, epsilon=0.2, greedy="matching" in settings, **way)
    mapped = fitted.source_map_(x.numpy()) @ fitted.target_map_(y.numpy()).T
    np.testing.assert_allclose(mapped, (expected[0] @ expected[1].T).numpy(), atol=1e-4)


@pytest.mark.parametrize("centred", [False, True])
def test_fipp_removes_the_first_direction_of_both_languages(centred: bool) -> None:
    source, target, seeds = _problem()
    fitted = FIPP(centred=centred, device="cpu").fit(source, target, seeds)
    rows = target.vectors / np.linalg.norm(target.vectors, axis=1, keepdims=True)
    less_mean = rows - rows.mean(0)
    first = np.linalg.svd(less_mean, full_matrices=False)[2][0]
    expected = less_mean - np.outer((less_mean if centred else rows) @ first, first)
    np.testing.assert_allclose(fitted.target_map_(target.vectors), expected, atol=1e-5)


def test_mutual_best_equals_brute_force() -> None:
    random = np.random.default_rng(6)
    x, y = _unit(random, 60, 6), _unit(random, 70, 6)
    scores = x.astype(np.float64) @ y.T.astype(np.float64)
    csls = 2 * scores - np.sort(scores, 1)[:, -3:].mean(1)[:, None] - np.sort(scores, 0)[-3:].mean(0)
    forward, backward = csls.argmax(1), csls.argmax(0)
    expected = [(i, forward[i]) for i in range(40) if forward[i] < 40 and backward[forward[i]] == i]
    expected.sort(key=lambda pair: -scores[pair])
    found = mutual_best(torch.from_numpy(x), torch.from_numpy(y), 40, 3, "cpu")
    assert found.tolist() == [[a, int(b)] for a, b in expected]
