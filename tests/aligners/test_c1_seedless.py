"""Stage C1 without seeds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c1_worlds import World, quick, same_maps

from bilex import BilexError
from bilex.aligners import Aligner, c1_settings
from bilex.aligners import starts as starting
from bilex.aligners.c1 import Algorithm1
from bilex.aligners.starts import COLLAPSED
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from recorder import Recorder


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """VecMap's loop waits for fewer rounds without progress, for the sake of quick tests."""
    monkeypatch.setattr(starting, "_PATIENCE", 3)


def respelt(world: World, shared: int, spelling: str = "w{}") -> World:
    """Give some words in the middle of both vocabularies one spelling."""
    for side, letter in (("source", "s"), ("target", "t")):
        vectors: WordVectors = getattr(world, side)
        words = [
            spelling.format(i) if 200 <= i < 200 + shared else f"{letter}{i}" for i in range(len(vectors))
        ]
        setattr(world, side, WordVectors(words, vectors.vectors))
    return world


def fit(world: World, aligner: Aligner, **more: Any) -> Any:
    return aligner.fit(world.source, world.target, None, **more)


@pytest.mark.parametrize(("spelling", "start"), [("w{}", "identical"), ("{}", "numerals")])
def test_shared_words_or_numerals_carry_a_fit(spelling: str, start: str) -> None:
    world, recorder = respelt(World(words=500), 60, spelling), Recorder()
    fitted = fit(world, quick(start=start), progress=recorder)
    assert world.precision(fitted, 0) > 0.9
    assert fitted.report_.start == start
    assert set(fitted.report_.starts) == {start}
    assert fitted.report_.starts[start].recovered > 0.5
    assert any(message.startswith(f"No seeds: starting from {start}") for message in recorder.messages)
    assert fitted.report_.history[0].contrasted == fitted.report_.history[0].dictionary > 100


def test_auto_tries_what_the_vocabularies_allow_and_takes_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_CLEAR", 2.0)
    world = respelt(World(words=500), 60)
    fitted = fit(world, quick(iterations=1))
    starts = fitted.report_.starts
    assert set(starts) == {"identical", "unsupervised"}  # no numerals are shared, nothing sounds alike
    assert fitted.report_.start == max(
        starts, key=lambda name: (starts[name].recovered, starts[name].similarity)
    )
    assert world.precision(fitted, 0) > 0.9


def test_a_start_that_succeeds_clearly_needs_no_rival() -> None:
    fitted = fit(respelt(World(words=500), 60), quick(iterations=1))
    assert set(fitted.report_.starts) == {"identical"}
    assert fitted.report_.starts["identical"].recovered >= 0.5


def test_the_shapes_of_the_spaces_alone_can_do() -> None:
    """Heavy tails and unequal directions make the words' neighbourhoods differ, as those of real words do."""
    rng = np.random.default_rng(0)
    x = rng.standard_t(4, size=(400, 12)) * np.linspace(1, 3, 12)
    y = x @ np.linalg.qr(rng.normal(size=(12, 12)))[0] + rng.normal(scale=0.01, size=x.shape)
    world = World(words=400, dim=12)
    world.source = WordVectors(world.source.index_to_key, x.astype(np.float32))
    world.target = WordVectors(world.target.index_to_key, y.astype(np.float32))
    fitted = fit(world, quick())
    assert fitted.report_.start == "unsupervised"
    assert world.precision(fitted, 0) > 0.95


def test_unrelated_languages_collapse_and_nothing_is_handed_out() -> None:
    world = World(words=400)
    other = np.random.default_rng(9).normal(size=(400, 20)).astype(np.float32)
    world.target = WordVectors(world.target.index_to_key, other)
    aligner = quick()
    with pytest.raises(
        BilexError, match=r"could not be brought together .*unsupervised \d+%.*--seeds"
    ) as caught:
        fit(world, aligner)
    assert "\n" not in str(caught.value)
    assert not hasattr(aligner, "source_map_")
    assert all(int(share) < 100 * COLLAPSED for share in re.findall(r"(\d+)%", str(caught.value)))


def test_a_start_that_the_vocabularies_do_not_allow() -> None:
    with pytest.raises(
        BilexError, match=r"start 'identical' needs at least 20 such words .* share 5 identical"
    ):
        fit(respelt(World(), 5), quick(start="identical"))
    with pytest.raises(
        BilexError, match="start 'magic' of c1 is not known; use auto, seeds, joined, identical"
    ):
        fit(World(), quick(start="magic"))


def test_an_empty_lexicon_is_no_seeds() -> None:
    world = respelt(World(words=500), 60)
    none, empty = (
        quick(iterations=1, start="identical").fit(world.source, world.target, lexicon)
        for lexicon in (None, Lexicon([]))
    )
    assert same_maps(none, empty)


def test_resuming_without_seeds_needs_no_new_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = respelt(World(words=500), 60)
    settings = {"start": "identical", "iterations": 2, "warm_up": 1, "passes": 3, "anchors": 100}
    whole = fit(world, quick(**settings))
    for stopped in ("round 2 of 6", "round 3 of 6", "round 4 of 6", "round 6 of 6"):
        folder = tmp_path / stopped[6]
        with pytest.raises(KeyboardInterrupt):
            fit(world, quick(**settings), checkpoint=folder, progress=Recorder(stopped))
        with monkeypatch.context() as patched:
            patched.setattr(starting, "first_dictionary", lambda *_, **__: pytest.fail("not wanted"))
            resumed = fit(world, quick(**settings), checkpoint=folder)
        assert same_maps(resumed, whole)
        assert resumed.report_.anchors == whole.report_.anchors > 0
        again = fit(world, quick(**settings), checkpoint=folder)  # nothing is left to do
        assert same_maps(again, whole) and again.report_.anchors == whole.report_.anchors


def test_further_passes_take_what_the_earlier_have_found_as_seeds() -> None:
    world = respelt(World(words=500), 60)
    settings = {"start": "identical", "iterations": 2}
    thrice, once = fit(world, quick(**settings, passes=3, anchors=100)), fit(world, quick(**settings))
    assert (len(thrice.report_.history), len(once.report_.history)) == (6, 2)
    assert thrice.report_.history[:2] == once.report_.history
    sizes = [part.dictionary for part in thrice.report_.history]
    assert sizes[2] == 60 and thrice.report_.anchors == sizes[4] == 100
    assert sizes[3] > 60 and sizes[5] > 100 and once.report_.anchors == 0
    assert world.precision(thrice, 0) > 0.9


def test_the_seeds_stay_in_further_passes() -> None:
    world = respelt(World(words=500), 60)
    fitted = quick(iterations=1, passes=3, anchors=30).fit(world.source, world.target, world.seeds(8))
    assert fitted.report_.start is not None and fitted.report_.anchors == 38


def test_rejected_pairs_are_no_seeds_of_further_passes() -> None:
    world = respelt(World(words=500), 60)
    settings = {"start": "identical", "iterations": 1, "passes": 3, "anchors": 500}
    words = list(zip(world.source.index_to_key, world.target.index_to_key, strict=True))
    free, bound = (
        quick(**settings).fit(world.source, world.target, Lexicon([], "none", rejected=rejected))
        for rejected in ((), words[:400])
    )
    assert bound.report_.anchors < free.report_.anchors - 200


def test_identical_spellings_help_few_good_seeds_and_stay_evidence_in_later_passes() -> None:
    """Of 60 shared spellings five mean something else; the maps do not confirm these."""
    world = respelt(World(words=500), 60)
    words = list(world.target.index_to_key)
    words[200:205] = [*words[201:205], words[200]]
    world.target = WordVectors(words, world.target.vectors)
    settings = {"start": "seeds", "iterations": 1, "passes": 2, "anchors": 1}
    alone = quick(**settings).fit(world.source, world.target, world.seeds(30))
    helped = quick(**settings, spelling=True).fit(world.source, world.target, world.seeds(30))
    assert helped.report_.history[0].dictionary == 90 and alone.report_.history[0].dictionary == 30
    assert alone.report_.anchors == 31 and 30 + 55 < helped.report_.anchors < 30 + 60
    assert world.precision(helped, 30) >= world.precision(alone, 30)


def sounding_alike(world: World, shared: int) -> World:
    """Give some words in the middle one sound in two scripts."""
    consonants = (
        ("б", "b"),
        ("д", "d"),
        ("г", "g"),
        ("л", "l"),
        ("м", "m"),
        ("н", "n"),
        ("р", "r"),
        ("т", "t"),
    )
    for place, side in enumerate(("source", "target")):
        vectors: WordVectors = getattr(world, side)
        vowel, letter = ("а", "ж") if place == 0 else ("a", "z")
        words = []
        for row in range(len(vectors)):
            sounds = [consonants[row // 8**power % 8][place] for power in range(3)]
            alike = 200 <= row < 200 + shared
            words.append(vowel.join(sounds) if alike else letter * (1 + row))
        setattr(world, side, WordVectors(words, vectors.vectors))
    return world


def test_words_that_sound_alike_in_two_scripts_carry_a_fit() -> None:
    world = sounding_alike(World(words=500), 60)
    fitted = fit(world, quick())
    assert set(fitted.report_.starts) <= {"romanised", "unsupervised"}
    assert fitted.report_.start == "romanised"
    assert world.precision(fitted, 0) > 0.9


def with_numerals(world: World, shared: int) -> World:
    """Give the first words of both vocabularies one spelling in digits."""
    for side in ("source", "target"):
        vectors: WordVectors = getattr(world, side)
        words = [str(1000 + row) if row < shared else word for row, word in enumerate(vectors.index_to_key)]
        setattr(world, side, WordVectors(words, vectors.vectors))
    return world


def test_two_kinds_of_shared_words_are_also_tried_together() -> None:
    world = with_numerals(sounding_alike(World(words=500), 60), 40)
    fitted = fit(world, quick(start="shared"))
    assert set(fitted.report_.starts) == {"shared"}
    assert fitted.report_.start == "shared"
    assert world.precision(fitted, 0) > 0.9


def test_starts_are_looked_for_among_frequent_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare words that are spelled alike and mean other things do not spoil the start."""
    monkeypatch.setattr(starting, "_START_WORDS", 300)
    world = respelt(World(words=500), 60)
    words, others = (list(side.index_to_key) for side in (world.source, world.target))
    for row in range(300, 500):
        words[row], others[row] = f"rare{row}", f"rare{800 - row if row > 300 else row}"
    world.source = WordVectors(words, world.source.vectors)
    world.target = WordVectors(others, world.target.vectors)
    fitted = fit(world, quick(start="identical"))
    assert fitted.report_.starts["identical"].recovered > 0.5
    assert world.precision(fitted, 0) > 0.9


def test_few_seeds_are_joined_by_words_spelled_alike() -> None:
    """Eight seeds in twenty dimensions are too few alone; sixty shared spellings decide."""
    world = respelt(World(words=500), 60)
    recorder = Recorder()
    fitted = quick().fit(world.source, world.target, world.seeds(8), progress=recorder)
    assert "identical" in fitted.report_.starts
    assert world.precision(fitted, 8) > 0.9
    assert any(message.startswith("8 seeds: starting from ") for message in recorder.messages)


def test_few_seeds_stay_alone_where_no_start_comes_out_right() -> None:
    world = respelt(World(words=400), 30)
    other = np.random.default_rng(9).normal(size=(400, 20)).astype(np.float32)
    world.target = WordVectors(world.target.index_to_key, other)
    recorder = Recorder()
    fitted = quick().fit(world.source, world.target, world.seeds(8), progress=recorder)
    assert fitted.report_.start is None
    assert any("no other start helps" in message for message in recorder.messages)


def test_early_passes_search_among_frequent_words_and_still_learn_from_rare_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(c1_settings, "_EARLY_WORDS", 300)
    world = respelt(World(words=500), 60)
    seen: list[tuple[int, int]] = []
    original = Algorithm1.objective

    def spy(self: Algorithm1, languages: tuple[str, str], pairs: np.ndarray) -> Any:
        made = original(self, languages, pairs)
        seen.append((made.source.keys, int(pairs[:, 0].max())))
        return made

    monkeypatch.setattr(Algorithm1, "objective", spy)
    settings = {"iterations": 1, "passes": 3, "anchors": 60}
    fitted = fit(world, quick(**settings, start="identical"))
    assert [keys for keys, _ in seen] == [300, 300, 500]
    assert all(row < 300 for _, row in seen[:2])
    assert world.precision(fitted, 0) > 0.9
    seen.clear()
    rare = Lexicon([(world.source.index_to_key[450], world.target.index_to_key[450])])
    quick(**settings).fit(world.source, world.target, world.seeds(8) + rare)
    assert [keys for keys, _ in seen] == [300, 300, 500]
    assert all(row == 450 for _, row in seen[:2])
