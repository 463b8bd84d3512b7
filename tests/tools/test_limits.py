"""The program that says whether the limits hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from research.limits import main


def case(**changes: object) -> dict[str, object]:
    row = {
        "setting": "en-fi",
        "preset": "auto",
        "decided": 1000,
        "change": 1.2,
        "interval": 0.5,
        "changed per decision": 1.0,
        "undo exact": True,
    }
    return {**row, **changes}


def verdicts(folder: Path, capsys: pytest.CaptureFixture[str], **files: list[dict[str, object]]) -> dict:
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    status = main([str(folder)])
    lines = [line.split("  ", 1) for line in capsys.readouterr().out.splitlines()]
    found = {rest.strip().rpartition(":")[0]: word.strip() for word, rest in lines}
    assert status == ("FAIL" in found.values())
    return found


def test_what_was_not_measured_neither_passes_nor_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(verdicts(tmp_path, capsys).values()) == {"not measured"}


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({}, None),
        ({"change": -1.0}, "no case below -0.3"),
        ({"change": 0.5}, "at least +1 with 1,000"),
        ({"changed per decision": 6.0}, "at most 5 changed"),
        ({"undo exact": False}, "an undo is exact"),
    ],
)
def test_each_limit_of_decisions_can_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, object], failing: str | None
) -> None:
    found = verdicts(tmp_path, capsys, refine=[case(**changes)])
    failed = " ".join(name for name, word in found.items() if word == "FAIL")
    assert failed == "" if failing is None else failing in failed


def test_auto_below_a_preset_and_a_wrong_mixing_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"setting": "en-fi:1k", "vocabulary": 20_000, "words": [100, 300]}
    check = [
        {**row, "form": form, "mean": mean, "other": other}
        for form, mean, other in (("auto", 40.0, 30.0), ("best", 39.0, 31.0), ("careful", 39.0, 29.0))
    ]
    curve = {f"{0.1 * step:.1f}": [1.0 - 0.1 * step] * 50 for step in range(11)}  # λ = 0 is best held out
    fixed = {"test": {"0.0": 50.0, "0.4": 50.8}, "other": {"0.0": 40.0, "0.4": 41.0}}
    mixing = [
        {
            "setting": "en-fi:1k",
            "tuning": "light",
            "words": {"test": 10, "other": 30},
            "fixed": fixed,
            "curve": curve,
        }
    ]
    found = verdicts(tmp_path, capsys, never_worse_check=check, mixing=mixing)
    failed = [name for name, word in found.items() if word == "FAIL"]
    assert len(failed) == 3 and any("paper, best and careful" in name for name in failed)


@pytest.mark.parametrize(
    ("expected", "ece", "failing"), [((30, 60), 0.03, 0), ((41, 60), 0.03, 1), ((30, 60), 0.06, 2)]
)
def test_promises_that_miss_fail(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    expected: tuple[int, int],
    ece: float,
    failing: int,
) -> None:
    row: dict[str, object] = {"setting": "en-fi:1k", "fitted": 40_000}
    for direction in ("forward", "backward"):
        row[f"p@1 {direction}"], row[f"expected {direction}"] = 40.0, [45.0, *expected]
        row[f"ece {direction}"], row[f"ece by chance {direction}"] = ece, 0.02
    rows = [{**row, "vocabulary": words} for words in (10_000, 20_000) for _ in range(6)]
    found = verdicts(tmp_path, capsys, vocabularies=rows)
    promises = [word for name, word in found.items() if name.startswith("promises")]
    assert len(promises) == 3 and promises.count("FAIL") == failing


def test_larger_vocabularies_are_also_judged_by_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, object]] = []
    for words, ece, found in ((20_000, 0.03, 45.0), (40_000, 0.06, 20.0)):
        row: dict[str, object] = {"setting": "en-fi:1k", "fitted": 40_000, "vocabulary": words}
        for direction in ("forward", "backward"):
            row[f"p@1 {direction}"], row[f"expected {direction}"] = found, [45.0, 30.0, 60.0]
            row[f"ece {direction}"], row[f"ece by chance {direction}"] = ece, 0.02
        rows += [row] * 10
    found_all = verdicts(tmp_path, capsys, vocabularies=rows)
    failed = [name for name, word in found_all.items() if word == "FAIL"]
    assert sum("40,000 to 200,000" in name for name in failed) == 3
    assert len(failed) == 4  # all together, only the interval misses
