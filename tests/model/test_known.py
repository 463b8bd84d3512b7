"""Known translations come first, rejected ones never, and the model's own opinion can be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilex.evaluation import evaluate
from bilex.lexicon import Lexicon
from bilex.model import Translator
from planted import Planted


@pytest.fixture(scope="module")
def corrected(translator: Translator, world: Planted) -> Translator:
    """The shared translator; its seeds give word 0 two translations, and reject two of its answers."""
    source, target = world.source.index_to_key, world.target.index_to_key
    own = translator.translate(source[700], 3, model_only=True)
    seeds = Lexicon(
        [*world.pairs(0, 600).pairs, (source[0], target[900])],
        rejected=((source[700], own[0].word), (source[700], own[2].word)),
    )
    return translator.with_parts(seeds=seeds)


@pytest.mark.parametrize("method", ["csls", "nn"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_every_seed_word_is_answered_with_its_seed(
    translator: Translator, world: Planted, direction: str, method: str
) -> None:
    pairs = world.pairs(0, 600) if direction == "forward" else world.pairs(0, 600).swapped()
    answers = translator.translate([a for a, _ in pairs.pairs], 4, direction=direction, retrieval=method)
    for answer, (_, gold) in zip(answers, pairs.pairs, strict=True):
        assert answer[0].word == gold and answer[0].known and answer[0].confidence is None
        assert not any(found.known for found in answer.translations[1:])
        assert len({found.word for found in answer}) == 4


def test_the_rest_is_the_models_own_ranking(translator: Translator, world: Planted) -> None:
    words = world.source.index_to_key[:80]
    for mixed, own in zip(
        translator.translate(words, 4), translator.translate(words, 5, model_only=True), strict=True
    ):
        others = [found for found in own if found.word != mixed[0].word]
        assert [found.word for found in mixed.translations[1:]] == [found.word for found in others[:3]]
        assert [found.confidence for found in mixed.translations[1:]] == pytest.approx(
            [found.confidence for found in others[:3]]
        )
        found_itself = [found for found in own if found.word == mixed[0].word]
        assert mixed[0].score == pytest.approx(found_itself[0].score, abs=1e-5) if found_itself else True


def test_words_without_a_seed_are_answered_as_ever(translator: Translator, world: Planted) -> None:
    words = world.source.index_to_key[700:720]
    assert translator.translate(words) == translator.translate(words, model_only=True)


def test_several_known_translations_and_rejected_ones(corrected: Translator, world: Planted) -> None:
    source, target = world.source.index_to_key, world.target.index_to_key
    both = corrected.translate(source[0], 3)
    assert {found.word for found in both if found.known} == {target[0], target[900]}
    assert [found.known for found in both] == [True, True, False]
    own = corrected.translate(source[700], 5, model_only=True)
    left = corrected.translate(source[700], 3)
    assert [found.word for found in left] == [own[place].word for place in (1, 3, 4)]


def test_exports_hold_known_pairs_first_and_no_rejected_ones(corrected: Translator) -> None:
    found = corrected.lexicon(k=3)
    pairs = {(entry.source, entry.target) for entry in found}
    assert not pairs & set(corrected.seeds.rejected)
    assert set(corrected.seeds.pairs) <= pairs
    assert {(e.source, e.target) for e in found if e.known} == set(corrected.seeds.pairs)
    own = corrected.lexicon(k=3, model_only=True)
    assert {(e.source, e.target) for e in own} & set(corrected.seeds.rejected)
    assert not any(entry.known for entry in own)


def test_fewer_answers_where_everything_else_is_rejected(world: Planted) -> None:
    small = Planted(world.source.head(5), world.target.head(5))
    source, target = small.source.index_to_key, small.target.index_to_key
    seeds = Lexicon([*small.pairs(0, 5).pairs], rejected=tuple((source[0], word) for word in target[2:]))
    made = Translator("procrustes").fit(small.source, small.target, seeds)
    assert {found.word for found in made.translate(source[0], 5)} == set(target[:2])
    assert sum(entry.source == source[0] for entry in made.lexicon(k=5)) == 2


def test_they_are_saved_with_the_model(corrected: Translator, world: Planted, tmp_path: Path) -> None:
    corrected.save(tmp_path / "model")
    loaded = Translator.load(tmp_path / "model")
    assert loaded.seeds.rejected == corrected.seeds.rejected
    words = [world.source.index_to_key[row] for row in (0, 5, 700)]
    assert loaded.translate(words) == corrected.translate(words)


def test_evaluation_measures_the_models_own_opinion(corrected: Translator, world: Planted) -> None:
    """Seeds as the test dictionary: the model finds most, not all, and the score says so."""
    found = evaluate(corrected.space, world.pairs(0, 600), bootstrap=0).forward
    own = corrected.translate(world.source.index_to_key[:600], 1, model_only=True)
    right = sum(a[0].word == b for a, (_, b) in zip(own, world.pairs(0, 600).pairs, strict=True))
    assert found.metrics["csls"]["p@1"] == pytest.approx(right / 600) and right < 600
