"""Files and a model for the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from cli_files import Files

from bilex.cli import run
from planted import planted


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("cli")
    world = planted(900, 20, 0.9)
    made = Files(
        folder, *(folder / name for name in ("src.vec", "tgt.vec", "seeds.tsv", "test.tsv", "model"))
    )
    world.source.save(made.source)
    world.target.save(made.target)
    world.pairs(0, 400).write(made.seeds)
    world.pairs(400, 900).write(made.test)
    command = [
        "align",
        made.source,
        made.target,
        "--seeds",
        made.seeds,
        "-o",
        made.model,
        "--method",
        "procrustes",
    ]
    assert run([*map(str, command), "--device", "cpu"]) == 0
    return made
