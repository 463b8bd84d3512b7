"""`bilex benchmark grids` and `bilex benchmark merge` as a user meets them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from bilex.cli import run
from bilex_bench.grid import Grid
from bilex_bench.store import ResultsStore
from fabricated import fabricated_results


def test_grids_are_listed_shown_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["benchmark", "grids"]) == 0
    listed = capsys.readouterr().out
    assert run(["benchmark", "grids", "--json"]) == 0
    for name, about in json.loads(capsys.readouterr().out).items():
        assert name in listed and about in listed
    assert run(["benchmark", "grids", "quick"]) == 0
    text = capsys.readouterr().out
    file = tmp_path / "mine.toml"
    assert run(["benchmark", "grids", "quick", "-o", str(file)]) == 0
    assert file.read_text(encoding="utf-8") == text
    written, ready = Grid.read(file), Grid.read("quick")
    assert written.name == "mine"
    assert [s.key for s in written.setups(written.open_data())] == [
        s.key for s in ready.setups(ready.open_data())
    ]
    capsys.readouterr()
    assert run(["benchmark", "grids", "quick", "-o", str(file)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert run(["benchmark", "grids", "quikc"]) == 2
    assert "Did you mean 'quick'?" in capsys.readouterr().err
    assert run(["benchmark", "grids", "-o", "x.toml"]) == 2
    assert "name the grid to write" in capsys.readouterr().err


def test_merge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = fabricated_results(("en-fi", "en-fr"), ("5k",), words=5)
    out, *parts = (tmp_path / name for name in ("out.sqlite", "a.sqlite", "b.sqlite"))
    for part, chosen in zip(parts, (results[:9], results[6:]), strict=True):
        with ResultsStore.open(part) as store:
            for result in chosen:
                store.add(result)
    names = [str(path) for path in (out, *parts)]
    assert run(["benchmark", "merge", *names]) == 0
    caught = capsys.readouterr().out
    assert "a.sqlite: 9 setups added, 0 replaced failed ones, 0 were there already." in caught
    assert f"b.sqlite: {len(results) - 9} setups added, 0 replaced failed ones, 3 were" in caught
    assert run(["benchmark", "merge", *names, "--json"]) == 0
    caught = json.loads(capsys.readouterr().out)
    assert caught["setups"] == len(results)
    assert caught["files"][names[1]] == {"added": 0, "already": 9, "replaced": 0, "differing": 0}
    with ResultsStore.open(out, create=False) as store:
        predictions = {r.setup.key: r.predictions for r in store.results(predictions=True)}
    assert predictions == {result.setup.key: result.predictions for result in results}


def test_merge_makes_nothing_out_of_wrong_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, good, bad = (str(tmp_path / name) for name in ("out.sqlite", "good.sqlite", "bad.sqlite"))
    ResultsStore.open(good).close()
    Path(bad).write_text("no results\n" * 100, encoding="utf-8")
    for wrong, sentence in (
        (bad, "is not a results file"),
        (str(tmp_path / "missing"), "there is no such file"),
    ):
        assert run(["benchmark", "merge", out, good, wrong]) == 2
        assert sentence in capsys.readouterr().err
        assert not Path(out).exists()
    assert run(["benchmark", "merge", good, good]) == 2
    assert "is an input of this command" in capsys.readouterr().err
    with ResultsStore.open(good) as store, store.claim():
        ResultsStore.open(out).close()
        assert run(["benchmark", "merge", good, out]) == 2
    assert "is in use by" in capsys.readouterr().err


def test_the_quick_grid_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "quick.sqlite"
    command = ["benchmark", "run", "quick", "--lm", "none", "--device", "cpu", "-o", str(out)]
    assert run(command) == 0
    with ResultsStore.open(out, create=False) as store:
        procrustes, c1 = store.results(predictions=True, samples=True)
    assert (procrustes.setup.label, c1.setup.label) == ("Procrustes", "C1")
    assert c1.environment["command"] == shlex.join(["bilex", *command]), "the report shows it"
    assert set(c1.samples) >= {"static", "aligned"} and not procrustes.samples
    for result in (procrustes, c1):
        for direction, predictions in result.predictions.items():
            for retrieval in ("nn", "csls"):
                first = [prediction.ranks[retrieval] == 1 for prediction in predictions]
                right = [p.answers[retrieval][0] in p.translations for p in predictions]
                assert first == right
                assert result.metric(direction, retrieval) == pytest.approx(sum(right) / len(right))
    better = [c1.metric(d, "csls") - procrustes.metric(d, "csls") for d in ("forward", "backward")]
    assert min(better) > 0 and max(better) > 0.02
    before = out.read_bytes()
    capsys.readouterr()
    assert run(command) == 0
    assert "2 of 2 are done" in capsys.readouterr().out
    with ResultsStore.open(out, create=False) as store:
        assert [r.started for r in store.results()] == [procrustes.started, c1.started]
    assert len(out.read_bytes()) == len(before)


def test_a_report_is_not_written_over_its_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.sqlite"
    ResultsStore.open(path).close()
    before = path.read_bytes()
    assert run(["benchmark", "report", str(path), "-o", str(path)]) == 2
    assert "is an input" in capsys.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["benchmark", "data"])
def test_every_help_teaches_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown and f"  bilex {name}" in shown
    assert run(["--help"]) == 0
    assert f"\n  {name} " in capsys.readouterr().out
