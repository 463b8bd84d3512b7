"""The tables of docs/methods.md, from rows that were made up."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bilex.errors import BilexError

MODULE = Path(__file__).parents[2] / "timings" / "method_tables.py"


@pytest.fixture(scope="module")
def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("method_tables", MODULE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _row(method: str, pair: str, p_at_1: float, device: str = "cpu", **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"method": method, "pair": pair, "seeds": "5k", "device": device, "warnings": []}
    for place, name in enumerate(("forward_nn", "forward_csls", "backward_nn", "backward_csls")):
        row[name] = [p_at_1 + place, p_at_1 + place - 2, p_at_1 + place + 2]
    return row | changes


def _cost(method: str, seconds: float, **changes: Any) -> dict[str, Any]:
    row = {"method": method, "pair": "a-b", "seeds": "5k", "threads": 2, "limit": None, "gigabytes": 1.25}
    return row | {"seconds": seconds} | changes


def test_averages_are_over_both_directions_and_all_pairs(made: ModuleType) -> None:
    rows = [_row("good", "a-b", 40), _row("good", "a-c", 50), _row("bad", "a-b", 10), _row("bad", "a-c", 20)]
    text = made.tables([*rows, _row("half", "a-b", 90)], [])
    lines = text.split("### a-b")[0].splitlines()
    assert lines.index("| 5,000 seeds | good | 46.0 | 47.0 |") < lines.index(
        "| 5,000 seeds | bad | 16.0 | 17.0 |"
    )
    assert "Left out, since some pairs have no result: half with 5,000 seeds." in lines
    assert "| good | 40.0 (38.0–42.0) | 41.0 (39.0–43.0) | 42.0 (40.0–44.0) | 43.0 (41.0–45.0) |" in text


def test_costs_are_those_of_two_threads_and_whole_vocabularies(made: ModuleType) -> None:
    costs = [
        _cost("m", 600.0),
        _cost("m", 6.0, seeds="1k", gigabytes=5.0),
        _cost("n", 1.0, threads=16),
        _cost("n", 1.0, limit=1000),
        _cost("o", 30.0, seeds="0"),
    ]
    lines = made.tables([_row("m", "a-b", 40), _row("n", "a-b", 20, "cuda")], costs).splitlines()
    assert "| method | a-b, 5,000 seeds | a-b, 1,000 seeds | a-b, no seeds |" in lines
    assert "| m | 10.0 min, 1.2 GB | 6.0 s, 5.0 GB |  |" in lines and "| o |  |  | 30 s, 1.2 GB |" in lines
    assert not any(line.startswith("| n |") and "GB" in line for line in lines)
    assert any("1 of the fits were made on a CPU, 1 on a GPU" in line for line in lines)


def test_a_page_keeps_what_is_around_the_tables(made: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{made.BEGIN}\nold\n{made.END}\nafter\n", encoding="utf-8")
    for _ in range(2):
        made.write_tables(page, [_row("m", "a-b", 40, warnings=["it failed."])], [])
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{made.BEGIN}\n\n### Averages") and text.endswith(f"{made.END}\nafter\n")
    assert "old" not in text and text.count("`m` said: it failed.") == 1
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(BilexError, match="are missing"):
        made.write_tables(page, [], [])
