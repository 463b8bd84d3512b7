"""The worked example of a paper's table, on planted languages under the paper's grid."""

from __future__ import annotations

from pathlib import Path

import pytest

import paper_table
from bilex_bench.grid import Grid
from bilex_bench.store import ResultsStore
from planted import planted

PAIR, SEEDS, WORDS = "aa-bb", 120, 300


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    world = planted(WORDS, 16, 0.6)
    for language, words in zip(PAIR.split("-"), (world.source, world.target), strict=True):
        words.save(folder / "vectors" / f"{language}.vec")
    world.pairs(0, SEEDS).save(folder / f"{PAIR}.train.1k.tsv")
    world.pairs(SEEDS, WORDS).save(folder / f"{PAIR}.test.tsv")
    return folder


def test_the_grid_becomes_a_table_and_is_run_once(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "main.sqlite"
    grid = Grid.read(paper_table.GRID).choosing(
        data=[str(data)], pairs=[PAIR], seeds=["1k"], lm="none", device="cpu"
    )
    assert paper_table.run(grid, results, ["FIPP"], threads=1) == 0
    with ResultsStore.open(results, create=False) as store:
        (result,) = store.results()
    shown = 100 * (result.metric("forward", "csls") or 0.0)
    table = paper_table.tables(results)
    assert "FIPP" in table and f"{shown:.2f}" in table
    assert "FIPP, aa-bb" in capsys.readouterr().err
    assert paper_table.run(grid, results, ["FIPP"], threads=1) == 0
    assert "FIPP, aa-bb" not in capsys.readouterr().err
