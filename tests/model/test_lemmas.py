"""Dictionaries by lemmas: forms grouped, votes joined, forms that agree, senses apart."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError
from bilex.cli import BAD_INPUT, run
from bilex.lexicon import Lexicon
from bilex.lexicon.lemmas import lemmatiser
from bilex.model import Translator
from bilex.model.lexicon import Lemmas, sense_numbers
from bilex.model.provenance import Provenance
from bilex.vectors import WordVectors

pytest.importorskip("simplemma")

# German and French nouns, singular and plural; the vector of a form is its meaning and its number.
GERMAN = {"hund": "hunde", "katze": "katzen", "stadt": "städte", "buch": "bücher", "haus": "häuser"}
FRENCH = {"chien": "chiens", "chat": "chats", "ville": "villes", "livre": "livres", "maison": "maisons"}
DIM = 16


def vocabulary(nouns: dict[str, str], noise: float, seed: int) -> WordVectors:
    meanings = np.random.default_rng(0).normal(size=(len(nouns), DIM))
    plural = np.random.default_rng(1).normal(size=DIM) * 0.8
    rng = np.random.default_rng(seed)
    words, rows = [], []
    for number in (0, 1):
        for forms, meaning in zip(nouns.items(), meanings, strict=True):
            words.append(forms[number])
            rows.append(meaning + number * plural + noise * rng.normal(size=DIM))
    others = np.random.default_rng(2).normal(size=(60, DIM))
    words += [f"{next(iter(nouns))[:2]}x{place}" for place in range(60)]
    return WordVectors(words, np.array([*rows, *others], np.float32))


@pytest.fixture(scope="module")
def translator() -> Translator:
    source, target = vocabulary(GERMAN, 0.05, 3), vocabulary(FRENCH, 0.05, 4)
    filler = list(zip(source.index_to_key[10:], target.index_to_key[10:], strict=True))
    seeds = Lexicon([*filler, ("hund", "chien")])
    return Translator("procrustes").fit(source, target, seeds, languages=("de", "fr"), calibrate=False)


def test_forms_of_a_lemma_stand_under_one_headword(translator: Translator) -> None:
    lemmas = Lemmas.of(translator.space.source, lemmatiser("de"))
    words = translator.space.source.index_to_key
    for singular, plural in GERMAN.items():
        number = lemmas.number[words.index(plural)]
        assert words[lemmas.heads[number]] == singular
        assert [words[row] for row in lemmas.forms(number)] == [singular, plural]


def test_one_entry_a_lemma_with_the_form_that_agrees(translator: Translator) -> None:
    plain = {entry.source: entry.target for entry in translator.lexicon()}
    assert {"hunde", "städte"} <= set(plain)
    entries = {entry.source: entry for entry in translator.lexicon(lemmas=True)}
    for german, french in zip(GERMAN, FRENCH, strict=True):
        assert entries[german].target == french
        assert GERMAN[german] not in entries
    assert entries["hund"].known
    assert not entries["katze"].known
    assert entries["katze"].source_rank == 2
    assert [e.source for e in entries.values()][:5] == list(GERMAN)


def test_a_plural_alone_finds_the_plural() -> None:
    source, target = vocabulary(GERMAN, 0.05, 3), vocabulary(FRENCH, 0.05, 4)
    kept = [row for row, word in enumerate(source.index_to_key) if word != "stadt"]
    only = WordVectors([source.index_to_key[row] for row in kept], np.asarray(source.vectors)[kept])
    pairs = [(word, target.index_to_key[row]) for word, row in zip(only.index_to_key, kept, strict=True)]
    fitted = Translator("procrustes").fit(
        only, target, Lexicon(pairs[9:]), languages=("de", "fr"), calibrate=False
    )
    entries = {entry.source: entry.target for entry in fitted.lexicon(lemmas=True)}
    assert entries["städte"] == "villes"


def test_backward_and_mutual(translator: Translator) -> None:
    back = {entry.target: entry.source for entry in translator.lexicon(lemmas=True, direction="backward")}
    assert [back[french] for french in FRENCH] == list(GERMAN)
    mutual = {(e.source, e.target) for e in translator.lexicon(lemmas=True, mutual=True)}
    assert set(zip(GERMAN, FRENCH, strict=True)) <= mutual
    with pytest.raises(BilexError, match="one direction"):
        translator.lexicon(lemmas=True, direction="both")


def test_several_translations_are_lemmas_each_once(translator: Translator) -> None:
    lemma = lemmatiser("fr")
    for german in GERMAN:
        answers = [e.target for e in translator.lexicon(lemmas=True, k=4) if e.source == german]
        assert len({lemma(answer) for answer in answers}) == len(answers) == 4


def test_filters_and_least_scores_hold(translator: Translator) -> None:
    def keep(word: str, side: str) -> bool:
        return word not in ("chats", "chat", "katzen", "katze")

    kept = translator.lexicon(lemmas=True, k=3, keep=keep)
    assert {"chats", "chat", "katzen", "katze"}.isdisjoint(
        {e.source for e in kept} | {e.target for e in kept}
    )
    sure = translator.lexicon(lemmas=True, k=3, min_score=0.0)
    assert all(entry.known or (entry.score or 0) >= 0 for entry in sure)


def test_translations_that_fall_into_groups_are_senses() -> None:
    rng = np.random.default_rng(0)
    money, river = rng.normal(size=(2, 30))
    rows = np.array([money, river, money, river, money]) + 0.3 * rng.normal(size=(5, 30))
    words = WordVectors(["raha", "äyräs", "pankki", "ranta", "tili"], rows.astype(np.float32))
    assert sense_numbers(np.zeros(5, np.int64), np.arange(5), words).tolist() == [1, 2, 1, 2, 1]
    assert sense_numbers(np.zeros(2, np.int64), np.array([0, 2]), words).tolist() == [0, 0]
    two_queries = sense_numbers(np.array([0, 0, 1]), np.array([0, 1, 1]), words)
    assert two_queries.tolist() == [1, 2, 0]
    assert sense_numbers(np.array([], np.int64), np.array([], np.int64), words).tolist() == []


def test_languages_must_be_known() -> None:
    with pytest.raises(BilexError, match="--languages"):
        lemmatiser(None)
    with pytest.raises(BilexError, match="no lemmas for 'zh'"):
        lemmatiser("zh")


def test_without_simplemma_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "simplemma", None)
    with pytest.raises(BilexError, match=r"bilex\[lemmas\]"):
        lemmatiser("de")


def test_the_command_writes_senses(
    translator: Translator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    translator.save(tmp_path / "model")
    command = ["lexicon", str(tmp_path / "model"), "--lemmas", "-k", "3", "--device", "cpu"]
    assert run([*command, "-o", str(tmp_path / "entries.csv")]) == 0
    with (tmp_path / "entries.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["source"] for row in rows} >= set(GERMAN)
    assert {row["sense"] for row in rows if row["source"] == "katze"} <= {"", "1", "2", "3"}
    assert any(row["sense"] == "2" for row in rows)
    assert run([*command, "-o", str(tmp_path / "entries.jsonl")]) == 0
    records = [json.loads(line) for line in (tmp_path / "entries.jsonl").read_text().splitlines()]
    read = Lexicon.load(tmp_path / "entries.jsonl")
    assert len(read) == len(records) == len(rows)
    assert any(record.get("sense") == 2 for record in records)
    assert run([*command, "--direction", "both"]) == BAD_INPUT
    assert "one direction" in capsys.readouterr().err


def test_languages_can_be_named(translator: Translator) -> None:
    nameless = translator.with_parts(provenance=Provenance())
    with pytest.raises(BilexError, match="--languages"):
        nameless.lexicon(lemmas=True)
    named = nameless.lexicon(lemmas=("de", "fr"))
    assert named.entries == translator.lexicon(lemmas=True).entries
