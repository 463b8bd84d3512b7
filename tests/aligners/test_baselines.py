"""The formulas of the baselines against independent computations: Procrustes, RCSLS, FIPP, VecMap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import torch
from c1_worlds import World

from bilex import BilexError
from bilex.aligners import Aligner, fipp, get_method, vecmap
from bilex.aligners.advanced import AdvancedMapping, advanced_maps, ridge_for
from bilex.aligners.fipp import FIPP, best_matching, filtered_gram, greedy_matching, top_eigenpairs
from bilex.aligners.lnmap import mutual_best
from bilex.aligners.procrustes import Procrustes, common_rotations
from bilex.aligners.rcsls import RCSLS, RelaxedCSLS, spectral_projection
from bilex.aligners.vecmap import rotation
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from recorder import Recorder


def test_procrustes_is_the_rotation_of_scipy() -> None:
    world = World(noise=1.0)
    fitted = world.fit(Procrustes())
    x, y = (
        side.vectors[:100] / np.linalg.norm(side.vectors[:100], axis=1)[:, None]
        for side in (world.source, world.target)
    )
    expected, _ = scipy.linalg.orthogonal_procrustes(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(fitted.source_map_.matrix, expected, atol=1e-5)
    np.testing.assert_array_equal(fitted.target_map_.matrix, np.eye(20))


@pytest.mark.parametrize("method", [Procrustes, AdvancedMapping])
@pytest.mark.parametrize("dims", [(20, 20), (30, 20), (20, 30)])
def test_different_dimensions_meet_in_the_smaller(method: type, dims: tuple[int, int]) -> None:
    world = World(dim=dims[0], target_dim=dims[1], noise=0.1)
    fitted = world.fit(method(device="cpu"), 150)
    assert world.precision(fitted, 150) > 0.97
    assert (fitted.source_map_.matrix.shape, fitted.target_map_.matrix.shape) == (
        (dims[0], 20),
        (dims[1], 20),
    )


def papers_maps(x: np.ndarray, y: np.ndarray, ridge: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The formulas of the paper's appendix, step by step: A = VΣ⁻¹Vᵀ from the SVD of the rows.

    A ridge adds this number times the mean of Σ² to each of them.
    """

    def whitening(rows: np.ndarray) -> np.ndarray:
        _, values, vt = np.linalg.svd(rows, full_matrices=False)
        values = np.sqrt(values**2 + ridge * (values**2).mean())
        return vt.T @ np.diag(1 / values) @ vt

    a_x, a_y = whitening(x), whitening(y)
    p, s, qt = np.linalg.svd((x @ a_x).T @ (y @ a_y))
    root = np.diag(np.sqrt(s))
    w_x = a_x @ p @ root @ p.T @ np.linalg.inv(a_x) @ p
    w_y = a_y @ qt.T @ root @ qt @ np.linalg.inv(a_y) @ qt.T
    return w_x, w_y


@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_advanced_mapping_is_the_papers_formula(damping: float) -> None:
    """Up to the signs of the common directions, which an SVD leaves open."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 12))
    y = x @ np.linalg.qr(rng.normal(size=(12, 12)))[0] + 0.5 * rng.normal(size=(80, 12))
    found = advanced_maps(torch.from_numpy(x), torch.from_numpy(y), damping=damping)
    assert found.ridge == pytest.approx(damping * 12 / 80)
    expected_x, expected_y = papers_maps(x, y, found.ridge)
    sign = np.sign((found.source.numpy() * expected_x).sum(0))
    np.testing.assert_allclose(found.source.numpy() * sign, expected_x, atol=1e-9)
    np.testing.assert_allclose(found.target.numpy() * sign, expected_y, atol=1e-9)


def test_damping_only_for_few_pairs() -> None:
    assert ridge_for(600, 300) == ridge_for(5000, 300) == 0
    assert ridge_for(300, 300) == 1
    assert ridge_for(0, 300) > ridge_for(2, 300) > ridge_for(100, 300) > 1
    assert ridge_for(3000, 300, damping=2.0) == pytest.approx(0.2)
    assert ridge_for(100, 300, damping=0.1) == ridge_for(100, 300)
    world, recorder = World(noise=0.2), Recorder()
    fitted = world.fit(AdvancedMapping(device="cpu"), 12, progress=recorder)
    assert fitted.report_.ridge == pytest.approx(2 * 20 / 12 - 1)
    assert recorder.messages == [
        "12 word pairs are few for these dimensions: 2.33 times the mean eigenvalue is added before "
        "whitening."
    ]
    assert np.isfinite(fitted.source_map_.matrix).all()


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_advanced_mapping_of_singular_data_stays_finite(rank: int) -> None:
    rng = np.random.default_rng(0)
    flat = (rng.normal(size=(100, rank)) @ rng.normal(size=(rank, 12))).astype(np.float32)
    found = advanced_maps(torch.from_numpy(flat), torch.from_numpy(flat))
    assert found.source.isfinite().all()
    assert found.source.abs().max() < 10


@pytest.mark.parametrize("shape", [(12, 12), (12, 9), (9, 12)])
def test_a_rotation_from_few_pairs_does_not_hang_on_rounding(shape: tuple[int, int]) -> None:
    numbers = np.random.default_rng(0)
    x, y = numbers.normal(size=(5, shape[0])), numbers.normal(size=(5, shape[1]))
    u, values, v = common_rotations(x.T @ y)
    rounded = (x.T @ y) * (1 + 1e-15 * numbers.normal(size=shape))
    again_u, _, again_v = common_rotations(rounded)
    np.testing.assert_allclose(u @ v.T, again_u @ again_v.T, atol=1e-7)
    np.testing.assert_allclose(u.T @ u, np.eye(min(shape)), atol=1e-9)
    np.testing.assert_allclose(v.T @ v, np.eye(min(shape)), atol=1e-9)
    np.testing.assert_allclose((u * values) @ v.T, x.T @ y, atol=1e-9)


def test_enough_pairs_give_the_plain_decomposition_to_the_bit() -> None:
    numbers = np.random.default_rng(1)
    covariance = numbers.normal(size=(30, 12)).T @ numbers.normal(size=(30, 12))
    u, values, v = common_rotations(covariance)
    expected = scipy.linalg.svd(covariance, full_matrices=False)
    for found, plain in zip((u, values, v.T), expected, strict=True):
        np.testing.assert_array_equal(found, plain)


def test_directions_without_weight_hold_nothing() -> None:
    world = World(words=50, dim=30)
    x, y = world.source.vectors[:8], world.target.vectors[:8]
    maps = advanced_maps(x, y)
    for one in (maps.source, maps.target):
        assert int((one.abs().amax(dim=0) > 0).sum()) == 8


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


def test_fewer_pairs_than_dimensions_give_a_rotation() -> None:
    """The part that they leave open is anything, but it must be a rotation."""
    random = np.random.default_rng(4)
    x, y = (torch.from_numpy(random.normal(size=(20, 50)).astype(np.float32)) for _ in "xy")
    turn = rotation(x, y, torch.arange(20).repeat(2, 1).T)
    assert (turn @ turn.T - torch.eye(50)).abs().max() < 1e-5


def test_rotation_undoes_a_rotation_and_counts_pairs_as_often_as_they_come() -> None:
    random = np.random.default_rng(1)
    x = torch.from_numpy(random.normal(size=(80, 12)).astype(np.float32))
    turn, _ = np.linalg.qr(random.normal(size=(12, 12)))
    y = (x.double() @ torch.from_numpy(turn)).float()
    pairs = torch.arange(80).repeat(2, 1).T
    assert (rotation(x, y, pairs) - torch.from_numpy(turn)).abs().max() < 1e-5
    y = y + torch.from_numpy(random.normal(size=y.shape).astype(np.float32))
    twice = torch.cat([pairs, pairs[:20]])
    weights = np.ones(80)
    weights[:20] = 2
    u, _, v = np.linalg.svd((x.double().numpy() * weights[:, None]).T @ y.double().numpy())
    assert (rotation(x, y, twice) - torch.from_numpy(u @ v)).abs().max() < 1e-5


def test_an_identical_start_without_shared_words_is_refused() -> None:
    world = World(words=100)
    with pytest.raises(BilexError, match="share 0 words, too few"):
        get_method("vecmap-identical")(device="cpu").fit(world.source, world.target)


def test_a_collapse_is_reported() -> None:
    """Unrelated languages are matched all the same, but the pairs do not predict each other."""
    random = np.random.default_rng(9)
    world = World(words=600)
    for side in ("source", "target"):
        words = getattr(world, side).index_to_key
        setattr(world, side, WordVectors(words, random.normal(size=(600, 100)).astype(np.float32)))
    impatient = get_method("vecmap-semi")(device="cpu", patience=2, growth=10.0)
    report = world.fit(impatient, 200).report_
    assert report.recovered < 0.25
    assert "probably not brought together" in report.warnings[0]


@pytest.mark.parametrize("at", [2, 7, 12])
def test_self_learning_that_was_cut_off_continues_to_the_same_maps(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vecmap, "_SECONDS_KEPT", -1.0)
    world = World(dim=24, noise=0.5)

    def fit(**more: Any) -> Aligner:
        return world.fit(get_method("vecmap-semi")(device="cpu", patience=3), 40, **more)

    whole = fit()
    assert whole.report_.rounds > 12
    with pytest.raises(KeyboardInterrupt):
        fit(checkpoint=tmp_path / "kept", progress=Recorder("self-learning", stop_round=at))
    again = fit(checkpoint=tmp_path / "kept", progress=Recorder("self-learning", stop_round=at - 1))
    assert again.report_ == whole.report_
    for side, vectors in (("source_map_", world.source), ("target_map_", world.target)):
        both = [getattr(one, side)(vectors.vectors) for one in (again, whole)]
        np.testing.assert_array_equal(*both)
