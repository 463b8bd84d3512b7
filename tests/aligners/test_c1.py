"""Stage C1 on planted problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from c1_worlds import World, quick, same_maps

from bilex import C1, BilexError
from bilex.aligners.advanced import AdvancedMapping
from bilex.aligners.c1 import Algorithm1
from bilex.aligners.c1_settings import Round
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors
from recorder import Recorder


def test_a_planted_rotation_is_found_from_few_seeds() -> None:
    world = World(noise=0.8)
    fitted = world.fit(C1(device="cpu"), 50)
    baseline = world.fit(AdvancedMapping(device="cpu"), 50)
    assert fitted.report_.seed_pairs_used == 50
    assert world.precision(fitted, 50) > 0.85
    assert world.precision(fitted, 50) > world.precision(baseline, 50) + 0.1
    clear = World(words=400, noise=0.4)
    assert clear.precision(clear.fit(C1(device="cpu"), 50), 50) > 0.99


def test_the_loss_falls_and_the_dictionary_grows() -> None:
    """With the gradient through the norms, that is: without, it is not quite the gradient of the loss."""
    world, recorder = World(noise=1.0), Recorder()
    fitted = world.fit(quick(updates=30, through_norms=True), progress=recorder)
    history = fitted.report_.history
    assert len(history) == fitted.report_.constants.iterations == 3
    for entry in history:
        assert len(entry.loss) == 30
        assert entry.loss[-1] < entry.loss[0]
        assert entry.full_searches < 0.2 * 2 * 30 * entry.contrasted
    assert history[0].dictionary == 100
    assert history[1].dictionary > 300
    assert history[1].contrasted == history[1].dictionary
    assert [name for name in recorder.tasks if name.startswith("round")] == [
        f"round {i} of 3" for i in (1, 2, 3)
    ]
    assert {"loss", "pairs"} <= set(recorder.metrics[-1])


@pytest.mark.parametrize("threads", [1, 2])
def test_two_runs_are_equal_to_the_bit(threads: int) -> None:
    world = World()
    torch.set_num_threads(threads)
    one, other = (world.fit(quick(iterations=2)) for _ in range(2))
    assert same_maps(one, other)
    assert one.report_.history == other.report_.history


def test_an_interrupted_fit_goes_on_to_the_same_maps(tmp_path: Path) -> None:
    world, folder = World(), tmp_path / "state"
    whole = world.fit(quick())
    interrupted = quick()
    with pytest.raises(KeyboardInterrupt):
        world.fit(interrupted, checkpoint=folder, progress=Recorder(stop_at="round 2 of 3"))
    after_one = world.fit(quick(iterations=1))
    assert same_maps(interrupted, after_one)  # Ctrl-C keeps the last finished round
    recorder = Recorder()
    resumed = world.fit(quick(), checkpoint=folder, progress=recorder)
    assert recorder.messages == [f"{folder}: going on after round 1."]
    assert "round 1 of 3" not in recorder.tasks
    assert same_maps(resumed, whole)
    finished = world.fit(quick(), checkpoint=folder)
    assert same_maps(finished, whole)
    assert finished.report_.history == ()


def other_seeds(world: World) -> tuple[C1, Lexicon]:
    return quick(iterations=1), world.seeds(99)


def other_settings(world: World) -> tuple[C1, Lexicon]:
    return quick(iterations=1, clip=0.2), world.seeds(100)


@pytest.mark.parametrize("change", [other_seeds, other_settings])
def test_a_checkpoint_of_another_problem_is_refused(tmp_path: Path, change: Any) -> None:
    world, folder = World(), tmp_path / "state"
    world.fit(quick(iterations=1, updates=1), checkpoint=folder)
    aligner, lexicon = change(world)
    with pytest.raises(
        BilexError, match="made from other vectors, seeds or settings, or by another version"
    ) as caught:
        world.fit(aligner, lexicon, checkpoint=folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_of_other_vectors_or_damaged_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    World().fit(quick(iterations=1, updates=1), checkpoint=folder)
    with pytest.raises(BilexError, match="other vectors"):
        World(seed=1).fit(quick(iterations=1, updates=1), checkpoint=folder)
    maps = folder / "arrays.safetensors"
    maps.write_bytes(maps.read_bytes()[:-50])
    with pytest.raises(BilexError, match=r"arrays\.safetensors: was changed or damaged .*; remove"):
        World().fit(quick(iterations=1, updates=1), checkpoint=folder)
    (folder / "SHA256SUMS").write_text("{")
    with pytest.raises(BilexError, match=r"SHA256SUMS: is missing or damaged; remove"):
        World().fit(quick(iterations=1, updates=1), checkpoint=folder)


def test_a_checkpoint_of_vectors_that_differ_anywhere_is_refused(tmp_path: Path) -> None:
    """Every second of 2,000 vectors was replaced: all rows decide, not a sample of them."""
    world, folder = World(words=2000), tmp_path / "state"
    world.fit(quick(iterations=1, updates=1), checkpoint=folder)
    world.source.vectors[1::2] += 1
    with pytest.raises(BilexError, match="other vectors"):
        world.fit(quick(iterations=1, updates=1), checkpoint=folder)


def test_a_folder_with_other_things_is_no_place_for_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(BilexError, match=r"other things in it \('notes.txt'\)"):
        World().fit(quick(iterations=1, updates=1), checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("dims", [(40, 30), (30, 40)])
def test_different_dimensions_meet_in_the_smaller(dims: tuple[int, int]) -> None:
    world = World(dim=dims[0], target_dim=dims[1], noise=0.2)
    fitted = world.fit(quick(), 200)
    assert fitted.source_map_.matrix.shape == (dims[0], 30)
    assert fitted.target_map_.matrix.shape == (dims[1], 30)
    assert world.precision(fitted, 200) > 0.9


@pytest.mark.parametrize("sizes", [(300, 900), (900, 300)])
def test_vocabularies_of_different_size(sizes: tuple[int, int]) -> None:
    world = World(words=sizes[0], target_words=sizes[1])
    fitted = world.fit(quick(negative_vocabulary=500), 80)
    assert world.precision(fitted, 80) > 0.95


def test_duplicate_seeds_count_twice() -> None:
    world = World(noise=1.0)
    seeds = world.seeds(60)
    once = world.fit(quick(iterations=1), seeds)
    some_twice = Lexicon([*seeds.pairs, *seeds.pairs[:20]], "seeds.txt")
    twice = world.fit(quick(iterations=1), some_twice)
    assert twice.report_.history[0].contrasted == 80
    assert not same_maps(once, twice)


def test_no_contrast_leaves_self_learned_advanced_mapping() -> None:
    world = World(noise=1.0)
    plain = world.fit(quick(contrastive=False, iterations=1))
    advanced = world.fit(AdvancedMapping(device="cpu"))
    np.testing.assert_allclose(plain.source_map_.matrix, advanced.source_map_.matrix, rtol=1e-5, atol=1e-6)
    assert plain.report_.history == (Round(dictionary=100, contrasted=100),)
    grown = world.fit(quick(contrastive=False))
    assert [entry.loss for entry in grown.report_.history] == [(), (), ()]
    assert grown.report_.history[-1].dictionary > 300


def test_no_self_learning_is_one_round_on_the_seeds() -> None:
    world = World(noise=1.0)
    alone = world.fit(quick(self_learning=False))
    assert [entry.dictionary for entry in alone.report_.history] == [100]
    assert same_maps(alone, world.fit(quick(iterations=1)))


@pytest.mark.parametrize(
    "option",
    [{"through_norms": True}, {"full_csls": True}, {"negative_vocabulary": 150}, {"temperature": 0.5}],
    ids=lambda option: next(iter(option)),
)
def test_options_change_the_fit_and_not_its_quality(option: dict[str, Any]) -> None:
    world = World(noise=0.8)
    plain, changed = world.fit(quick(iterations=2)), world.fit(quick(iterations=2, **option))
    assert not same_maps(plain, changed)
    assert world.precision(changed, 100) > world.precision(plain, 100) - 0.03


def test_negatives_of_the_whole_vocabulary() -> None:
    """0 means all words: the same as a number above both vocabularies, not the same as fewer."""
    world = World(noise=0.8)
    whole, above, fewer = (world.fit(quick(iterations=1, negative_vocabulary=n)) for n in (0, 100_000, 200))
    assert same_maps(whole, above)
    assert not same_maps(whole, fewer)


def test_masking_known_translations_matters_only_where_a_word_has_several() -> None:
    world = World(noise=0.8)
    one_each = world.seeds(100)
    several = Lexicon([*one_each.pairs, *((f"s{i}", f"t{i + 1}") for i in range(60))], "seeds.txt")
    for seeds, same in ((one_each, True), (several, False)):
        plain, masked = (world.fit(quick(iterations=1, mask_known=mask), seeds) for mask in (False, True))
        assert same_maps(plain, masked) is same


def test_contrast_on_the_seeds_alone() -> None:
    history = World().fit(quick(contrast_on_augmented=False, iterations=2)).report_.history
    assert [entry.contrasted for entry in history] == [100, 100]
    assert history[1].dictionary > 100


@pytest.mark.parametrize(("enough", "updates"), [(0, 20), (100, 20), (400, 5), (10**6, 1)])
def test_a_first_round_that_contrasts_few_pairs_makes_fewer_updates(enough: int, updates: int) -> None:
    settings = quick(iterations=2, passes=2, updates=20, decay=1.0, enough_pairs=enough)
    history = World().fit(settings).report_.history
    assert history[0].contrasted == 100
    assert [len(part.loss) for part in history] == [updates, 20, 20, 20]


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_a_snapshot_is_what_a_round_of_that_extent_gives(share: float) -> None:
    settings = {"preset": "best", "passes": 2, "iterations": 1, "extent": share, "device": "cpu"}
    world = World()
    whole, short = (world.fit(C1(**settings, snapshots=kept)) for kept in (True, False))
    assert list(whole.snapshots_) == sorted(whole.snapshots_) and not short.snapshots_
    for kept, made in zip(whole.snapshots_[share], (short.source_map_, short.target_map_), strict=True):
        assert np.array_equal(kept.matrix, made.matrix)
    assert np.array_equal(whole.snapshots_[1.0][0].matrix, whole.source_map_.matrix)
    assert len(whole.report_.history[-1].loss) > len(short.report_.history[-1].loss) or share == 1


def test_warm_up_comes_before_the_first_round() -> None:
    world, recorder = World(noise=0.8), Recorder()
    warmed = world.fit(quick(iterations=1, warm_up=2), progress=recorder)
    assert recorder.tasks[0] == "warming up"
    assert warmed.report_.history[0].dictionary > 300


def test_a_fit_does_not_change_its_settings() -> None:
    aligner = quick(preset="careful", passes=2, start="seeds")
    before = aligner.settings()
    World().fit(aligner)
    assert aligner.settings() == before
    assert aligner.report_.passes == 2


def test_passes_and_starts_serve_any_number_of_seeds() -> None:
    world = World(words=700)
    twice = world.fit(quick(iterations=1, passes=2, anchors=150), 400)
    assert [part.dictionary for part in twice.report_.history] == [400, 550]
    assert twice.report_.anchors == 550 and twice.report_.passes == 2
    joined = world.fit(quick(iterations=1, start="unsupervised"), 400)
    assert set(joined.report_.starts) <= {"seeds", "unsupervised"}


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_vectors_that_stay_in_their_file_are_fitted_like_those_in_memory(tmp_path: Path, dtype: str) -> None:
    world = World(noise=0.8)
    stored, decoded = [], []
    for side, words in (("source", world.source), ("target", world.target)):
        words.save(tmp_path / side, dtype=dtype)
        stored.append(WordVectors.load(tmp_path / side))
        decoded.append(WordVectors(words.index_to_key, np.asarray(stored[-1].vectors)))
    seeds = Lexicon(list(zip(world.source.index_to_key[:100], world.target.index_to_key[:100], strict=True)))
    of_files, of_memory = (quick(updates=5).fit(*sides, seeds) for sides in (stored, decoded))
    assert same_maps(of_files, of_memory)


# What C1 makes of pairs that people have rejected.


WORDS, DIM, PAIRS, NEGATIVES = 200, 12, 30, 6


def test_rejected_pairs_are_never_induced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word from anybody these pairs are found; rejected, they are in no dictionary of any round."""
    world = World()
    learned: list[set[tuple[int, int]]] = []

    def listening(self: Algorithm1, dictionary: dict[Any, np.ndarray]) -> Any:
        learned.append(set(map(tuple, dictionary["source", "target"].tolist())))
        return plain(self, dictionary)

    plain = Algorithm1.advanced_mapping
    monkeypatch.setattr(Algorithm1, "advanced_mapping", listening)
    world.fit(quick(), 100)
    wrong = sorted(set.union(*learned) - {(i, i) for i in range(100)})[::20]
    assert len(wrong) > 5
    learned.clear()
    rejected = tuple((f"s{a}", f"t{b}") for a, b in wrong)
    world.fit(quick(), Lexicon(world.seeds(100).pairs, "seeds", rejected=rejected))
    assert len(learned) > 2 and not set(wrong) & set.union(*learned)


def test_a_rejected_pair_is_pushed_apart() -> None:
    """A rejected pair pushes apart: that word's cosine with it falls."""
    world = World(noise=1.0)

    def cosine(rejected: tuple[tuple[str, str], ...]) -> float:
        seeds = Lexicon(world.seeds(60).pairs, "seeds", rejected=rejected)
        fitted = world.fit(quick(updates=40, iterations=1), seeds)
        x, y = fitted.source_map_(world.source.vectors[:1]), fitted.target_map_(world.target.vectors)
        return float((x @ y.T)[0, place])

    place = 0
    plain = world.fit(quick(updates=40, iterations=1), 60)
    near = plain.source_map_(world.source.vectors[:1]) @ plain.target_map_(world.target.vectors).T
    # A word far down the list is no hard negative of the pair: only the rejection makes it one.
    place = int(np.argsort(-near[0])[450])
    assert cosine((("s0", f"t{place}"),)) < cosine(())


def test_nothing_changes_where_nothing_is_rejected() -> None:
    world = World()
    other = (("s500", "nowhere"),)
    assert same_maps(
        world.fit(quick(iterations=1), 100),
        world.fit(quick(iterations=1), Lexicon(world.seeds(100).pairs, "seeds", rejected=other)),
    )


def test_a_checkpoint_of_other_rejections_is_not_resumed(tmp_path: Any) -> None:
    from bilex import BilexError

    world = World()
    world.fit(quick(iterations=1), 100, checkpoint=tmp_path / "state")
    with pytest.raises(BilexError, match="other vectors, seeds or settings"):
        world.fit(
            quick(iterations=1),
            Lexicon(world.seeds(100).pairs, "seeds", rejected=(("s1", "t2"),)),
            checkpoint=tmp_path / "state",
        )
