"""Decisions of people: known at once, learned from only where that helps, and undone exactly."""

from __future__ import annotations

import numpy as np
import pytest

from bilex import BilexError, WordVectors
from bilex.aligners.maps import Linear, Map, Unit
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.refine import refits
from bilex.model.space import Space
from planted import planted

WORLD = planted(words=700, dim=24, noise=0.7, seed=3)
FREE = WORLD.pairs(580, 700)


@pytest.fixture
def model() -> Translator:
    return Translator("procrustes").fit(WORLD.source, WORLD.target, WORLD.pairs(0, 60), calibrate=False)


def first_answers(model: Translator) -> list[str]:
    return [answer[0].word for answer in model.translate(WORLD.source.index_to_key, 1)]


def test_decided_pairs_are_respected(model: Translator) -> None:
    (one, right), (other, _) = WORLD.pairs(100, 102).pairs
    wrong = model.translate(other, 1)[0].word
    report = model.refine([(one, right)], [(other, wrong)])
    assert (report.accepted, report.rejected) == (1, 1)
    assert model.translate(one, 1)[0].word == right and model.translate(one, 1)[0].known
    assert wrong not in [found.word for found in model.translate(other, 20)]
    assert (one, right) in model.seeds.pairs and model.provenance.retrained.accepted == 1


def test_decisions_help_words_that_nobody_decided(model: Translator) -> None:
    before = model.evaluate(FREE, bootstrap=0)
    report = model.refine(WORLD.pairs(60, 580).pairs)
    after = model.evaluate(FREE, bootstrap=0)
    assert report.refitted and report.held_out[0] == round(520 / 3) and report.held_out[1] > 0
    assert after.csls.mrr + after.backward.csls.mrr > before.csls.mrr + before.backward.csls.mrr
    assert 0 < report.changed <= 300 and f"{report.changed} other words" in report.note


def test_few_decisions_change_no_other_word(model: Translator) -> None:
    before = dict(zip(WORLD.source.index_to_key, first_answers(model), strict=True))
    decided = WORLD.pairs(60, 200).pairs
    report = model.refine(decided)
    assert not report.refitted and report.changed == 0
    assert "from 500 newly accepted words on, and there are 140" in report.note
    after = dict(zip(WORLD.source.index_to_key, first_answers(model), strict=True))
    taken = {answer for _, answer in decided}
    assert all(after[a] == b for a, b in decided)
    changed = [word for word in before if word not in dict(decided) and after[word] != before[word]]
    assert all(before[word] in taken for word in changed), "only a word whose answer was decided may change"


def test_wrong_decisions_do_little_harm_to_other_words(model: Translator) -> None:
    """Pairs of words that have nothing to do with each other are known from then on, and hardly more."""
    before, accuracy = first_answers(model), model.evaluate(FREE, bootstrap=0).csls.p_at_1
    shuffled = np.random.default_rng(0).permutation([b for _, b in WORLD.pairs(100, 160).pairs])
    decided = dict(zip([a for a, _ in WORLD.pairs(100, 160).pairs], shuffled.tolist(), strict=True))
    report = model.refine(list(decided.items()))
    after = dict(zip(WORLD.source.index_to_key, first_answers(model), strict=True))
    assert all(after[word] == answer for word, answer in decided.items())
    changed = [w for w, old in zip(after, before, strict=True) if w not in decided and after[w] != old]
    assert len(changed) <= report.changed + 1 <= 20
    assert model.evaluate(FREE, bootstrap=0).csls.p_at_1 >= accuracy - 0.01


def test_undo_is_exact(model: Translator) -> None:
    before = dict(vars(model))
    rows, answers = np.array(model.space.source.vectors), first_answers(model)
    model.refine(WORLD.pairs(60, 580).pairs)
    assert not np.array_equal(rows, model.space.source.vectors)
    model.undo_refine()
    assert np.array_equal(rows, model.space.source.vectors) and first_answers(model) == answers
    assert model.seeds is before["seeds"] and model.space is before["space"]
    with pytest.raises(BilexError, match="no refinement"):
        model.undo_refine()


def test_a_refined_model_is_saved_and_its_maps_lead_into_its_space(model: Translator, tmp_path) -> None:
    assert model.refine(WORLD.pairs(60, 580).pairs).refitted
    model.save(tmp_path / "model")
    loaded = Translator.load(tmp_path / "model", device="cpu")
    assert first_answers(loaded) == first_answers(model)
    for one in (model, loaded):
        for side, given, there in (
            ("source", WORLD.source, one.space.source),
            ("target", WORLD.target, one.space.target),
        ):
            mapped = one.map_vectors(given, side).vectors
            assert np.abs(mapped - np.asarray(there.vectors)).max() < 1e-4


def test_nothing_new_changes_nothing(model: Translator) -> None:
    rows = np.array(model.space.source.vectors)
    again = model.refine(WORLD.pairs(0, 60).pairs)
    unknown = model.refine([("unheard", "of")])
    assert not again.refitted and again.accepted == 0 and not unknown.refitted and unknown.accepted == 1
    assert unknown.missing == (("unheard", "of"),) and not again.missing
    assert np.array_equal(rows, model.space.source.vectors)


def test_words_held_out_are_known_but_teach_nothing(model: Translator) -> None:
    pairs = WORLD.pairs(60, 580).pairs
    report = model.refine(pairs, held_out={a for a, _ in pairs})
    assert not report.refitted
    assert all(model.translate(a, 1)[0].word == b for a, b in Lexicon(pairs[:20]).pairs)


LARGE = planted(words=1500, dim=24, noise=0.9, seed=5)


def test_many_decisions_are_seeds_of_a_new_fit(tmp_path) -> None:
    given = LARGE.pairs(0, 60)
    model = Translator("procrustes").fit(LARGE.source, LARGE.target, given, calibrate=False)
    free, decided = LARGE.pairs(1000, 1500), LARGE.pairs(60, 800)
    before, rows = model.evaluate(free, bootstrap=0), np.array(model.space.source.vectors)
    report = model.refine(decided.pairs)
    assert report.refitted and "fitted again" in report.note
    assert report.held_out[0] == round(740 / 3) and report.held_out[1] > 0
    by_hand = Translator("procrustes").fit(
        LARGE.source, LARGE.target, Lexicon([*given.pairs, *decided.pairs]), calibrate=False
    )
    for side in ("source", "target"):
        mine, fresh = (getattr(one.space, side).vectors for one in (model, by_hand))
        assert np.allclose(mine, fresh, atol=1e-4)
    assert model.evaluate(free, bootstrap=0).csls.mrr > before.csls.mrr
    model.save(tmp_path / "model")
    loaded = Translator.load(tmp_path / "model", device="cpu")
    assert np.allclose(
        loaded.map_vectors(LARGE.source, "source").vectors, model.space.source.vectors, atol=1e-5
    )
    model.undo_refine()
    assert np.array_equal(rows, model.space.source.vectors)


def test_a_new_fit_that_held_out_decisions_lose_by_is_not_taken() -> None:
    """Pairs of words that have nothing to do with each other teach nothing about other words."""
    model = Translator("procrustes").fit(LARGE.source, LARGE.target, LARGE.pairs(0, 200), calibrate=False)
    right, shuffled = LARGE.pairs(200, 700).pairs, LARGE.pairs(700, 1300)
    answers = np.random.default_rng(0).permutation([b for _, b in shuffled.pairs]).tolist()
    wrong = list(zip([a for a, _ in shuffled.pairs], answers, strict=True))
    before = model.evaluate(LARGE.pairs(1300, 1500), bootstrap=0).csls.p_at_1
    report = model.refine([*right[:100], *wrong])
    assert not report.refitted
    assert model.evaluate(LARGE.pairs(1300, 1500), bootstrap=0).csls.p_at_1 >= before - 0.01


@pytest.mark.parametrize(("weakest", "refitted"), [(5e-5, True), (1e-8, False), (0, False)])
def test_a_map_is_inverted_as_far_as_its_precision_allows(
    model: Translator, weakest: float, refitted: bool
) -> None:
    """C1's maps have conditions of 10,000 and more, and float32 brings the vectors back all the same."""
    scales = np.append(np.linspace(1, 0.5, 23), weakest)
    stretched = Map([Unit(), Linear(model.source_map.matrix @ np.diag(scales)), Unit()])
    rows = WordVectors(WORLD.source.index_to_key, stretched(WORLD.source.vectors))
    changed = model.with_parts(space=Space(rows, model.space.target), source_map=stretched)
    assert refits(changed, 600) == refitted
