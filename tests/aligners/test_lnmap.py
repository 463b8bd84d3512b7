"""LNMap: its loss, its pairs, its maps, and fits that are cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bilex import BilexError
from bilex.aligners import Map
from bilex.aligners.lnmap import LNMap
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from planted import planted
from recorder import Recorder

SMALL: dict[str, Any] = {
    "hidden": 16,
    "latent": 12,
    "autoencoder_epochs": 1,
    "autoencoder_samples": 300,
    "mapper_epochs": 2,
    "rounds": 1,
    "device": "cpu",
}


def _problem(words: int = 200) -> tuple[WordVectors, WordVectors, Lexicon]:
    random = np.random.default_rng(8)
    source, target = (
        WordVectors([f"{side}{i}" for i in range(words)], random.normal(size=(words, 8)).astype(np.float32))
        for side in "st"
    )
    return source, target, Lexicon([(f"s{i}", f"t{i}") for i in range(60)], "planted")


@pytest.mark.parametrize("dropout", [False, True])
def test_it_is_the_plain_transcription(dropout: bool) -> None:
    """Ours in float32, the formulas in float64 (`research.lnmap_reference`), the same random draws."""
    from research.lnmap_reference import Sizes, Way, plain

    world = planted(300, 12, 0.1)
    sizes = Sizes(hidden=20, latent=16, autoencoder_epochs=3, samples=1500, epochs=20, rounds=3)
    names = ("hidden", "latent", "autoencoder_epochs", "autoencoder_samples", "mapper_epochs", "rounds")
    seeds = world.pairs(0, 150)
    settings: dict[str, Any] = dict(zip(names, sizes, strict=True))
    ours = LNMap(seed=7, device="cpu", induction_dropout=dropout, **settings).fit(
        world.source, world.target, seeds
    )
    place = seeds.index(world.source.key_to_index, world.target.key_to_index)
    x, y = (torch.from_numpy(np.array(side.vectors)).double() for side in (world.source, world.target))
    way = Way(
        induction_dropout=dropout,
        reseed=lambda *at: torch.manual_seed(int(np.random.SeedSequence([7, *at]).generate_state(1)[0])),
    )
    mapped_x, own_y, own_x, mapped_y = (
        torch.nn.functional.normalize(side).numpy()
        for side in plain(x, y, torch.from_numpy(place), sizes, way)
    )
    assert ours.report_.forward_pairs > 150 < ours.report_.backward_pairs  # self-training found some
    for found, expected in (
        (ours.source_map_(world.source.vectors), [mapped_x, own_x]),
        (ours.target_map_(world.target.vectors), [own_y, mapped_y]),
    ):
        np.testing.assert_allclose(found, np.concatenate(expected, axis=1), atol=2e-4)


def test_maps_of_older_models_can_be_read() -> None:
    """Until version 0.2 the target map was one encoder and a mapper."""
    rng = np.random.default_rng(0)
    shapes = {"matrix_in": (4, 3), "bias_in": (3,), "matrix_out": (3, 4), "bias_out": (4,)}
    tensors = {f"m.0.{name}": rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    mapped = Map.from_state("m", ["own-beside-mapped"], tensors.__getitem__)(rng.normal(size=(5, 4)))
    assert mapped.shape == (5, 8)
    np.testing.assert_allclose(np.linalg.norm(mapped[:, :4], axis=1), 1, rtol=1e-5)


def test_a_mapper_that_diverges_is_reported() -> None:
    source, target, seeds = _problem()
    with pytest.raises(BilexError, match="diverged at mapper_rate 1000000"):
        LNMap(**SMALL | {"mapper_rate": 1e6, "mapper_epochs": 100}).fit(source, target, seeds)


def test_a_fit_leaves_the_random_numbers_of_torch_as_they_were() -> None:
    source, target, seeds = _problem()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    LNMap(**SMALL).fit(source, target, seeds)
    assert torch.equal(torch.rand(3), expected)


CUT_OFF = SMALL | {"autoencoder_epochs": 3, "mapper_epochs": 4, "batch": 20, "rounds": 3}


@pytest.fixture(scope="module")
def whole() -> LNMap:
    return LNMap(**CUT_OFF).fit(*_problem())


@pytest.mark.parametrize(
    "stop", [("source autoencoder", 2), ("forward mapper", 2), ("forward mapper", 9), ("backward mapper", 5)]
)
def test_a_fit_that_was_cut_off_continues_to_the_same_maps(
    stop: tuple[str, int], whole: LNMap, tmp_path: Path
) -> None:
    source, target, seeds = _problem()

    def fit(**more: Any) -> LNMap:
        return LNMap(**CUT_OFF).fit(source, target, seeds, checkpoint=tmp_path / "kept", **more)

    with pytest.raises(KeyboardInterrupt):
        fit(progress=Recorder(*stop))
    for other in (fit(), fit(progress=Recorder("forward mapper", 1))):  # the second only reads
        assert other.report_ == whole.report_
        for side, vectors in (("source_map_", source), ("target_map_", target)):
            mapped = [getattr(fit, side)(vectors.vectors) for fit in (whole, other)]
            np.testing.assert_array_equal(*mapped)
