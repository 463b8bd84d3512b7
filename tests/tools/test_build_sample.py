"""The parts of the sample's builder that can be tried without its packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "build_sample.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_sample", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_hash_is_spacys(tool: ModuleType) -> None:
    assert tool.spacy_hash("coffee") == 3197928453018144401  # the example in spaCy's own documentation


def test_dictd_numbers(tool: ModuleType) -> None:
    assert [tool._dictd_number(digits) for digits in ("A", "B", "/", "BA", "edkK")] == [
        0,
        1,
        63,
        64,
        ((30 * 64 + 29) * 64 + 36) * 64 + 10,
    ]


def test_translations_with_and_without_numbers(tool: ModuleType) -> None:
    numbered = [
        "water //ˈwoːtə// <n>",
        "1. vesi 2.",
        "clear liquid",
        " 3.",
        "body of water",
        "2. neste, vesi",
        "medical: fluids",
        "",
    ]
    assert list(tool.translations(numbered)) == [("vesi", 3), ("neste", 1), ("vesi", 1)]
    assert list(tool.translations(["moon /x/ <n>", "kuu, 1. kuukausi", "1. not a translation"])) == [
        ("kuu", 1),
        ("1. kuukausi", 1),
    ]
    assert list(tool.translations(["moon /x/ <n>"])) == []


def test_only_single_common_words(tool: ModuleType) -> None:
    entries = [
        ["Dog /x/ <n>", "koira, ruma ämmä", "animal"],
        ["Rome /x/ <pn>", "Rooma", "city"],
        ["ice cream /x/ <n>", "jäätelö", "food"],
        ["dog /x/ <v>", "Lukita", "to fasten"],
        [],
    ]
    assert tool.supported_pairs(entries) == {"dog": {"koira": 1, "lukita": 1}}


def test_seeds_and_test_words_are_disjoint(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "TEST_SOURCES", 5)
    monkeypatch.setattr(tool, "FIRST_TEST_RANK", 2)
    words = [f"e{i}" for i in range(20)]
    finnish = [f"f{i}" for i in range(20)]
    support = {f"e{i}": tool.Counter({f"f{i}": 4, f"f{(i + 1) % 20}": 1, "unknown": 9}) for i in range(20)}
    seeds, test = tool.divide(words, finnish, support)
    assert test.leaks(seeds).touched == 0 and len(test.translations()) == 5
    assert all(len(golds) == 2 for golds in test.translations().values())
    assert not {"e0", "e1"} & set(test.translations())
    assert len(seeds) > 0 and all(int(b[1:]) == int(a[1:]) for a, b in seeds.pairs)
