"""The plain programs of timings/: each against something plainer still, and all beside ours."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from c1_worlds import World

from bilex.lexicon import Lexicon

ROOT = Path(__file__).parents[2]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT))
    names = ("vecmap", "rcsls", "fipp", "rivals")
    return {name: importlib.import_module(f"research.plain_{name}") for name in names}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder of two planted languages, of which the last 150 words are for testing."""
    world = World(words=300, dim=16, noise=0.5)
    vectors, pairs = tmp_path / "vectors", tmp_path / "dictionaries" / "xling" / "en-fr"
    vectors.mkdir()
    pairs.mkdir(parents=True)
    for name, side in (("en", world.source), ("fr", world.target)):
        scale = np.abs(side.vectors).max(axis=1, keepdims=True) / 127
        np.savez(vectors / f"{name}.npz", q=np.round(side.vectors / scale).astype(np.int8), scale=scale)
        (vectors / f"{name}.txt").write_text("".join(f"{word}\n" for word in side.index_to_key))
    everything = world.seeds(300)
    everything.head(150).save(pairs / "yacle.train.freq.5k.en-fr.tsv")
    everything.head(60).save(pairs / "yacle.train.freq.1k.en-fr.tsv")
    Lexicon(everything.pairs[150:]).save(pairs / "yacle.test.freq.2k.en-fr.tsv")
    return tmp_path


def test_matching_in_rounds_is_the_greedy_one(plain: dict[str, ModuleType]) -> None:
    scores = torch.rand(30, 41, generator=torch.Generator().manual_seed(1))
    expected, left = [], scores.clone()
    for _ in range(17):
        row, column = divmod(int(left.argmax()), left.shape[1])
        expected.append([row, column])
        left[row] = left[:, column] = -1
    assert plain["fipp"].one_to_one(scores, 17).tolist() == expected


def test_advanced_maps_send_whitened_pairs_to_their_correlations(plain: dict[str, ModuleType]) -> None:
    world = World(words=300, dim=8)
    x, y = (torch.from_numpy(side.vectors).double() for side in (world.source, world.target))
    source, target = plain["vecmap"].advanced_maps(x, y)
    (white_x, white_y) = (plain["vecmap"].whitening(rows) for rows in (x, y))
    p, s, qt = torch.linalg.svd(white_x @ x.T @ y @ white_y)
    # In the basis P the map is: whiten, weight by S^½, undo the whitening.
    basis_x, basis_y = white_x @ p, white_y @ qt.T
    assert torch.allclose(basis_x.T @ x.T @ y @ basis_y, torch.diag(s), atol=1e-9)
    for map_, basis in ((source, basis_x), (target, basis_y)):
        undone = torch.linalg.solve(basis * s.sqrt(), map_)
        assert torch.allclose(undone, undone.T, atol=1e-8)
        assert float(torch.linalg.eigvalsh(undone).min()) > 0


def test_rcsls_gradient_is_that_of_the_written_out_sum(plain: dict[str, ModuleType]) -> None:
    world = World(words=60, dim=5)
    x, y = (plain["vecmap"].unit(torch.from_numpy(s.vectors).double()) for s in (world.source, world.target))
    pairs = torch.arange(40)[:, None].expand(-1, 2)
    map_ = torch.eye(5, dtype=torch.float64) + 0.1
    total = 0.0
    for i in range(40):
        mine = x[i] @ map_
        near_y = torch.stack([mine @ other for other in y]).sort(descending=True).values[:10].mean()
        near_x = torch.stack([(other @ map_) @ y[i] for other in x]).sort(descending=True).values[:10].mean()
        total -= float(2 * mine @ y[i] - near_y - near_x) / 40
    value, gradient = plain["rcsls"].loss_and_gradient(map_, x, y, pairs)
    assert value == pytest.approx(total, abs=1e-12)
    towards = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ahead, behind = (float(plain["rcsls"].loss(map_ + step * towards, x, y, pairs)) for step in (1e-6, -1e-6))
    assert float((gradient * towards).sum()) == pytest.approx((ahead - behind) / 2e-6, rel=1e-6)


def test_zeroed_scores_keep_the_wanted_share(plain: dict[str, ModuleType]) -> None:
    similarity = torch.rand(400, 400, generator=torch.Generator().manual_seed(3)) + torch.eye(400)
    partners = plain["vecmap"].best_partners(similarity, 0.3, torch.Generator().manual_seed(0), False)
    kept = float((partners == torch.arange(400)).double().mean())
    assert kept == pytest.approx(0.3, abs=0.07)


def test_every_plain_program_is_near_ours_on_a_planted_problem(
    plain: dict[str, ModuleType], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rivals = plain["rivals"]
    one_loop = [name for name in rivals.RIVALS if not name.startswith("vecmap-semi:")]
    rivals.main([str(data), "--pairs", "en-fr", "--seeds", "1k", "--methods", *one_loop, "--device", "cpu"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["method"] for row in rows] == one_loop
    for row in rows:
        assert min(row["plain"]["p@1"]) > 50, row
        allowed = 5.0 if ":" in row["method"] else 1.0
        assert max(map(abs, row["ours - plain"])) <= allowed, row
