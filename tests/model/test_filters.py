"""Filters of words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError
from bilex.cli import run
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.filters import read_tags, read_words, word_filter
from bilex.vectors import WordVectors
from planted import planted

WORDS = ["the", "Paris", "apple", "Apple", "1984", "May", "may", "run"]


@pytest.fixture(scope="module")
def translator() -> Translator:
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32)
    words = WordVectors(WORDS, vectors)
    seeds = Lexicon([(word, word) for word in WORDS[:4]])
    return Translator("procrustes").fit(words, words, seeds, lowercase=False, calibrate=False)


def kept(translator: Translator, **overrides: object) -> list[str]:
    keep = word_filter(translator, **overrides)  # type: ignore[arg-type]
    assert keep is not None
    return [word for word in WORDS if keep(word, "source")]


def test_numbers_names_and_stop_words(translator: Translator) -> None:
    assert kept(translator, numbers=False) == [word for word in WORDS if word != "1984"]
    # "Apple" is rarer than "apple"; "May" is more frequent than "may", and "Paris" has no other spelling.
    assert kept(translator, names=False) == ["the", "apple", "Apple", "1984", "may", "run"]
    assert kept(translator, stop_words=["THE", "run"]) == WORDS[1:-1]
    assert word_filter(translator) is None


def test_parts_of_speech(translator: Translator, tmp_path: Path) -> None:
    (tmp_path / "tags.tsv").write_text("run\tVERB\napple\tNOUN\tmore\n", encoding="utf-8")
    tagger = read_tags(tmp_path / "tags.tsv")
    assert kept(translator, tagger=tagger, parts_of_speech=["noun"]) == ["apple", "Apple"]
    assert kept(translator, tagger=tagger, parts_of_speech=["noun", "verb"]) == ["apple", "Apple", "run"]
    (tmp_path / "tags.tsv").write_text("run VERB\n")
    with pytest.raises(BilexError, match="line 1 has no tab"):
        read_tags(tmp_path / "tags.tsv")
    with pytest.raises(BilexError, match="--tags"):
        word_filter(translator, parts_of_speech=["noun"])


def test_words_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "stop.txt").write_text("# a comment\nthe\n\n and \n", encoding="utf-8")
    assert read_words(tmp_path / "stop.txt") == {"the", "and"}
    with pytest.raises(BilexError, match="cannot be read"):
        read_words(tmp_path / "nowhere.txt")


def test_dictionaries_and_answers_obey(translator: Translator) -> None:
    keep = word_filter(translator, numbers=False, names=False)
    pairs = {(e.source, e.target) for e in translator.lexicon(k=8, keep=keep)}
    assert {a for a, _ in pairs} == {"the", "apple", "Apple", "may", "run"}
    assert not {b for _, b in pairs} & {"1984", "May"}
    assert {found.word for found in translator.translate("run", 8, keep=keep)} == {
        "the",
        "apple",
        "Apple",
        "may",
        "run",
    }


def test_a_strict_filter_still_finds_k_answers() -> None:
    world = planted(800, 16, 0.5)
    translator = Translator("procrustes").fit(
        world.source, world.target, world.pairs(0, 100), calibrate=False
    )
    word, wanted = world.source.index_to_key[300], set(world.target.index_to_key[-30:])
    every = translator.translate(word, 800).translations
    expected = [found for found in every if found.word in wanted][:5]
    found = translator.translate(word, 5, keep=lambda answer, _: answer in wanted).translations
    assert list(found) == expected and len(found) == 5
    several = translator.translate(
        [word, world.source.index_to_key[0]], 5, keep=lambda answer, _: answer in wanted
    )
    assert list(several[0].translations) == expected
    assert several[1].translations[0].known and len(several[1].translations) == 5


def test_ranks_of_answers_leave_composed_phrases_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = planted(300, 16, 0.3)
    source, target = world.source.index_to_key, world.target.index_to_key
    phrases = [
        (f"{source[150]} {source[row]}", f"{target[150]} {target[row]}") for row in (151, 152, 153, 154)
    ]
    phrase = phrases[0]
    seeds = Lexicon([*world.pairs(0, 100).pairs, *phrases])
    Translator("procrustes").fit(world.source, world.target, seeds, calibrate=False).save(tmp_path / "m")
    arguments = [
        "translate",
        str(tmp_path / "m"),
        phrase[0],
        "--answer-ranks",
        "1-200",
        "-k",
        "290",
        "--format",
        "jsonl",
    ]
    assert run(arguments) == 0
    found = json.loads(capsys.readouterr().out)["translations"]
    assert found[0]["word"] == phrase[1] and found[0]["known"]
    assert all(not answer["composed"] and answer["rank"] <= 200 for answer in found[1:]) and len(found) > 1
