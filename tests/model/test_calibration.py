"""Confidences that mean what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bilex.aligners.procrustes import Procrustes
from bilex.fit.calibration import (
    PRIORS,
    AnswerRecords,
    Answers,
    Calibration,
    Candidates,
    Logistic,
    _retrieve,
    answer_records,
    error_by_chance,
    expected_calibration_error,
    features,
    learn_confidences,
    word_features,
)
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.space import Direction, Retrieval, Space
from planted import Planted, planted


def falling(rng: np.random.Generator, queries: int, k: int) -> np.ndarray:
    return -np.sort(-rng.normal(size=(queries, k)), axis=1)


def candidates(
    scores: np.ndarray,
    first: np.ndarray | None = None,
    query: np.ndarray | None = None,
    density: np.ndarray | None = None,
) -> Candidates:
    """Candidates with these scores; the answers are words 0, 1, ... unless `first` says otherwise."""
    first = np.arange(len(scores)) if first is None else first
    query = np.zeros(len(scores), np.int64) if query is None else query
    density = np.zeros(len(scores), np.float32) if density is None else density
    return Candidates(scores, np.repeat(first[:, None], scores.shape[1], 1), query, density)


def stated(model: Logistic, scores: np.ndarray) -> np.ndarray:
    return model(candidates(scores))


def answered(scores: np.ndarray, right: np.ndarray, **words: np.ndarray) -> Answers:
    return Answers(candidates(scores, **words), right, candidates(scores[:0]))


def test_features_by_hand() -> None:
    assert features([[3.0, 1.0, 0.5]])[0].tolist() == [[3, 2, 0], [1, 0, -2], [0.5, 0, -2.5]]
    assert features([[3.0]])[0].tolist() == [[3, 0, 0]]
    first, query = np.array([0, 191_999]), np.array([50, 100_000])
    of_words = word_features(candidates(np.zeros((2, 1)), first, query, np.array([0.5, 0.7])))
    assert of_words.tolist() == [[0.5, np.log(3050), 0.0], [0.7, np.log(23_000), np.log(4)]]


def test_the_fit_recovers_a_planted_model() -> None:
    rng = np.random.default_rng(0)
    truth = Logistic(-1.0, (1.5, 2.0, 0.7))
    scores = falling(rng, 20_000, 3)
    right = rng.random(scores.shape) < stated(truth, scores)
    fitted = Logistic.fit(answered(scores, right))
    assert np.abs(stated(fitted, scores) - stated(truth, scores)).mean() < 0.01


def test_the_fit_is_a_minimum_of_the_likelihood_in_which_later_candidates_count_little() -> None:
    rng = np.random.default_rng(1)
    scores = falling(rng, 500, 2)
    right = rng.random(scores.shape) < stated(Logistic(0.2, (1.0, 1.0, 1.0)), scores)

    def loss(model: Logistic) -> float:
        p = stated(model, scores)
        return float(-([1.0, 0.05] * np.where(right, np.log(p), np.log(1 - p))).sum())

    best = Logistic.fit(answered(scores, right))
    for direction in np.eye(4):
        for step in (-0.3, 0.3):
            bias, *slopes = np.array([best.bias, *best.slopes]) + step * direction
            assert loss(Logistic(bias, tuple(np.maximum(slopes, 0)))) > loss(best) - 0.2


def test_slopes_are_never_negative_even_if_the_data_say_so() -> None:
    rng = np.random.default_rng(2)
    scores = falling(rng, 400, 2)
    truth = Logistic(0.0, (-3.0, 0.0, 0.0))
    right = rng.random(scores.shape) < stated(truth, scores)
    assert min(Logistic.fit(answered(scores, right)).slopes) >= 0


def test_all_right_and_all_wrong_stay_finite() -> None:
    scores = falling(np.random.default_rng(3), 50, 2)
    right = np.ones(scores.shape, bool)
    assert stated(Logistic.fit(answered(scores, right)), scores)[:, 0].min() > 0.9
    assert stated(Logistic.fit(answered(scores, ~right)), scores)[:, 0].max() < 0.1


def records(truth: Logistic, words: int) -> AnswerRecords:
    """Answers to held-out words of which `truth` says how many are right."""
    rng = np.random.default_rng(6)
    scores, first = 0.25 * falling(rng, words, 5), rng.integers(0, 5000, words)
    asked = candidates(scores, first, rng.integers(0, 5000, words), rng.uniform(0.4, 1.0, words))
    answers = Answers(asked, rng.random(scores.shape) < truth(asked), asked)
    return {("forward", "csls"): answers, ("backward", "csls"): answers}


def test_the_prior_counts_less_the_more_held_out_words_speak_against_it() -> None:
    far = replace(PRIORS["csls"].function, bias=-3.8, slopes=(0.0, 0.0, 0.0))
    asked = records(far, 300)["forward", "csls"].found

    def away(words: int, *, of_auto: bool) -> float:
        """How far the first confidences are from the truth."""
        learned = learn_confidences(records(far, words), of_auto=of_auto).parts["forward", "csls"].model
        return float(np.abs(learned(asked) - far(asked))[:, 0].mean())

    few, more, many = (away(words, of_auto=True) for words in (50, 1_000, 100_000))
    assert few > 2 * more > 8 * many
    assert many < 0.02
    assert away(50, of_auto=False) < 0.5 * few, "scores of another method"


def test_the_prior_is_what_remains_without_evidence() -> None:
    prior = PRIORS["csls"]
    asked = records(prior.function, 40)["forward", "csls"]
    expected = prior.of_model(asked)
    learned = learn_confidences(records(prior.function, 40), of_auto=True).parts["forward", "csls"]
    difference = learned.model(asked.found) - expected(asked.found)
    assert np.abs(difference[:, 0]).mean() < 0.05
    assert 0.1 < learned.frequent < 0.9


def test_the_level_of_the_prior_follows_the_accuracy_on_rarer_held_out_words() -> None:
    prior, scores = PRIORS["csls"], np.zeros((300, 1))

    def bias(*thirds: int) -> float:
        right = np.concatenate([np.arange(100) < right for right in thirds])[:, None]
        return prior.of_model(answered(scores, right)).bias

    assert bias(50, 80, 80) > bias(50, 20, 20)
    assert bias(100, 50, 50) == bias(0, 50, 50), "the most frequent third says little about the others"
    by_hand = prior.function.bias + prior.per_accuracy * np.log(101 / 101)
    assert bias(0, 50, 50) == pytest.approx(by_hand)
    assert np.isfinite(bias(100, 100, 100))


def test_answers_rarer_than_48000_words_have_less_confidence_where_there_is_a_prior() -> None:
    ranks = np.array([0, 47_999, 96_000, 191_999])
    asked = candidates(np.repeat([[0.3, 0.1]], 4, axis=0), first=ranks)
    rarity = word_features(asked)[:, 2]
    assert rarity == pytest.approx([0, 0, np.log(96_001 / 48_000), np.log(4)])
    with_prior = PRIORS["csls"].function(asked)[:, 0]
    assert with_prior[0] == with_prior[1] > with_prior[2] > with_prior[3]


def test_words_matter_only_where_there_is_a_prior() -> None:
    scores = np.repeat([[0.3, 0.1]], 4, axis=0)
    rare = {"first": np.array([0, 47_999, 96_000, 191_999])}
    dense = {"density": np.array([0.2, 0.5, 0.8, 1.1])}
    frequent = {"query": np.array([0, 1_000, 5_000, 20_000])}
    for words, sign in ((rare, -1), (dense, 1), (frequent, 1)):
        with_prior = PRIORS["csls"].function(candidates(scores, **words))[:, 0]
        assert (sign * np.diff(with_prior) >= 0).all()
        assert sign * (with_prior[-1] - with_prior[0]) > 0.05
        own = Logistic.fit(answered(scores, scores > 0.2, **words))
        assert np.ptp(own(candidates(scores, **words))[:, 0]) == 0


def test_a_query_beyond_rank_20000_counts_as_one_of_that_rank() -> None:
    asked = candidates(np.repeat([[0.3, 0.1]], 2, axis=0), query=np.array([20_000, 2_000_000]))
    assert np.ptp(PRIORS["csls"].function(asked)[:, 0]) == 0


def test_the_fit_takes_the_words_into_account() -> None:
    rng = np.random.default_rng(8)
    scores = 0.25 * falling(rng, 40_000, 2)
    words = {name: rng.integers(0, 200_000, 40_000) for name in ("first", "query")}
    words["density"] = rng.uniform(0.2, 1.2, 40_000)
    asked = candidates(scores, **words)
    truth = replace(PRIORS["csls"].function, bias=PRIORS["csls"].function.bias + 1)
    right = rng.random(scores.shape) < truth(asked)
    fitted = Logistic.fit(answered(scores, right, **words), PRIORS["csls"])
    assert fitted.of_words == truth.of_words
    assert np.abs(fitted(asked) - truth(asked))[:, 0].mean() < 0.01


def test_a_translation_that_only_the_other_seeds_list_is_right_too() -> None:
    world = planted(60, 10, 0.1)
    aligner = Procrustes(device="cpu").fit(world.source, world.target, world.pairs(0, 40))
    space = Space.from_aligner(aligner, world.source, world.target)
    first, second = world.pairs(50, 52).pairs
    synonym = Lexicon([(second[0], first[1])])  # drawn alone, it lists one of two source words of its target
    alone = answer_records(space, synonym)["backward", "csls"].right[0]
    known = answer_records(space, synonym, Lexicon([first, *synonym.pairs]))["backward", "csls"].right[0]
    assert known.sum() == alone.sum() + 1
    assert known[0] and not alone[0]


def test_calibration_error_by_hand() -> None:
    confidence = np.repeat([0.2, 0.8], 50)
    right = np.r_[np.arange(50) < 10, np.arange(50) < 20]
    assert expected_calibration_error(np.repeat([0.0, 1.0], 50), np.repeat([0, 1], 50)) == 0
    assert expected_calibration_error(np.repeat([0.0, 1.0], 50), np.repeat([1, 0], 50)) == 1
    shuffled = np.random.default_rng(0).permutation(100)
    assert 0.2 <= expected_calibration_error(confidence[shuffled], right[shuffled]) < 0.35


def test_true_confidences_show_the_error_of_chance() -> None:
    rng = np.random.default_rng(4)
    confidence = rng.random(400)
    measured = [expected_calibration_error(confidence, rng.random(400) < confidence) for _ in range(50)]
    assert np.mean(measured) == pytest.approx(error_by_chance(confidence), abs=0.01)


def test_held_out_retrieval_equals_the_search_of_the_space(world: Planted) -> None:
    small = planted(90, 10, 0.5)
    aligner = Procrustes(device="cpu").fit(small.source, small.target, small.pairs(0, 40))
    space = Space.from_aligner(aligner, small.source, small.target)
    rows = np.arange(40, 60)
    for direction in ("forward", "backward"):
        for method, found in _retrieve(space, rows, direction).items():
            scores, answers = space.search(rows, 5, direction=direction, retrieval=method)
            assert np.array_equal(found.rows, answers)
            assert np.allclose(found.scores, scores, atol=1e-5)
            density = space.density(rows, answers[:, 0], direction=direction)
            assert np.allclose(found.density, density, atol=1e-5)
            assert found.query.tolist() == rows.tolist()


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("method", ["csls", "nn"])
def test_confidence_is_true_for_words_that_nobody_showed(
    translator: Translator, world: Planted, direction: str, method: str
) -> None:
    part = translator.calibration.parts[direction, method]
    assert 0.2 < part.accuracy < 0.95
    assert part.words >= 100
    assert part.error < part.error_by_chance + 0.06
    unseen = world.pairs(600, 1500)
    pairs = unseen.pairs if direction == "forward" else unseen.swapped().pairs
    answers = translator.translate([a for a, _ in pairs], 1, direction=direction, retrieval=method)
    sure = [answer[0].confidence for answer in answers]
    right = [answer[0].word == gold for answer, (_, gold) in zip(answers, pairs, strict=True)]
    assert expected_calibration_error(sure, right) < 0.09
    assert np.corrcoef(sure, right)[0, 1] > 0.2


def test_the_model_itself_learns_from_all_seeds(translator: Translator, world: Planted) -> None:
    whole = Procrustes(device="cpu").fit(world.source, world.target, world.pairs(0, 600))
    assert np.array_equal(whole.source_map_.matrix, translator.source_map.matrix)


def test_held_out_pairs_were_not_learned_from(world: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[Lexicon] = []
    original = Procrustes.fit

    def spy(self: Procrustes, source: object, target: object, lexicon: Lexicon, **rest: object) -> Procrustes:
        learned.append(lexicon)
        return original(self, source, target, lexicon, **rest)  # type: ignore[arg-type]

    asked: list[Lexicon] = []

    def watched(space: Space, held_out: Lexicon, seeds: Lexicon) -> AnswerRecords:
        asked.append(held_out)
        return answer_records(space, held_out, seeds)

    monkeypatch.setattr(Procrustes, "fit", spy)
    monkeypatch.setattr("bilex.fit.trial.answer_records", watched)
    Translator("procrustes").fit(world.source, world.target, world.pairs(0, 600))
    assert [len(lexicon) for lexicon in learned] == [600 - len(asked[0]), 600]
    assert not {a for a, _ in learned[0].pairs} & {a for a, _ in asked[0].pairs}
    assert not {b for _, b in learned[0].pairs} & {b for _, b in asked[0].pairs}


def test_too_few_seeds_are_reported(world: Planted) -> None:
    made = Translator("procrustes").fit(world.source, world.target, world.pairs(0, 100))
    assert not made.calibration.parts
    assert "need 200 seed words" in made.calibration.note
    assert made.translate(world.source.index_to_key[0])[0].confidence is None


def test_calibration_survives_json(translator: Translator) -> None:
    stored = translator.calibration.as_dict()
    assert Calibration.from_dict(stored) == translator.calibration
    part = translator.calibration.parts["forward", "csls"]
    moved = Calibration(
        {("forward", "csls"): replace(part, model=replace(part.model, of_words=(2.3, 0.4, -1.5)))}
    )
    assert Calibration.from_dict(moved.as_dict()) == moved


def test_calibrations_of_earlier_versions_are_read(translator: Translator) -> None:
    stored = translator.calibration.as_dict()
    now = Calibration.from_dict(stored).parts["forward", "csls"]
    parts = [part for part in stored.values() if isinstance(part, dict)]
    for part in parts:  # as in version 0.2.0
        del part["model"]["of_words"]
        part["model"] |= {"slopes": [*part["model"]["slopes"], 0.0], "rare": -1.5}
    read = Calibration.from_dict(stored).parts["forward", "csls"]
    assert read == replace(now, model=replace(now.model, of_words=(0.0, 0.0, -1.5)))
    for part in parts:  # as in version 0.1
        part["model"]["slopes"] = part["model"]["slopes"][:3]
        del part["frequent"], part["model"]["rare"]
    assert Calibration.from_dict(stored).parts["forward", "csls"].model == now.model
    for slopes in ([1.0, 1.0], [1.0] * 5):
        with pytest.raises(ValueError, match="slopes"):
            Calibration.from_dict(
                {**stored, "forward csls": {**parts[0], "model": {**parts[0]["model"], "slopes": slopes}}}
            )
    parts[0]["model"]["slopes"] = [1.0, 1.0, 1.0, 0.3]  # as between them
    of_development = Calibration.from_dict(stored)
    assert len(of_development.parts) == 3
    assert "align again" in of_development.note


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("retrieval", ["csls", "nn"])
def test_translations_have_the_confidence_of_their_scores_and_words(
    translator: Translator, world: Planted, direction: Direction, retrieval: Retrieval
) -> None:
    part = translator.calibration.parts[direction, retrieval]
    model = replace(part.model, of_words=(2.0, 0.4, -1.0))
    moved = Calibration({(direction, retrieval): replace(part, model=model)})
    queries, space = np.arange(700, 720), translator.space
    scores, rows = space.search(queries, 3, direction=direction, retrieval=retrieval)
    density = space.density(queries, rows[:, 0], direction=direction)
    expected = model(Candidates(scores, rows, queries, density))
    words = [space.sides(direction)[0].index_to_key[row] for row in queries]
    asked = translator.with_parts(calibration=moved)
    answers = asked.translate(words, 3, direction=direction, retrieval=retrieval, model_only=True)
    stated = [[translation.confidence for translation in answer] for answer in answers]
    assert np.allclose(np.array(stated, np.float64), expected, atol=1e-6)
