from __future__ import annotations

import numpy as np
import pytest

from bilex import BilexError
from bilex.aligners import Map, get_method
from bilex.aligners.preparation import unit_center_unit
from bilex.aligners.spelling import identical_strings, numerals, romanised, sound_key, spelled_alike
from bilex.aligners.starts import unsupervised_similarity_distributions
from bilex.vectors import WordVectors
from planted import planted


def _words(*words: str) -> WordVectors:
    vectors = np.random.default_rng(1).normal(size=(len(words), 4)).astype(np.float32)
    return WordVectors(list(words), vectors)


def test_identical_strings_pairs_equal_words_only() -> None:
    source, target = _words("taxi", "dog", "7", "radio"), _words("radio", "koira", "taxi", "7")
    assert identical_strings(source, target).tolist() == [[0, 2], [2, 3], [3, 0]]


def test_spelled_alike_leaves_out_quoted_words() -> None:
    """Words that are much rarer in one language, or in a script of another, are no translations."""
    filler = [f"word{i}" for i in range(300)]
    source = _words("radio", "story", *filler, "1999", "и")
    target = _words("taxi", "radio", *(f"sana{i}" for i in range(300)), "story", "1999", "и")
    assert spelled_alike(source, target).tolist() == [[0, 1], [302, 303]]
    russian = _words("radio", *(f"слово{i}" for i in range(9)), "1999")
    assert [source.index_to_key[row] for row, _ in spelled_alike(source.head(400), russian)] == []
    assert spelled_alike(_words("radio", "7"), russian).shape == (0, 2)
    assert spelled_alike(_words("radio", "1999"), russian).tolist() == [[1, 10]]


def test_numerals_pairs_numbers_only() -> None:
    source, target = _words("taxi", "1999", "4x4", "7", "½"), _words("7", "taxi", "4x4", "1999", "½")
    assert numerals(source, target).tolist() == [[1, 3], [3, 0]]


@pytest.mark.parametrize(
    ("one", "other"),
    [("культура", "kulttuuri"), ("professor", "профессор"), ("telephone", "telefon"), ("система", "système")],
)
def test_one_sound_has_one_key_in_any_script(one: str, other: str) -> None:
    assert sound_key(one) == sound_key(other) != ""


@pytest.mark.parametrize("word", ["", "и", "1999", "the", "!?", "a\u0301"])
def test_short_words_and_numbers_have_no_key(word: str) -> None:
    assert sound_key(word) == ""


def test_romanised_pairs_the_most_frequent_words_of_the_languages_own_scripts() -> None:
    source = _words("professor", "culture", "kulture", "dog")
    target = _words("professor", "и", "культура", "культуры", "профессор", "собака")
    assert romanised(source, target).tolist() == [
        [0, 4],
        [1, 2],
    ]  # the English word among the Russian is none


def test_no_shared_word_gives_no_pair() -> None:
    source, target = _words("a", "b"), _words("c", "d")
    assert identical_strings(source, target).shape == (0, 2)
    assert numerals(source, target).shape == (0, 2)


def test_unit_center_unit_steps_prepare_like_the_rows() -> None:
    vectors = np.random.default_rng(3).normal(1.0, 2.0, size=(50, 7))
    prepared = unit_center_unit(vectors)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = unit - unit.mean(0)
    expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(prepared.rows, expected, atol=1e-6)
    np.testing.assert_allclose(Map(prepared.steps)(vectors), expected, atol=1e-6)


def test_unsupervised_start_finds_a_planted_permutation() -> None:
    """Rotating a space and shuffling its words leaves the sorted similarities of a word as they were."""
    random = np.random.default_rng(0)
    x = random.standard_t(4, size=(400, 20)) * np.linspace(1, 3, 20)
    rotation, _ = np.linalg.qr(random.normal(size=(20, 20)))
    order = random.permutation(400)
    y = (x @ rotation)[order] + random.normal(scale=0.001, size=x.shape)
    source = WordVectors([f"s{i}" for i in range(400)], x.astype(np.float32))
    target = WordVectors([f"t{i}" for i in range(400)], y.astype(np.float32))
    pairs = unsupervised_similarity_distributions(source, target, device="cpu")
    assert pairs.shape == (800, 2)
    assert pairs.dtype == np.int64
    assert (pairs[:400, 0] == np.arange(400)).all()
    assert (pairs[400:, 1] == np.arange(400)).all()
    assert (order[pairs[:, 1]] == pairs[:, 0]).mean() > 0.95


def test_unsupervised_start_describes_equally_many_words_of_unequal_vocabularies() -> None:
    random = np.random.default_rng(0)
    source = WordVectors([str(i) for i in range(30)], random.normal(size=(30, 5)).astype(np.float32))
    target = WordVectors([str(i) for i in range(12)], random.normal(size=(12, 5)).astype(np.float32))
    pairs = unsupervised_similarity_distributions(source, target, frequent=20, device="cpu")
    assert len(pairs) == 24
    assert pairs.max() < 12


def test_unsupervised_start_needs_two_words() -> None:
    with pytest.raises(BilexError, match="at least two words"):
        unsupervised_similarity_distributions(_words("a"), _words("b", "c"))


@pytest.mark.parametrize("method", ["rcsls", "fipp", "vecmap-semi", "vecmap-supervised"])
def test_rivals_start_without_seeds_from_what_the_vocabularies_suggest(method: str) -> None:
    world = planted(600, 20, 0.3)
    names = [*world.source.index_to_key[:60], *world.target.index_to_key[60:]]  # 60 words are spelled alike
    target = WordVectors(names, world.target.vectors)
    with pytest.raises(BilexError, match="needs a seed dictionary"):
        get_method(method)(device="cpu").fit(world.source, target)
    fitted = get_method(method)(device="cpu", start="joined").fit(world.source, target)
    x, y = fitted.source_map_(world.source.vectors), fitted.target_map_(target.vectors)
    right = (x @ y.T).argmax(1) == np.arange(600)
    assert right[60:].mean() > 0.7 and fitted.report_.seed_pairs == 0
