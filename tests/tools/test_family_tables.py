"""The tables that set two families of vectors side by side, from rows that were made up."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bilex.errors import BilexError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("timings.family_tables")


def _row(method: str, setting: str, p_at_1: float) -> dict[str, Any]:
    return {"method": method, "setting": setting, "p@1": [p_at_1, p_at_1 + 1, p_at_1 + 2, p_at_1 + 3]}


def _whole(made: ModuleType, method: str, first: float, second: float) -> list[dict[str, Any]]:
    values = zip(made.FAMILIES.values(), (first, second), strict=True)
    return [_row(method, f"{pair}:1k", value) for pairs, value in values for pair in pairs]


def test_each_family_has_its_own_averages_and_the_better_method_comes_first(made: ModuleType) -> None:
    rows = [*_whole(made, "bad", 10, 12), *_whole(made, "good", 40, 50)]
    lines = made.families(rows).splitlines()
    assert "### 1,000 seeds, both families" in lines
    good, bad = "| good | 41.0 | 42.0 | 51.0 | 52.0 |", "| bad | 11.0 | 12.0 | 13.0 | 14.0 |"
    assert lines.index(good) < lines.index(bad)
    web, parliament = " | ".join(["41.5"] * 6), " | ".join(["51.5"] * 3)
    assert f"| good | {web} | **41.5** | {parliament} | **51.5** |" in lines


def test_a_family_with_a_missing_pair_has_no_average(made: ModuleType) -> None:
    rows = [row for row in _whole(made, "m", 40, 50) if row["setting"] != "europarl/de-it:1k"]
    lines = made.families(rows).splitlines()
    assert "| m | 41.0 | 42.0 | – | – |" in lines
    assert any(line.endswith("| 51.5 | – | 51.5 | – |") for line in lines)


def test_a_page_keeps_what_is_around_the_tables(made: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{made.BEGIN}\nold\n{made.END}\nafter\n", encoding="utf-8")
    made.write_families(page, _whole(made, "m", 40, 50))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{made.BEGIN}\n\n### 1,000") and text.endswith(f"{made.END}\nafter\n")
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(BilexError, match="are missing"):
        made.write_families(page, [])
