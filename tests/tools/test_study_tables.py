"""The tables of the studies of many languages and of judging without gold: made from the stored results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "timings" / "results"


@pytest.fixture(autouse=True)
def timings_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def printed(module: str, results: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What `table` prints of a folder of results."""
    main = __import__(f"timings.{module}", fromlist=["main"]).main
    main(["data", "--work", str(results), "table"])
    return [line for line in capsys.readouterr().out.splitlines() if line]


def _row(way: str, pair: str, seeds: str, *figures: float) -> str:
    mean = sum(figures) / len(figures)
    row = {"way": way, "family": "europarl", "seeds": seeds, "pair": pair, "p@1": figures, "mean": mean}
    return json.dumps(row) + "\n"


def test_a_mean_is_given_only_where_every_pair_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [_row("joint", pair, "5k", 40, 42, 50, 52) for pair in ("de-fr", "de-it", "fr-it")]
    rows += [_row("joint", "de-fr", "5k", 50, 52, 60, 62), _row("direct", "de-it", "1k", 30, 30, 30, 30)]
    (tmp_path / "results.jsonl").write_text("".join(rows), encoding="utf-8")
    lines = printed("many_languages", tmp_path, capsys)
    assert "| `align --languages` | 56.0 | 46.0 | 46.0 | 49.3 |" in lines, "the last measurement counts"
    assert "| 1,000 seeds, direct |  | 30.0 |  |  |" in lines
    assert "| de |  | 52.0 | 42.0 |" in lines and "| fr | 62.0 |  | 42.0 |" in lines


def test_errors_are_those_of_the_share_and_of_its_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = []
    for number, (true, share) in enumerate([(40.0, 44.0), (50.0, 52.0), (60.0, 60.0)]):
        measures = ("on_dictionary", "expected", "expected_test", "held_out", "predicted", "mutual")
        known = {name: [share, share - 3, share + 3] for name in measures}
        where = {"family": "europarl", "method": "c1", "seeds": "5k", "pair": str(number)}
        rows.append(json.dumps({**where, "direction": "forward", "true": true, **known, "mutual": None}))
    (tmp_path / "without_gold.jsonl").write_text("\n".join(rows), encoding="utf-8")
    lines = printed("without_gold", tmp_path, capsys)
    assert "| europarl | expected on a test dictionary | 3 | 1.00 | +2.0 | 2.0 | 2 |" in lines
    assert not any("answer back" in line for line in lines)


@pytest.mark.parametrize(
    ("module", "stored", "page"),
    [
        ("many_languages", "results.jsonl", "many-languages.md"),
        ("without_gold", "without_gold.jsonl", "evaluation.md"),
    ],
)
def test_the_page_shows_the_tables_of_the_stored_results(
    module: str, stored: str, page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(RESULTS / f"{module}.jsonl", tmp_path / stored)
    shown = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    missing = [line for line in printed(module, tmp_path, capsys) if line not in shown]
    assert not missing, "\n".join(missing)
