"""What holds for every method, and the closed-form ones in particular."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.linalg
import torch
from c1_worlds import Listener, World

from bilex.aligners import get_method, methods
from bilex.aligners.advanced import AdvancedMapping, advanced_maps, ridge_for
from bilex.aligners.c1 import C1
from bilex.aligners.induction import Induced, augmentation, induce_pairs, without_words_of
from bilex.aligners.procrustes import Procrustes
from bilex.core.errors import BilexError
from bilex.core.files import json_text
from bilex.core.typed_json import as_json, from_json
from bilex.lexicon import Lexicon

FIRST_METHODS = {"procrustes": Procrustes, "advanced": AdvancedMapping, "c1": C1}


def test_every_method_is_found_by_name() -> None:
    found = methods()
    assert list(found) == sorted(found)
    assert found.items() >= FIRST_METHODS.items()
    assert {"vecmap-supervised", "vecmap-unsupervised", "rcsls", "fipp", "lnmap"} <= set(found)
    for name, method in found.items():
        assert get_method(name) is method
        assert method.name == name
        assert method.summary
        assert method.metric in ("cosine", "dot")
        assert not name.startswith("_")
        method()  # every setting has a default


def test_a_mistyped_method_gets_the_nearest_name() -> None:
    with pytest.raises(BilexError, match=r"method 'procustes' is not known; .* Did you mean 'procrustes'\?"):
        get_method("procustes")
    with pytest.raises(BilexError, match="choose one of advanced, c1, ") as caught:
        get_method("xyzzy")
    assert "Did you mean" not in str(caught.value)


def test_an_aligner_prints_what_differs_from_the_defaults() -> None:
    assert repr(C1()) == "C1()"
    assert repr(C1(updates=5, device="cpu", decay=0.5)) == "C1(device='cpu', updates=5, decay=0.5)"
    assert C1(updates=5) == C1(updates=5) != C1(updates=6)


def test_settings_are_the_constructor_arguments() -> None:
    settings = C1(updates=5).settings()
    assert settings["updates"] == 5
    assert "source_map_" not in settings
    assert C1(**settings) == C1(updates=5)


@pytest.mark.parametrize("method", [Procrustes, AdvancedMapping])
@pytest.mark.parametrize("lexicon", [None, Lexicon([])])
def test_a_method_that_needs_seeds_says_so(method: type, lexicon: Lexicon | None) -> None:
    world = World(words=50)
    with pytest.raises(
        BilexError, match=f"method '{method.name}' needs a seed dictionary; give one with --seeds"
    ):
        method().fit(world.source, world.target, lexicon)


@pytest.mark.parametrize("method", [Procrustes, AdvancedMapping])
def test_too_few_pairs_are_counted(method: type) -> None:
    world = World(words=50)
    with pytest.raises(BilexError, match=r"^few\.txt: .*needs at least 2 pairs"):
        method().fit(world.source, world.target, Lexicon([("s1", "t1"), ("dog", "koira")], "few.txt"))


QUICK = {
    "c1": {"iterations": 1, "updates": 2, "negatives": 2},
    "lnmap": {
        "hidden": 8,
        "latent": 6,
        "autoencoder_epochs": 1,
        "autoencoder_samples": 64,
        "mapper_epochs": 2,
        "rounds": 1,
    },
}


@pytest.mark.parametrize("name", [name for name, method in methods().items() if method.needs_seeds])
def test_reports_survive_json(name: str) -> None:
    world = World(words=60)
    aligner = get_method(name)(device="cpu", **QUICK.get(name, {}))
    report = aligner.fit(world.source, world.target, world.seeds(40)).report_
    assert report.seed_pairs_used == 40
    assert from_json(aligner.report_type(), json.loads(json_text(as_json(report)))) == report


def test_the_report_of_c1_survives_json() -> None:
    world = World(words=60)
    report = C1(device="cpu", **QUICK["c1"]).fit(world.source, world.target, world.seeds(40)).report_
    assert from_json(C1.report_type(), json.loads(json_text(as_json(report)))) == report
    assert report.constants is not None and len(report.history[0].loss) == 2


def test_the_report_counts_covered_seeds_with_repeats() -> None:
    world = World(words=50)
    seeds = Lexicon([*world.seeds(30).pairs, ("s1", "t1"), ("dog", "koira")])
    fitted = Procrustes().fit(world.source, world.target, seeds)
    assert fitted.report_.seed_pairs == 32
    assert fitted.report_.seed_pairs_used == 31


@pytest.mark.parametrize("method", [Procrustes, AdvancedMapping])
@pytest.mark.parametrize("dims", [(20, 20), (30, 20), (20, 30)])
def test_closed_forms_find_a_planted_rotation(method: type, dims: tuple[int, int]) -> None:
    world = World(dim=dims[0], target_dim=dims[1], noise=0.1)
    fitted = world.fit(method(device="cpu"), 150)
    assert world.precision(fitted, 150) > 0.97
    assert fitted.source_map_.matrix.shape == (dims[0], 20)
    assert fitted.target_map_.matrix.shape == (dims[1], 20)


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


def papers_maps(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The formulas of the paper's appendix, step by step: A = VΣ⁻¹Vᵀ from the SVD of the rows."""

    def whitening(rows: np.ndarray) -> np.ndarray:
        _, values, vt = np.linalg.svd(rows, full_matrices=False)
        return vt.T @ np.diag(1 / values) @ vt

    a_x, a_y = whitening(x), whitening(y)
    p, s, qt = np.linalg.svd((x @ a_x).T @ (y @ a_y))
    root = np.diag(np.sqrt(s))
    w_x = a_x @ p @ root @ p.T @ np.linalg.inv(a_x) @ p
    w_y = a_y @ qt.T @ root @ qt @ np.linalg.inv(a_y) @ qt.T
    return w_x, w_y


def test_advanced_mapping_is_the_papers_formula() -> None:
    """Up to the signs of the common directions, which an SVD leaves open."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 12))
    y = x @ np.linalg.qr(rng.normal(size=(12, 12)))[0] + 0.5 * rng.normal(size=(80, 12))
    found = advanced_maps(torch.from_numpy(x), torch.from_numpy(y))
    assert found.ridge == 0
    expected_x, expected_y = papers_maps(x, y)
    sign = np.sign((found.source.numpy() * expected_x).sum(0))
    np.testing.assert_allclose(found.source.numpy() * sign, expected_x, atol=1e-9)
    np.testing.assert_allclose(found.target.numpy() * sign, expected_y, atol=1e-9)


def test_damping_only_for_few_pairs() -> None:
    assert ridge_for(600, 300) == ridge_for(5000, 300) == 0
    assert ridge_for(300, 300) == 1
    assert ridge_for(0, 300) > ridge_for(2, 300) > ridge_for(100, 300) > 1
    world, listener = World(noise=0.2), Listener()
    fitted = world.fit(AdvancedMapping(device="cpu"), 12, progress=listener)
    assert fitted.report_.ridge == pytest.approx(2 * 20 / 12 - 1)
    assert listener.said == [
        "12 seed pairs are few for these dimensions: the whitening is damped "
        "(ridge 2.33 of the mean eigenvalue)."
    ]
    assert np.isfinite(fitted.source_map_.matrix).all()


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_advanced_mapping_of_singular_data_stays_finite(rank: int) -> None:
    rng = np.random.default_rng(0)
    flat = (rng.normal(size=(100, rank)) @ rng.normal(size=(rank, 12))).astype(np.float32)
    found = advanced_maps(torch.from_numpy(flat), torch.from_numpy(flat))
    assert found.source.isfinite().all()
    assert found.source.abs().max() < 10


def half_csls(x: np.ndarray, y: np.ndarray, full: bool) -> np.ndarray:
    cosines = x @ y.T
    scores = 2 * cosines - np.sort(cosines, 0)[-10:].mean(0)
    return scores - np.sort(cosines, 1)[:, -10:].mean(1)[:, None] if full else scores


@pytest.mark.parametrize("full", [False, True], ids=["half CSLS", "full CSLS"])
def test_induced_pairs_follow_the_definition(full: bool) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 10)).astype(np.float32)
    y = np.concatenate([x[:150], rng.normal(size=(150, 10))]) + 0.5 * rng.normal(size=(300, 10))
    x, y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, y.astype(np.float32)))
    found = induce_pairs(x, y, frequent=120, keep=50, full_csls=full, device="cpu")
    for pairs, query_side, scores in (
        (found.forward, 0, half_csls(x, y, full)),
        (found.backward, 1, half_csls(y, x, full)),
    ):
        best = scores[:120].argmax(1)
        order = np.argsort(-scores[:120].max(1), kind="stable")[:50]
        np.testing.assert_array_equal(pairs[:, query_side], order)
        np.testing.assert_array_equal(pairs[:, 1 - query_side], best[order])


def test_more_frequent_words_asked_for_than_there_are() -> None:
    x = np.eye(5, dtype=np.float32)
    found = induce_pairs(x, x, frequent=100, keep=100, k=2, device="cpu")
    assert sorted(map(tuple, found.forward.tolist())) == [(i, i) for i in range(5)]


def test_augmentation_is_a_union_without_seed_words() -> None:
    forward, backward = np.array([[1, 10], [2, 20], [3, 30]]), np.array([[4, 40], [2, 20], [5, 30]])
    none = np.zeros((0, 2), np.int64)
    everything = augmentation(Induced(forward, backward), none)
    assert everything.tolist() == [[1, 10], [2, 20], [3, 30], [4, 40], [5, 30]]
    seeds = np.array([[1, 99], [77, 30]])
    assert augmentation(Induced(forward, backward), seeds).tolist() == [[2, 20], [4, 40]]
    assert without_words_of(everything, none).tolist() == everything.tolist()
