"""An aligner that somebody publishes as a package of their own is everywhere where ours are."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from bilex.aligners import get_method, methods
from bilex.cli import run
from bilex.model import Translator
from bilex_bench.figures import draw_figures
from bilex_bench.figures.drawing import colour_of
from bilex_bench.store import ResultsStore
from bilex_bench.tables import build_tables
from planted import planted
from runner_world import make_encoder

Captured = pytest.CaptureFixture[str]
TOY = '''
from dataclasses import dataclass, field, replace

from bilex.aligners.procrustes import Procrustes
from bilex.aligners.base import AlignerReport


@dataclass(frozen=True, kw_only=True)
class ToyReport(AlignerReport):
    toys: int = 0


@dataclass(kw_only=True, repr=False)
class Toy(Procrustes):
    """Procrustes under another name.

    Args:
        size: How large the toy is.
    """

    name = "toy"
    summary = "a toy for tests"

    size: int = 3
    report_: ToyReport = field(init=False, compare=False)

    def _fit(self, source, target, pairs, progress, checkpoint):
        super()._fit(source, target, pairs, progress, checkpoint)
        self.report_ = replace(self.report_, toys=self.size)
'''
GRID = """
[data.world]
path = "data"

[grid]
pairs = "all"
seeds = "1k"

[[method]]
name = "procrustes"
label = "Procrustes"

[[method]]
name = "toy"
label = "Toy"
settings = { size = 4 }

[[method.lm]]
name = "tiny"
tune = false
mixing = 0.3

[[method.lm]]
name = "tiny"
tuning = { epochs = 1, negatives = 2, max_pairs = 20 }
mixing = 0.2
"""


def published(folder: Path, entry: str) -> Path:
    """A folder that looks as if pip had installed a distribution in it."""
    described = folder / "toy_aligner-1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-aligner\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[bilex.aligners]\ntoy = {entry}\n")
    (folder / "toy_aligner.py").write_text(TOY)
    return folder


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The toy, installed; a folder with data for it."""
    folder = tmp_path_factory.mktemp("toy")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(published(folder / "site", "toy_aligner:Toy"))
        patch.chdir(folder)
        world = planted(300, 16, 0.5)
        world.source.save(folder / "data" / "vectors" / "aa.vec")
        world.target.save(folder / "data" / "vectors" / "bb.vec")
        world.pairs(0, 120).save(folder / "data" / "aa-bb.train.1k.tsv")
        world.pairs(120, 300).save(folder / "data" / "aa-bb.test.tsv")
        (folder / "grid.toml").write_text(GRID, encoding="utf-8")
        make_encoder(folder / "tiny")
        yield folder


def test_it_is_listed_with_its_settings(toy: Path, capsys: Captured) -> None:
    assert run(["methods", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["toy"]
    assert listed["summary"] == "a toy for tests"
    assert listed["settings"]["size"] == 3 and listed["explanations"]["size"] == "How large the toy is."


def test_it_aligns_and_its_model_translates(toy: Path, capsys: Captured) -> None:
    line = "align data/vectors/aa.vec data/vectors/bb.vec --seeds data/aa-bb.train.1k.tsv -o model"
    assert run([*line.split(), "--method", "toy", "--set", "size=5", "--no-calibrate"]) == 0
    capsys.readouterr()
    assert run(["evaluate", "model", "data/aa-bb.test.tsv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["forward"]["csls"]["p@1"] > 0.9
    assert run(["info", "model", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"]["toys"] == 5


def test_a_language_model_is_added_to_its_space(toy: Path, capsys: Captured) -> None:
    line = "align data/vectors/aa.vec data/vectors/bb.vec --seeds data/aa-bb.train.1k.tsv -o with-lm"
    assert run([*line.split(), "--method", "toy", "--no-calibrate", "--lm", "tiny", "--lambda", "0.3"]) == 0
    used = Translator.load("with-lm").provenance.language_model
    assert used is not None and (used.aligner, used.mixing) == ("toy", 0.3)


@pytest.fixture(scope="module")
def results(toy: Path) -> Path:
    """A grid with it, alone and under a language model, run by a worker process."""
    assert run(["benchmark", "run", "grid.toml", "-o", "results.sqlite", "--workers", "1"]) == 0
    return toy / "results.sqlite"


def test_the_benchmark_runs_it_alone_and_under_a_language_model(results: Path) -> None:
    with ResultsStore.open(results, create=False) as store:
        found = store.results()
    assert [r.error for r in found] == [None] * 4
    scores = {r.setup.label: r.metric("forward", "csls") for r in found}
    assert scores["Toy"] == scores["Procrustes"] > 0.9
    assert {"Toy+tiny", "C2 (Toy)"} <= set(scores)


def test_tables_put_it_after_the_baselines_and_plots_give_it_the_colour_of_others(results: Path) -> None:
    with ResultsStore.open(results, create=False) as store:
        found = store.results()
    for table in build_tables(found, names=["full", "cost"]):
        written = table.csv()
        assert written.index("Procrustes") < written.index("Toy")
    (drawing,) = draw_figures(found, ["time"])
    assert colour_of("toy", with_model=False) in drawing.svg()


def test_one_that_cannot_be_imported_is_left_out_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(published(tmp_path / "site", "toy_that_is_not_there:Toy"))
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        assert "procrustes" in methods()
        assert get_method("c1").name == "c1"
    assert "the method 'toy' of toy-aligner cannot be imported" in str(reported[0].message)
