"""Cutting text into words, and saying when that cannot be done."""

from __future__ import annotations

import pytest

from bilex.corpus.tokens import ScriptCount, Tokeniser


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("en", "The dog's mother-in-law DIDN'T; 'quoted' 3rd.", "the dog 's mother-in-law didn't quoted 3rd"),
        ("fr", "L’eau d'aujourd'hui, qu'elle n'est", "l' eau d' aujourd'hui qu' elle n' est"),
        ("it", "dell'acqua un'altra", "dell' acqua un' altra"),
        (None, "l'eau snake_case Ωmega", "l'eau snake case ωmega"),
        ("hi", "हिन्दी में लिखना।", "हिन्दी में लिखना"),
        ("fi", "äiti", "äiti"),
        ("ru", "Нью-Йорк — город", "нью-йорк город"),
    ],
)
def test_words_by_language(language: str | None, text: str, words: str) -> None:
    assert Tokeniser(language).tokens(text) == words.split(" ")


def test_case_is_kept_and_divided_text_is_only_split_at_spaces_on_demand() -> None:
    assert Tokeniser(lowercase=False).tokens("New York") == ["New", "York"]
    assert Tokeniser(tokenised=True).tokens("don't , x_y 東京都") == ["don't", ",", "x_y", "東京都"]


@pytest.mark.parametrize(
    ("language", "text", "some"),
    [
        ("zh", "我在北京大学学习中文", ["北京", "大学", "学习", "中文"]),
        ("ja", "東京都に住んでいます。Pythonで", ["東京", "に", "python"]),
        ("th", "ฉันชอบกินข้าวผัด hello", ["ชอบ", "กิน", "hello"]),
        (None, "ខ្ញុំស្រលាញ់ប្រទេស", ["ស្រលាញ់", "ប្រទេស"]),
    ],
)
def test_scripts_without_spaces_are_cut_by_icu(language: str | None, text: str, some: list[str]) -> None:
    pytest.importorskip("icu4py")
    found = Tokeniser(language).tokens(text)
    assert set(some) <= set(found)
    assert "".join(found) == "".join(char for char in text.lower() if char not in " 。")


def test_without_icu_such_runs_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bilex.corpus.tokens.can_segment", lambda: False)
    assert Tokeniser("zh").tokens("我在北京, ok") == ["我在北京", "ok"]


def test_share_of_unspaced_script() -> None:
    count = ScriptCount()
    count.add("abcd ไทยไทย")
    assert count.share == pytest.approx(0.6)
    assert count.script == "Thai"
