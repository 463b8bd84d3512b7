from __future__ import annotations

import pytest

from bilex.errors import BilexError
from bilex.lexicon import Lexicon
from bilex.many.fitting import align_languages, split_together
from bilex.vectors import WordVectors
from many_planted import PlantedMany, planted_many, share_right

OPTIONS = {"device": "cpu", "calibrated": False, "rounds": 1}


def test_languages_without_seeds_of_their_own_are_translated_through_the_others(world: PlantedMany) -> None:
    seeds = {("en", code): world.pairs("en", code, 0, 400) for code in ("fi", "fr", "ru")}
    many = align_languages(world.vocabularies, seeds, **OPTIONS)
    test = world.pairs("fi", "ru", 400, 800)
    assert share_right(many.pair("fi", "ru").space, test) > 0.7


def test_a_pair_with_few_seeds_is_helped_by_the_others() -> None:
    world = planted_many("en fi fr", noise=0.8)
    few = world.pairs("fi", "fr", 0, 25)
    seeds = {
        ("fi", "fr"): few,
        ("en", "fi"): world.pairs("en", "fi", 0, 400),
        ("en", "fr"): world.pairs("en", "fr", 0, 400),
    }
    test = world.pairs("fi", "fr", 400, 800)
    together = align_languages(world.vocabularies, seeds, **OPTIONS)
    two = {code: world.vocabularies[code] for code in ("fi", "fr")}
    alone = align_languages(two, {("fi", "fr"): few}, **OPTIONS)
    gain = share_right(together.pair("fi", "fr").space, test) - share_right(
        alone.pair("fi", "fr").space, test
    )
    assert gain > 0.1


def test_rejected_pairs_are_not_learned_from(world: PlantedMany) -> None:
    en, fi = world.vocabularies["en"].index_to_key, world.vocabularies["fi"].index_to_key
    wrong = [(en[row], fi[row]) for row in range(200, 800)]
    two = {code: world.vocabularies[code] for code in ("en", "fi")}
    seeds = Lexicon(world.pairs("en", "fi", 0, 200).pairs, "seeds", rejected=tuple(wrong))
    many = align_languages(two, {("en", "fi"): seeds}, **OPTIONS)
    found = many.provenance.report.pairs_of_the_last_round["en-fi"]
    free = align_languages(two, {("en", "fi"): world.pairs("en", "fi", 0, 200)}, **OPTIONS)
    assert found < free.provenance.report.pairs_of_the_last_round["en-fi"] / 2


def test_languages_of_different_dimensions_are_aligned(world: PlantedMany) -> None:
    narrow = WordVectors(
        world.vocabularies["fr"].index_to_key,
        planted_many("fr", dim=20, noise=0.1).vocabularies["fr"].vectors[:, :16],
    )
    vocabularies = {"en": world.vocabularies["en"], "fr": narrow}
    many = align_languages(vocabularies, {("en", "fr"): world.pairs("en", "fr", 0, 400)}, **OPTIONS)
    mapped = many.pair("en", "fr").map_vectors(narrow, "target")
    assert mapped.dim == many.vocabularies["en"].dim == 20


def test_confidences_come_from_words_that_no_dictionary_showed_the_second_fit(world: PlantedMany) -> None:
    twos = [("en", "fi"), ("en", "ru"), ("fi", "ru")]
    seeds = {two: world.pairs(*two, 0, 500) for two in twos}
    learned, held_out = split_together(seeds, seed=3)
    for two in twos:
        assert 50 <= len(held_out[two]) <= 200
    seen = {
        (code, word)
        for two, pairs in learned.items()
        for pair in pairs.pairs
        for code, word in zip(two, pair, strict=True)
    }
    hidden = {
        (code, word)
        for two, pairs in held_out.items()
        for pair in pairs.pairs
        for code, word in zip(two, pair, strict=True)
    }
    assert not seen & hidden
    many = align_languages(
        {c: world.vocabularies[c] for c in ("en", "fi", "ru")}, seeds, rounds=1, device="cpu"
    )
    answer = many.translate(world.vocabularies["fi"].index_to_key[700], "fi", "ru", 1)
    assert answer[0].confidence is not None


def test_seeds_that_leave_a_language_apart_are_refused(world: PlantedMany) -> None:
    with pytest.raises(BilexError, match="no pairs connect 'fr' with 'en'"):
        align_languages(
            world.vocabularies,
            {("en", "fi"): world.pairs("en", "fi", 0, 100), ("fr", "ru"): world.pairs("fr", "ru", 0, 100)},
        )
