"""Phrases: found as units, else composed; known through the seeds; evaluated beside words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError
from bilex.cli import run
from bilex.encoders import Combination
from bilex.evaluation import evaluate
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.unknown import FromEncoder
from bilex.vectors import WordVectors
from bilex.vectors.phrases import composing_weights, is_phrase, unit_of
from bilex.vectors.stored import unit_rows
from planted import Planted, planted


@pytest.fixture(scope="module")
def world() -> Planted:
    """A planted problem of which one pair of words is a phrase in both vocabularies."""
    made = planted(600, noise=0.2)
    for vectors, phrase in ((made.source, "new_york"), (made.target, "uusi jorkki")):
        vectors.index_to_key[450] = phrase
    source, target = (WordVectors(v.index_to_key, v.vectors) for v in (made.source, made.target))
    return Planted(source, target)


@pytest.fixture(scope="module")
def terms(world: Planted) -> Lexicon:
    """Seeds of words and of phrases that no vocabulary holds."""
    words = world.pairs(0, 300).pairs
    source, target = world.source.index_to_key, world.target.index_to_key
    phrases = [(f"{source[500]} {source[501]}", target[502]), (source[503], f"{target[504]} {target[505]}")]
    return Lexicon([*words, *phrases, ("new york", "uusi_jorkki")], "terms")


@pytest.fixture(scope="module")
def translator(world: Planted, terms: Lexicon) -> Translator:
    return Translator("procrustes").fit(world.source, world.target, terms)


def test_a_vocabulary_spells_phrases_in_its_own_way() -> None:
    vocabulary = {"new_york": 0, "los angeles": 1, "нью-йорк": 2, "york": 3}
    spelt = {"new york": "new_york", "los_angeles": "los angeles", "нью йорк": "нью-йорк", "york": "york"}
    assert {text: unit_of(text, vocabulary) for text in spelt} == spelt
    assert unit_of("old york", vocabulary) is None
    assert unit_of("_", vocabulary) is None
    assert not is_phrase("_x_")


def test_rare_words_weigh_more_than_function_words() -> None:
    first, tenth, rare = composing_weights([0, 9, 50_000], 200_000)
    assert 0 < first < 0.02 < tenth < 0.5 < 0.99 < rare <= 1


@pytest.mark.parametrize("spelling", ["new york", "new_york", "New York", "NEW_YORK"])
def test_a_phrase_of_the_vocabulary_is_found_as_a_unit(translator: Translator, spelling: str) -> None:
    answer = translator.translate(spelling, k=2)
    assert answer.origin == "vocabulary"
    assert not answer.composed
    assert answer[0].word == "uusi jorkki"
    assert answer[0].known


def test_a_phrase_is_composed_of_its_words(translator: Translator, world: Planted) -> None:
    first, second = world.source.index_to_key[510], world.source.index_to_key[590]
    answer = translator.translate(f"{first} {second}", k=5, retrieval="nn")
    assert answer.origin == "composed"
    assert answer.composed
    assert answer.as_dict()["composed"] is True
    assert {world.target.index_to_key[510], world.target.index_to_key[590]} <= {t.word for t in answer}
    assert all(t.confidence is None for t in answer)


def test_an_unknown_word_keeps_a_phrase_from_being_composed(translator: Translator, world: Planted) -> None:
    known = world.source.index_to_key[3]
    answer = translator.translate(f"{known} xyzzy")
    assert not answer.known
    assert answer.unknown_words == ("xyzzy",)
    assert "cannot be composed without 'xyzzy'" in answer.sentence()
    assert answer.as_dict()["unknown_words"] == ["xyzzy"]


def test_phrases_of_the_seeds_are_known_both_ways(translator: Translator, terms: Lexicon) -> None:
    (source, target), (word, phrase) = terms.pairs[-3:-1]
    answer = translator.translate(source, k=3)
    assert answer.composed
    assert (answer[0].word, answer[0].known) == (target, True)
    back = translator.translate(target, k=3, direction="backward")
    assert (back[0].word, back[0].known, back[0].composed) == (source, True, True)
    assert translator.translate(word, k=1)[0].word == phrase
    entries = {(e.source, e.target) for e in translator.lexicon(k=1) if e.known}
    assert {(source, target), (word, phrase), ("new_york", "uusi jorkki")} <= entries


def test_phrases_change_nothing_for_words(world: Planted, terms: Lexicon, translator: Translator) -> None:
    words_only = Lexicon(terms.pairs[:300])
    plain = Translator("procrustes").fit(world.source, world.target, words_only, calibrate=False)
    unit = Lexicon([*words_only.pairs, ("new_york", "uusi jorkki")])
    also = Translator("procrustes").fit(world.source, world.target, unit, calibrate=False)
    rows = np.arange(len(world.source))
    np.testing.assert_array_equal(
        np.asarray(also.space.source.vectors), np.asarray(translator.space.source.vectors)[rows]
    )
    np.testing.assert_array_equal(also.space.neighbourhoods()[0], translator.space.neighbourhoods()[0][rows])
    assert len(plain.space.source) == len(translator.space.source) == len(world.source)
    assert len(translator.whole_space.source) == len(world.source) + 1


def test_a_phrase_of_the_seeds_is_no_answer_to_a_word(world: Planted, tmp_path: Path) -> None:
    """Phrases made of a word's own translation would be nearest to the word, and the first answers."""
    source, target = world.source.index_to_key, world.target.index_to_key
    words = world.pairs(0, 300).pairs
    near = [(f"{source[i]} {source[3]}", f"{target[i]} {target[3]}") for i in range(310, 390)]
    made, plain = (
        Translator("procrustes").fit(world.source, world.target, Lexicon(pairs), calibrate=False)
        for pairs in ([*words, *near], words)
    )
    made.save(tmp_path / "model")
    asked, phrase = source[300:450], near[0][0]
    for model in (made, Translator.load(tmp_path / "model", device="cpu")):
        for retrieval in ("csls", "nn"):
            found = model.translate(asked, 3, retrieval=retrieval)  # type: ignore[arg-type]
            assert found == plain.translate(asked, 3, retrieval=retrieval)  # type: ignore[arg-type]
        test = world.pairs(300, 450)
        assert (
            model.evaluate(test, bootstrap=0).forward.metrics
            == plain.evaluate(test, bootstrap=0).forward.metrics
        )
        entries = {e.source: e.target for e in model.lexicon(k=1)}
        assert all(entries[e.source] == e.target for e in plain.lexicon(k=1))
        assert model.translate(phrase, 1)[0].word == near[0][1]
        assert model.translate(phrase, 5, model_only=True).composed
        unseen = model.translate(f"{source[311]} {source[3]}", 3, model_only=True)
        assert any(t.composed for t in unseen), "phrases may be answers to phrases"


def test_a_saved_model_remembers_its_phrases(translator: Translator, terms: Lexicon, tmp_path: Path) -> None:
    translator.save(tmp_path / "model")
    opened = Translator.load(tmp_path / "model", device="cpu")
    for phrase in (terms.pairs[-3][0], "new york", f"{terms.pairs[0][0]} {terms.pairs[1][0]}"):
        first, again = translator.translate(phrase, k=4), opened.translate(phrase, k=4)
        assert again.origin == first.origin
        assert [t.word for t in again] == [t.word for t in first]


class WholeReader:
    """An encoder that gives each text, phrase or word, a vector of its own."""

    def encode(self, words: list[str]) -> np.ndarray:
        rows = [np.random.default_rng(sum(map(ord, word))).normal(size=6) for word in words]
        return np.array(rows, np.float32)


def test_a_language_model_reads_the_phrase_whole() -> None:
    encoder_map = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    combination = Combination(np.eye(8, dtype=np.float32), encoder_map, 0.3)
    reader = FromEncoder(WholeReader, combination, lambda path: None)
    composed = np.random.default_rng(2).normal(size=8).astype(np.float32)
    (found,) = reader.phrase_vectors(["big dog"], [composed])
    encoded = unit_rows(WholeReader().encode(["big dog"]) @ encoder_map)[0]
    mixed = 0.7 * composed / np.linalg.norm(composed) + 0.3 * encoded
    np.testing.assert_allclose(found, mixed / np.linalg.norm(mixed), atol=1e-6)


def test_evaluation_counts_phrases_beside_words(world: Planted) -> None:
    source, target = world.source.index_to_key, world.target.index_to_key
    fitted = Translator("procrustes").fit(world.source, world.target, world.pairs(0, 300), calibrate=False)
    words = world.pairs(400, 440).pairs
    phrases = [(f"{source[i]} {source[i + 1]}", f"{target[i]}_{target[i + 1]}") for i in range(500, 540, 2)]
    only = [(source[560], f"{target[560]} {target[561]}")]
    plain = evaluate(fitted.space, Lexicon(words), bootstrap=0)
    both = evaluate(fitted.space, Lexicon([*words, *phrases, *only]), bootstrap=0)
    assert both.forward.metrics == plain.forward.metrics
    assert both.forward.covered == 40
    assert both.forward.phrases["phrases"].covered == 20
    assert (both.forward.phrases["phrases"].metrics["csls"] or {})["p@1"] > 0.8
    assert both.forward.phrases["words that only phrases translate"].covered == 1
    assert both.backward.phrases["phrases"].covered == 21
    assert plain.forward.phrases == {}
    shown = both.as_dict(predictions=True)["forward"]
    assert shown["phrases"]["phrases"]["covered"] == 20
    assert len(shown["phrase_predictions"]) == 21


def test_golds_in_another_spelling_count_as_units(world: Planted) -> None:
    fitted = Translator("procrustes").fit(world.source, world.target, world.pairs(0, 300), calibrate=False)
    result = evaluate(fitted.space, Lexicon([("new york", "uusi_jorkki")]), bootstrap=0)
    assert result.forward.covered == 1
    assert result.forward.phrases == {}


def test_the_command_marks_what_was_composed(
    translator: Translator, world: Planted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    translator.save(tmp_path / "model")
    source = world.source.index_to_key
    phrase = f"{source[510]} {source[590]}"
    command = ["translate", str(tmp_path / "model"), phrase, source[510], "-k", "1", "--device", "cpu"]
    assert run([*command, "--format", "jsonl"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["composed"], second["composed"]) == (True, False)
    assert run([*command, "--format", "tsv"]) == 0
    assert [line.split("\t")[-1] for line in capsys.readouterr().out.splitlines()] == ["composed", "found"]
    assert run([*command, "--format", "table"]) == 0
    assert f"{phrase} (composed)" in capsys.readouterr().out
    test = tmp_path / "test.tsv"
    Lexicon([*world.pairs(400, 410).pairs, (phrase, "uusi jorkki")]).save(test)
    assert run(["evaluate", str(tmp_path / "model"), str(test), "--device", "cpu"]) == 0
    assert "phrases (composed)" in capsys.readouterr().out


def test_a_dictionary_of_phrases_alone_can_be_evaluated(world: Planted) -> None:
    source, target = world.source.index_to_key, world.target.index_to_key
    fitted = Translator("procrustes").fit(world.source, world.target, world.pairs(0, 300), calibrate=False)
    pairs = [(f"{source[i]} {source[i + 1]}", f"{target[i]} {target[i + 1]}") for i in range(500, 540, 2)]
    result = evaluate(fitted.space, Lexicon(pairs), bootstrap=100)
    assert result.forward.covered == 0
    assert result.forward.metrics["csls"] is None
    assert result.backward.phrases["phrases"].covered == 20
    assert result.table() is not None
    with pytest.raises(BilexError, match="nothing to evaluate"):
        evaluate(fitted.space, Lexicon([("no such", "words here")]))


def test_more_answers_than_words_are_exported_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    source = WordVectors([f"s{i}" for i in range(8)], rng.normal(size=(8, 4)).astype(np.float32))
    target = WordVectors([f"t{i}" for i in range(3)], rng.normal(size=(3, 4)).astype(np.float32))
    seeds = Lexicon([("s0", "t0"), ("s1", "t1"), ("s2 s3", "t1 t2")])
    made = Translator("procrustes").fit(source, target, seeds, calibrate=False, progress=False)
    whole = made.lexicon(k=9)
    monkeypatch.setattr("bilex.model.lexicon._WORDS_PER_BLOCK", 2)
    assert made.lexicon(k=9).entries == whole.entries
    assert len(whole) == 8 * 3 + 4
