"""The plain C1 is the oracle of the fast one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import plain_c1
from bilex.aligners.c1 import C1
from planted import Planted, planted


@pytest.fixture(scope="module")
def world() -> Planted:
    return planted(700, 20, 0.8, 0)


@pytest.mark.parametrize("on_augmented", [False, True])
def test_the_fast_c1_learns_the_maps_of_the_plain_one(world: Planted, on_augmented: bool) -> None:
    seeds = world.pairs(0, 150)
    constants = replace(
        plain_c1.Constants(),
        n_iter=2, n_cl=12, n_neg=20, n_freq=400, n_aug=200, contrast_on_augmented=on_augmented,
        negative_words=500,
    )  # fmt: skip
    fast = C1(
        preset="paper", device="cpu", iterations=2, updates=12, negatives=20, frequent=400, augment=200,
        learning_rate=1.5, decay=0.99, contrast_on_augmented=on_augmented, warm_up=0,
        negative_vocabulary=500, start="seeds",
    ).fit(world.source, world.target, seeds)  # fmt: skip
    x, y = (torch.tensor(side.vectors[:], dtype=torch.float32) for side in (world.source, world.target))
    rows = seeds.index(world.source.key_to_index, world.target.key_to_index)
    plain = plain_c1.plain_c1(x, y, torch.from_numpy(rows), constants)
    for slow, found in zip(plain, (fast.source_map_, fast.target_map_), strict=True):
        np.testing.assert_allclose(slow.numpy(), found.matrix, atol=2e-4 * float(slow.abs().max()))


def test_the_example_runs_from_files(
    world: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plain_c1, "FEW_SEEDS", plain_c1.Constants(1, 3, 10, 200, 50, 2.0, 1.0, True))
    world.source.save(tmp_path / "en.vec")
    world.target.save(tmp_path / "fi.vec")
    world.pairs(0, 150).save(tmp_path / "seeds.tsv")
    world.pairs(150, 300).save(tmp_path / "test.tsv")
    files = [str(tmp_path / name) for name in ("en.vec", "fi.vec", "seeds.tsv")]
    plain_c1.main([*files, "--test", str(tmp_path / "test.tsv")])
    assert float(capsys.readouterr().out.split()[1]) > 50
