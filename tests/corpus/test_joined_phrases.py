"""Phrases: the score, joining, and counts in bounded memory."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bilex.core.errors import BilexError
from bilex.corpus.preparing import (
    BoundedCounts,
    PhraseCounts,
    Preparation,
    find_phrases,
    join_phrases,
    npmi,
    prepare,
)
from bilex.corpus.tokens import Tokeniser


def test_score_by_hand() -> None:
    # 10 of 1,000 tokens are each of the two words, always together
    assert npmi(10, 10, 10, 1000) == pytest.approx(1.0)
    assert npmi(1, 100, 10, 1000) == pytest.approx(0.0)
    assert npmi(5, 10, 20, 1000) == pytest.approx(math.log(25) / math.log(200))


def test_phrases_are_neighbours_that_stand_together_more_often_than_chance() -> None:
    counts = PhraseCounts()
    for number in range(300):
        counts.add(["new", "york", "is", f"w{number % 7}", "the", f"w{number % 5}", "the"], pairs=True)
    found = find_phrases(counts, 0.5, 10)
    assert ("new", "york") in found
    assert not any("the" in pair for pair in found)
    assert not find_phrases(counts, 0.5, 301)


def test_of_overlapping_phrases_the_stronger_is_joined() -> None:
    phrases = {("a", "b"): 0.6, ("b", "c"): 0.9}
    assert join_phrases(["x", "a", "b", "c"], phrases) == ["x", "a", "b_c"]
    assert join_phrases(["a", "b"], phrases) == ["a_b"]
    assert join_phrases([], phrases) == []


def test_counts_forget_the_rarest_when_there_are_too_many() -> None:
    counts = BoundedCounts[str](most=3)
    counts.update(["often"] * 9 + ["some"] * 4)
    counts.update([f"rare{number}" for number in range(50)])
    assert counts.counts["often"] == 9
    assert counts.counts["some"] == 4
    assert len(counts.counts) <= 3


def test_a_second_pass_finds_longer_phrases(tmp_path: Path) -> None:
    lines = [f"w{n % 11} the new york times said w{n % 13} and w{n % 3}" for n in range(200)]
    lines += [f"new york w{n % 5} the times w{n % 7}" for n in range(60)]
    corpus = tmp_path / "c.txt"
    corpus.write_text("\n".join(lines))
    prepared = prepare([corpus], tmp_path, Preparation())
    assert prepared.words["new_york_times"] + prepared.words["new_york_times_said"] > 100
    text = prepared.path.read_text().splitlines()
    assert prepared.tokens == sum(len(line.split()) for line in text)
    assert len(text) == prepared.lines == 260
    none = prepare([corpus], tmp_path, Preparation(phrase_passes=0))
    assert none.phrases == []


def test_text_that_needs_icu_is_refused_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("tokens", "preparing"):
        monkeypatch.setattr(f"bilex.corpus.{module}.can_segment", lambda: False)
    corpus = tmp_path / "zh.txt"
    corpus.write_text("我在北京大学学习中文\n" * 50)
    with pytest.raises(BilexError, match=r"zh\.txt.*Han.*segment.*--tokenised"):
        prepare([corpus], tmp_path, Preparation())
    divided = Preparation(Tokeniser(tokenised=True), phrase_passes=0)
    assert prepare([corpus], tmp_path, divided).tokens == 50
    corpus.write_text("mostly plain english text here, with 北京 in it\n" * 50)
    assert 0 < prepare([corpus], tmp_path, Preparation()).uncut < 0.1


def test_a_corpus_without_words_is_refused(tmp_path: Path) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("... --- !!!\n")
    with pytest.raises(BilexError, match="holds no words"):
        prepare([corpus], tmp_path, Preparation())
