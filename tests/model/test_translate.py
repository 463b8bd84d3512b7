"""Asking a translator."""

from __future__ import annotations

import numpy as np
import pytest

from bilex import BilexError
from bilex.model import Translator
from bilex.model.answers import closest_spellings
from bilex.vectors import WordVectors
from planted import Planted, planted, pseudowords


class Reader:
    """An out-of-vocabulary source that knows one word."""

    kind = "reader"

    def __init__(self, word: str, vector: np.ndarray) -> None:
        self.word, self.vector = word, vector
        self.asked: list[tuple[list[str], str]] = []

    def vectors(self, words: list[str], side: str) -> list[np.ndarray | None]:
        self.asked.append((list(words), side))
        return [self.vector if word == self.word else None for word in words]


def test_a_clean_rotation_is_translated_both_ways() -> None:
    world = planted(200, 12, noise=0.0)
    translator = Translator("procrustes").fit(world.source, world.target, world.pairs(0, 50), calibrate=False)
    for direction, query_side, key_side in (
        ("forward", world.source, world.target),
        ("backward", world.target, world.source),
    ):
        answers = translator.translate(query_side.index_to_key, 3, direction=direction)
        assert [answer[0].word for answer in answers] == key_side.index_to_key
        assert all(len(answer) == 3 and answer[0].confidence is None for answer in answers)
        assert [answer[0].rank for answer in answers] == list(range(1, 201))


def test_one_word_gives_one_answer_and_scores_fall(translator: Translator, world: Planted) -> None:
    word = world.source.index_to_key[603]
    answer = translator.translate(word, 4)
    assert answer.word == word and answer.origin == "vocabulary"
    scores = [found.score for found in answer]
    assert scores == sorted(scores, reverse=True)
    confidences = [found.confidence for found in answer]
    assert confidences == sorted(confidences, reverse=True)
    assert translator.translate([word], 4) == [answer]


def test_k_1_has_the_same_first_answer_as_k_5(translator: Translator, world: Planted) -> None:
    words = world.source.index_to_key[:20]
    ones, fives = translator.translate(words, 1), translator.translate(words, 5)
    assert [answer.translations for answer in ones] == [answer.translations[:1] for answer in fives]


def test_nearest_neighbours_are_cosines(translator: Translator, world: Planted) -> None:
    word = world.source.index_to_key[7]
    found = translator.translate(word, 1, retrieval="nn", model_only=True)[0]
    x = translator.space.source[word].astype(np.float64)
    cosines = translator.space.target.vectors.astype(np.float64) @ x
    assert found.word == world.target.index_to_key[int(cosines.argmax())]
    assert found.score == pytest.approx(cosines.max(), abs=1e-5)


def test_upper_case_is_understood_only_by_lower_cased_models(world: Planted) -> None:
    word = world.source.index_to_key[0]
    made = [
        Translator("procrustes").fit(
            world.source, world.target, world.pairs(0, 60), calibrate=False, lowercase=lowercase
        )
        for lowercase in (True, False)
    ]
    assert [translator.translate(word.upper()).known for translator in made] == [True, False]


def test_an_unknown_word_is_reported_with_its_closest_spellings(
    translator: Translator, world: Planted
) -> None:
    word = world.source.index_to_key[10]
    misspelt = word[:2] + "x" + word[2:]
    known, unknown = translator.translate([word, misspelt])
    assert known.known and not unknown.known and len(unknown) == 0
    assert word in unknown.suggestions
    assert misspelt in unknown.sentence() and word in unknown.sentence()
    assert unknown.as_dict()["suggestions"] == unknown.suggestions


def test_unknown_sources_are_asked_in_order(translator: Translator, world: Planted) -> None:
    target = world.target.index_to_key[5]
    vector = translator.space.target[target]
    first, second = Reader("newword", vector), Reader("other", vector)
    query_side = Translator.of_parts(
        translator.space,
        translator.source_map,
        translator.target_map,
        translator.calibration,
        [first, second],
    )
    answers = query_side.translate(
        ["NewWord", "other", "neither", world.source.index_to_key[0]], retrieval="nn"
    )
    assert [answer.origin for answer in answers] == ["reader", "reader", None, "vocabulary"]
    assert answers[0][0].word == target and answers[0][0].confidence is None
    assert first.asked == [(["newword", "other", "neither"], "source")]
    assert second.asked == [(["other", "neither"], "source")]


def test_new_vectors_are_mapped_as_the_old_ones_were(translator: Translator, world: Planted) -> None:
    some = WordVectors(["one", "two"], np.array(world.source.vectors[[4, 9]]))
    mapped = translator.map_vectors(some, "source")
    assert mapped.index_to_key == ["one", "two"]
    assert np.allclose(mapped.vectors, translator.space.source.vectors[[4, 9]], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda t: t.translate("x", 0), "at least 1"),
        (lambda t: t.translate("x", direction="up"), "forward or backward"),
        (lambda t: t.map_vectors(WordVectors(["a"], np.ones((1, 3), np.float32)), "source"), "dimension 3"),
        (lambda t: t.map_vectors(t.space.source, "left"), "source or target"),
    ],
)
def test_bad_questions_are_reported(translator: Translator, call: object, part: str) -> None:
    with pytest.raises(BilexError, match=part):
        call(translator)  # type: ignore[operator]


def test_spellings() -> None:
    vocabulary = ["the", "house", "horse", "mouse", "blouse", "café", "Straße", "ab"]
    assert closest_spellings("hause", vocabulary)[0] == "house"
    assert closest_spellings("cafe", vocabulary) == ["café"]
    assert closest_spellings("HOUSE", vocabulary)[0] == "house"
    assert closest_spellings("zzzzzz", vocabulary) == []
    assert closest_spellings("", vocabulary) == []
    assert closest_spellings("house", vocabulary, 0) == []


def test_spellings_of_a_large_vocabulary() -> None:
    words = [f"{word}{i % 97}" for i, word in enumerate(pseudowords(3600, "s") * 55)][:198_000]
    assert words[1234] in closest_spellings(words[1234] + "q", words)
