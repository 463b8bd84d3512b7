"""`bilex align-grid`: a folder of models and a coverage table, here and on a cluster that loses a node."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import runner_world as world
from bilex import BilexError
from bilex.model import Translator
from bilex.vectors import WordVectors
from bilex_bench.align_grid import ModelPlan, PairsFile
from bilex_bench.cli.align_grid import command
from bilex_bench.cluster import RayExecutor
from bilex_bench.engine import run
from bilex_bench.results import families
from planted import planted
from test_cluster import Assassin, Cluster, cluster  # noqa: F401

LANGUAGES = ("aa", "bb", "cc", "dd", "ee")


def make_grid(home: Path, languages: tuple[str, ...], settings: str = 'method = "procrustes"') -> Path:
    """Vectors of some languages and seeds of all their pairs but the last; words are numbered alike."""
    made = planted(300, 16, 0.2)
    for place, code in enumerate(languages):
        side = made.source if place % 2 else made.target
        words = ["</s>", *(f"{code}{number}" for number in range(len(side) - 1))]
        (home / "vectors").mkdir(parents=True, exist_ok=True)
        WordVectors(words, side.vectors).save(home / "vectors" / f"{code}.vec")
    (home / "seeds").mkdir()
    for a, b in combinations(languages, 2):
        lines = [f"{a}{number}\t{b}{number}\n" for number in range(150)]
        (home / "seeds" / f"{a}-{b}.tsv").write_text("".join(lines))
    file = home / "pairs.toml"
    named = ", ".join(f'"{code}"' for code in languages)
    file.write_text(
        f'languages = [{named}]\nvectors = "vectors/{{}}.vec"\nseeds = "seeds/{{}}.tsv"\n'
        f'output = "models"\ndevice = "cpu"\n{settings}\n'
    )
    return file


def align_grid(*arguments: object) -> int:
    return int(command.main([str(part) for part in arguments], standalone_mode=False) or 0)


def coverage(home: Path) -> dict[str, list[str]]:
    lines = (home / "models" / "coverage.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return {cells[0]: cells[1:] for cells in (line.split("\t") for line in lines)}


def test_a_grid_becomes_models_and_a_table_and_goes_on_where_it_was(tmp_path: Path) -> None:
    file = make_grid(tmp_path, LANGUAGES[:3])
    (tmp_path / "seeds" / "bb-cc.tsv").unlink()
    (tmp_path / "seeds" / "aa-cc.tsv").write_text("nothing\tnichts\n")
    assert align_grid(file, "--dry-run") == 0
    assert not (tmp_path / "models" / "coverage.tsv").exists()
    assert align_grid(file, "--workers", 1) == 1, "a pair whose seeds are of no use fails alone"
    rows = coverage(tmp_path)
    assert rows["aa-bb"][:2] == ["150", "150"] and rows["aa-bb"][-1] == "done"
    assert "aa-cc" in rows and rows["aa-cc"][-1] not in ("done", "not made yet")
    assert rows["bb-cc"][-1] == "no seeds"
    translator = Translator.load(tmp_path / "models" / "aa-bb")
    assert translator.languages == ("aa", "bb") and translator.translate("aa7")[0].word == "bb7"
    assert "</s>" not in translator.space.source
    made = (tmp_path / "models" / "aa-bb" / "config.json").stat().st_mtime_ns
    (tmp_path / "seeds" / "aa-cc.tsv").write_text(
        (tmp_path / "seeds" / "aa-bb.tsv").read_text().replace("bb", "cc")
    )
    assert align_grid(file, "--workers", 1) == 0
    assert coverage(tmp_path)["aa-cc"][-1] == "done"
    assert (tmp_path / "models" / "aa-bb" / "config.json").stat().st_mtime_ns == made
    (tmp_path / "seeds" / "aa-bb.tsv").write_text("aa1\tbb1\n")
    with pytest.raises(BilexError, match="aa-bb: is a model that was made with other settings or files"):
        align_grid(file)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("method", "methd"), "Did you mean 'method'"),
        (("vectors/{}.vec", "vectors/en.vec"), "'vectors' is 'vectors/en.vec'; write {} in place of"),
        (("languages = ", 'pairs = ["aa-bb"]\nlanguages = '), "give either pairs"),
        (('"aa"', '"../aa"'), "'languages[0]' is '../aa'; write pairs as en-fi, languages as en"),
        (("vectors/{}.vec", "vectors/{}.bin"), "there are no vectors of 'aa'"),
        (("seeds/{}.tsv", "seeds/{}.txt"), "no pair has a seed dictionary"),
    ],
)
def test_faults_of_a_pairs_file_are_named(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    file = make_grid(tmp_path, LANGUAGES[:2])
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(BilexError, match="pairs") as raised:
        PairsFile.read(file)
    assert sentence in str(raised.value)


@pytest.mark.slow
@pytest.mark.promise
def test_ten_pairs_on_two_nodes_of_which_one_is_lost(cluster: Cluster, tmp_path: Path) -> None:  # noqa: F811
    slow = (
        f'method = "troublesome"\nsettings = {{ trouble = "sleep", seconds = 1.0, log = "{tmp_path}/log" }}'
    )
    asked = PairsFile.read(make_grid(tmp_path, LANGUAGES, slow))
    plan = ModelPlan(
        folders={"grid": world.KnownFolder(**vars(asked.folder))},  # brings the slow method along
        models=asked.output,
        work=str(tmp_path / "work"),
        cache=str(tmp_path / "cache"),
        device="cpu",
        keep_markers=False,
    )
    heard = Assassin(cluster)
    estimated = {setup.family: 0.3 for setup in asked.setups}
    executor = RayExecutor(plan, cluster.address, cpus=1)
    heard.take(run(executor, families(asked.setups), estimated))
    assert len(heard.killed) == 1 and heard.most_at_once == 2
    assert [result.status for result in heard.results] == ["done"] * 10
    assert any("node" in reason for reason in heard.retried), "a pair went down with its node"
    for setup in asked.setups:
        assert plan.finished(setup) is not None
        source, target = setup.languages
        model = Translator.load(Path(asked.output) / setup.pair)
        assert model.translate(f"{source}200")[0].word == f"{target}200"


def test_a_table_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    file = make_grid(tmp_path, LANGUAGES[:2])
    mine = tmp_path / "models" / "coverage.tsv"
    mine.parent.mkdir()
    mine.write_text("mine")
    with pytest.raises(BilexError, match="was not made by this command"):
        align_grid(file)
    assert mine.read_text() == "mine"
