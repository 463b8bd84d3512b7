"""Stage C1 where the data or the numbers go wrong."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from c1_worlds import World, quick, same_maps

from bilex import BilexError
from bilex.aligners.contrast import Contrast, Step
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from recorder import Recorder


def finite(aligner: object) -> bool:
    return all(
        np.isfinite(side.matrix).all()
        for side in (aligner.source_map_, aligner.target_map_)  # type: ignore[attr-defined]
    )


def break_at(monkeypatch: pytest.MonkeyPatch, number: int, part: str) -> None:
    """Let the loss or a gradient be NaN at the given update, counted over the whole fit."""
    real, calls = Contrast.step, 0

    def step(self: Contrast, *maps: torch.Tensor) -> Step:
        nonlocal calls
        calls += 1
        found = real(self, *maps)
        if calls < number:
            return found
        return found._replace(**{part: torch.full_like(getattr(found, part), math.nan)})

    monkeypatch.setattr(Contrast, "step", step)


@pytest.mark.parametrize("part", ["loss", "source", "target"])
def test_nan_stops_the_fit_and_keeps_the_last_good_maps(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    world, recorder = World(), Recorder()
    last_good = world.fit(quick(iterations=1, updates=4))
    break_at(monkeypatch, 5, part)
    broken = world.fit(quick(), progress=recorder)
    assert "broke at update 5 of round 1" in broken.report_.stopped
    assert any("broke at update 5 of round 1" in s and "learning_rate" in s for s in recorder.messages)
    assert same_maps(broken, last_good)
    assert len(broken.report_.history) == 1


def test_nan_in_a_later_round_is_not_saved_as_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world, folder = World(), tmp_path / "state"
    with monkeypatch.context() as patch:
        break_at(patch, 8 + 3, "loss")
        broken = world.fit(quick(), checkpoint=folder)
    assert "update 3 of round 2" in broken.report_.stopped
    assert finite(broken)
    recorder = Recorder()
    mended = world.fit(quick(), checkpoint=folder, progress=recorder)
    assert recorder.messages == [f"{folder}: going on after round 1."]
    assert mended.report_.stopped is None
    assert same_maps(mended, world.fit(quick()))


@pytest.mark.parametrize("learning_rate", [1e39, 1e30, 1e18, 1e4])
def test_a_huge_learning_rate_never_gives_maps_that_are_not_finite(learning_rate: float) -> None:
    world, recorder = World(), Recorder()
    fitted = world.fit(quick(learning_rate=learning_rate, iterations=1), progress=recorder)
    assert finite(fitted)
    mapped = fitted.source_map_(world.source.vectors)
    assert np.isfinite(mapped).all()
    if learning_rate >= 1e30:
        assert "broke at update 1 of round 1" in fitted.report_.stopped


def test_fewer_pairs_than_dimensions_are_damped_and_said() -> None:
    world, recorder = World(noise=0.2), Recorder()
    fitted = world.fit(quick(), 12, progress=recorder)
    assert finite(fitted)
    assert recorder.messages[0].startswith(
        "12 word pairs are few for these dimensions: 2.33 times the mean eigenvalue"
    )
    assert world.precision(fitted, 12) > 0.5
    recorder = Recorder()
    world.fit(quick(), 50, progress=recorder)
    assert not recorder.messages


def test_two_seed_pairs_stay_finite() -> None:
    assert finite(World().fit(quick(), 2))


def subspace(rank: int) -> World:
    """Languages all of whose vectors lie in few dimensions."""
    world = World(noise=0.0)
    rng = np.random.default_rng(1)
    flat = rng.normal(size=(600, rank)) @ rng.normal(size=(rank, 20))
    turned = flat @ np.linalg.qr(rng.normal(size=(20, 20)))[0]
    world.source = WordVectors(world.source.index_to_key, flat.astype(np.float32))
    world.target = WordVectors(world.target.index_to_key, turned.astype(np.float32))
    return world


@pytest.mark.parametrize("rank", [5, 1])
def test_singular_data_stay_finite(rank: int) -> None:
    world = subspace(rank)
    fitted = world.fit(quick())
    assert finite(fitted)
    if rank == 5:
        assert world.precision(fitted, 100) > 0.95


@pytest.mark.parametrize("side", ["source", "target"])
def test_all_vectors_of_a_language_identical(side: str) -> None:
    world = World(words=300)
    vectors = getattr(world, side)
    same = np.repeat(vectors.vectors[:1], len(vectors), axis=0)
    setattr(world, side, WordVectors(vectors.index_to_key, same))
    fitted = world.fit(quick(iterations=2))
    assert finite(fitted)
    assert np.isfinite(fitted.report_.history[-1].loss).all()


def test_a_zero_vector_does_no_harm() -> None:
    world = World()
    world.source.vectors[3] = 0
    world.target.vectors[500] = 0
    fitted = world.fit(quick(iterations=2))
    assert finite(fitted)
    assert world.precision(fitted, 100) > 0.9


def test_vectors_that_are_not_finite_are_refused() -> None:
    world = World()
    world.target.vectors[7, 2] = np.nan
    with pytest.raises(BilexError, match="the vector of 't7' holds NaN or infinity"):
        world.fit(quick())


@pytest.mark.parametrize("pairs", [[("cat", "kissa"), ("dog", "koira")], [("s1", "t1"), ("dog", "t2")]])
def test_seeds_that_cover_nothing_are_refused(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(BilexError, match=r"^animals\.txt: .* needs at least 2 pairs") as caught:
        World().fit(quick(), Lexicon(pairs, "animals.txt"))
    assert "\n" not in str(caught.value)


def test_seeds_the_wrong_way_round_are_advised_upon() -> None:
    world = World()
    with pytest.raises(BilexError, match=r"(?i)swap"):
        world.fit(quick(), world.seeds(50).swapped())


def test_a_tiny_vocabulary() -> None:
    world = World(words=6, dim=3)
    fitted = world.fit(quick(iterations=2), 4)
    assert finite(fitted)
