"""Several languages fitted together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bilex import C1, BilexError, ManyLanguages
from bilex.aligners import c1 as c1_module
from bilex.aligners.advanced import advanced_maps, check_connected, joint_maps, rotate_together
from bilex.lexicon import Lexicon
from bilex.model import jointly
from bilex.model.jointly import align_languages, fit_jointly, split_together
from bilex.model.space import Space, map_words
from bilex.vectors import WordVectors
from many_planted import PlantedMany, planted_many, share_right
from recorder import Recorder

SHORT = {"device": "cpu", "preset": "best", "passes": 1, "updates": 4, "iterations": 2}


def _aligned(vocabularies: dict[str, WordVectors], seeds: dict[tuple[str, str], Lexicon]) -> ManyLanguages:
    return align_languages(vocabularies, seeds, C1(**SHORT), calibrated=False)


def test_languages_without_seeds_of_their_own_are_translated_through_the_others(world: PlantedMany) -> None:
    seeds = {("en", code): world.pairs("en", code, 0, 400) for code in ("fi", "fr", "ru")}
    many = _aligned(world.vocabularies, seeds)
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
    together = _aligned(world.vocabularies, seeds)
    two = {code: world.vocabularies[code] for code in ("fi", "fr")}
    alone = _aligned(two, {("fi", "fr"): few})
    gain = share_right(together.pair("fi", "fr").space, test) - share_right(
        alone.pair("fi", "fr").space, test
    )
    assert gain > 0.1


def test_rejected_pairs_are_not_learned_from(world: PlantedMany) -> None:
    en, fi = world.vocabularies["en"].index_to_key, world.vocabularies["fi"].index_to_key
    wrong = [(en[row], fi[row]) for row in range(200, 800)]
    two = {code: world.vocabularies[code] for code in ("en", "fi")}
    seeds = Lexicon(world.pairs("en", "fi", 0, 200).pairs, "seeds", rejected=tuple(wrong))
    many = _aligned(two, {("en", "fi"): seeds})
    found = many.provenance.report.pairs_of_the_last_round["en-fi"]
    free = _aligned(two, {("en", "fi"): world.pairs("en", "fi", 0, 200)})
    assert found < free.provenance.report.pairs_of_the_last_round["en-fi"] / 2


def test_languages_of_different_dimensions_are_aligned(world: PlantedMany) -> None:
    narrow = WordVectors(
        world.vocabularies["fr"].index_to_key,
        planted_many("fr", dim=20, noise=0.1).vocabularies["fr"].vectors[:, :16],
    )
    vocabularies = {"en": world.vocabularies["en"], "fr": narrow}
    many = _aligned(vocabularies, {("en", "fr"): world.pairs("en", "fr", 0, 400)})
    mapped = many.pair("en", "fr").map_vectors(narrow, "target")
    assert mapped.dim == many.vocabularies["en"].dim == 20


def test_confidences_come_from_words_that_no_dictionary_showed_the_second_fit(world: PlantedMany) -> None:
    language_pairs = [("en", "fi"), ("en", "ru"), ("fi", "ru")]
    seeds = {two: world.pairs(*two, 0, 500) for two in language_pairs}
    learned, held_out = split_together(seeds, seed=3)
    for two in language_pairs:
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
    many = align_languages({c: world.vocabularies[c] for c in ("en", "fi", "ru")}, seeds, C1(**SHORT))
    answer = many["fi", "Russian"].translate(world.vocabularies["fi"].index_to_key[700], 1)
    assert answer[0].confidence is not None


def test_seeds_that_leave_a_language_apart_are_refused(world: PlantedMany) -> None:
    with pytest.raises(BilexError, match="no pairs connect 'fr' with 'en'"):
        align_languages(
            world.vocabularies,
            {("en", "fi"): world.pairs("en", "fi", 0, 100), ("fr", "ru"): world.pairs("fr", "ru", 0, 100)},
        )


def test_two_languages_are_aligned_as_c1_aligns_them(world: PlantedMany) -> None:
    two = {code: world.vocabularies[code] for code in ("en", "fi")}
    seeds = world.pairs("en", "fi", 0, 700)
    joint = fit_jointly(two, {("en", "fi"): seeds}, C1(**SHORT))
    alone = C1(**SHORT).fit(two["en"], two["fi"], seeds)
    for code, expected in (("en", alone.source_map_), ("fi", alone.target_map_)):
        np.testing.assert_allclose(joint.maps[code].matrix, expected.matrix, atol=1e-4)


def test_seeds_of_two_languages_through_a_third_are_used(world: PlantedMany) -> None:
    three = {code: world.vocabularies[code] for code in ("en", "fi", "ru")}
    seeds = {("en", "fi"): world.pairs("en", "fi", 0, 300), ("ru", "en"): world.pairs("ru", "en", 100, 400)}
    report = fit_jointly(three, seeds, C1(**{**SHORT, "updates": 0, "iterations": 1})).report
    assert report.composed_pairs == {"fi-ru": 200}


def test_an_interrupted_fit_goes_on_where_it_stopped(world: PlantedMany, tmp_path: Path) -> None:
    seeds = {("en", code): world.pairs("en", code, 0, 400) for code in ("fi", "ru")}
    three = {code: world.vocabularies[code] for code in ("en", "fi", "ru")}
    with pytest.raises(KeyboardInterrupt):
        fit_jointly(three, seeds, C1(**SHORT), progress=Recorder("round 2"), checkpoint=tmp_path / "fit")
    resumed = fit_jointly(three, seeds, C1(**SHORT), checkpoint=tmp_path / "fit")
    expected = fit_jointly(three, seeds, C1(**SHORT))
    for code, map_ in resumed.maps.items():
        np.testing.assert_array_equal(map_.matrix, expected.maps[code].matrix)
    with pytest.raises(BilexError, match="other vectors, seeds or settings"):
        fit_jointly(
            three,
            {("en", "fi"): seeds["en", "fi"], ("en", "ru"): world.pairs("en", "ru", 0, 9)},
            C1(**SHORT),
            checkpoint=tmp_path / "fit",
        )


def test_a_trial_that_failed_is_tried_again(
    world: PlantedMany, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabularies = {code: world.vocabularies[code] for code in ("en", "fi")}
    seeds = {("en", "fi"): world.pairs("en", "fi", 0, 500)}

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a passing fault")

    def aligned() -> ManyLanguages:
        return align_languages(vocabularies, seeds, C1(**SHORT), checkpoint=tmp_path / "state")

    with monkeypatch.context() as patch:
        patch.setattr("bilex.model.jointly.answer_records", fail)
        note = aligned().calibrations["en", "fi"].note
    assert "a passing fault" in note
    assert aligned().provenance.report.trial.ran


def test_many_pairs_of_languages_are_contrasted_a_group_at_a_time(
    world: PlantedMany, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = {("en", code): world.pairs("en", code, 0, 400) for code in ("fi", "fr", "ru")}
    monkeypatch.setattr(c1_module, "_PAIRS_AT_ONCE", 2)
    fit = fit_jointly(world.vocabularies, seeds, C1(**SHORT))
    assert [len(losses) for losses in fit.report.losses] == [4, 4]
    together = {code: map_words(words, fit.maps[code]) for code, words in world.vocabularies.items()}
    space = Space(together["fi"], together["ru"])
    assert share_right(space, world.pairs("fi", "ru", 400, 800)) > 0.7


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("damping", [0.0, 3.0])
def test_two_languages_get_the_advanced_mapping(damping: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 12)) * np.linspace(0.3, 2, 12)
    y = x @ np.linalg.qr(rng.normal(size=(12, 12)))[0] + 0.3 * rng.normal(size=(300, 12))
    x, y = _unit(x), _unit(y)
    pairs = np.stack([np.arange(200)] * 2, axis=1)
    maps = joint_maps({"a": x, "b": y}, {("a", "b"): pairs}, damping)
    known = advanced_maps(x[:200], y[:200], damping=damping)
    ours = (x @ maps["a"]) @ (y @ maps["b"]).T
    closed_form = (x @ known.source.numpy()) @ (y @ known.target.numpy()).T
    np.testing.assert_allclose(ours, closed_form, atol=1e-6)


def test_rotations_of_rotated_copies_are_found_through_others() -> None:
    rng = np.random.default_rng(1)
    meanings = rng.normal(size=(50, 6))
    turns = {name: np.linalg.qr(rng.normal(size=(6, 6)))[0] for name in "abcd"}
    rows = {name: meanings @ turn for name, turn in turns.items()}
    chain = {two: rows[two[0]].T @ rows[two[1]] for two in (("a", "b"), ("b", "c"), ("c", "d"))}
    rotations = rotate_together(list("abcd"), chain)
    for name in "bcd":
        np.testing.assert_allclose(rows[name] @ rotations[name], rows["a"] @ rotations["a"], atol=1e-9)


def test_a_language_that_nothing_connects_is_named() -> None:
    with pytest.raises(BilexError, match="no pairs connect 'ru' with 'en'"):
        check_connected(["en", "fi", "ru"], [("fi", "en")])


def test_held_out_words_of_the_pairs_choose_the_extent_of_rounds(
    world: PlantedMany, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = {("en", code): world.pairs("en", code, 0, 400) for code in ("fi", "fr")}
    three = {code: world.vocabularies[code] for code in ("en", "fi", "fr")}
    auto = C1(device="cpu", iterations=1, passes=2)
    curves = []

    def choose(curve: dict[float, np.ndarray]) -> tuple[float, float]:
        curves.append(curve)
        return 0.2, 0.2

    monkeypatch.setattr(jointly, "choose_extent", choose)
    many = align_languages(three, seeds, auto)
    (curve,) = curves
    assert len(curve[0.0]) == len(curve[1.0]) > 100
    made = many.provenance
    assert made.settings["extent"] == made.report.trial.extent == 0.2 and auto.extent is None
    assert all(part.parts for part in many.calibrations.values())
    by_hand = fit_jointly(three, seeds, C1(device="cpu", iterations=1, passes=2, extent=0.2))
    for code, turn in by_hand.maps.items():
        assert np.array_equal(turn.matrix, many.maps[code].matrix)
