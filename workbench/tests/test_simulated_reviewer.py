from __future__ import annotations

import json

import numpy as np
import pytest
from research import simulated_reviewer as simulated

from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors
from planted import planted

PLAIN = planted(words=900, dim=24, noise=0.2, seed=7)
TRAIN, TEST = PLAIN.pairs(0, 600), PLAIN.pairs(600, 900)


@pytest.fixture(scope="module")
def translator():
    """A model of a world in which every other word's target vector says little."""
    rng = np.random.default_rng(1)
    blurred = np.array(PLAIN.target.vectors)
    blurred[::2] += 2.0 * rng.normal(size=blurred[::2].shape)
    target = WordVectors(PLAIN.target.index_to_key, blurred)
    seeds = simulated.drawn(TRAIN, 300, 0)
    return Translator("procrustes").fit(PLAIN.source, target, seeds)


def test_the_queue_corrects_more_than_a_random_order(translator):
    oracle, held_back = simulated.divided(TRAIN, TEST, translator.seeds, "train", 0)
    found = {
        order: simulated.measured(
            translator,
            simulated.ordered(translator, sorted(oracle), order, 0)[:60],
            oracle,
            held_back,
        )
        for order in ("queue", "random")
    }
    assert found["queue"]["corrected"] > found["random"]["corrected"] + 0.3
    assert found["queue"]["weighted"] > found["random"]["weighted"] + 0.2


@pytest.mark.parametrize("review", ["test", "train"])
def test_nobody_decides_on_words_that_are_held_back(review):
    seeds = simulated.drawn(TRAIN, 50, 1)
    oracle, held_back = simulated.divided(TRAIN, TEST, seeds, review, 1)
    assert oracle and held_back and not set(oracle) & set(held_back)
    assert not set(oracle) & {source for source, _ in seeds.pairs}
    assert set(held_back) <= set(TEST.translations())


def test_the_reviewer_accepts_what_the_dictionary_has_and_rejects_the_rest(translator):
    word = TRAIN.pairs[0][0]
    shown = [found.word for found in translator.translate(word, 9)]
    decided = simulated.decide(translator, [word], {word: (shown[2], "not among the candidates")})
    assert decided.pairs == [(word, shown[2])]
    assert set(decided.rejected) == {(word, other) for other in shown if other != shown[2]}
    typed = simulated.decide(translator, [word], {word: ("not among the candidates",)})
    assert typed.pairs == [(word, "not among the candidates")] and len(typed.rejected) == len(shown)


def test_the_interval_of_paired_differences():
    assert simulated.difference([1.0, 2.0, 3.0]) == {"difference": 2.0, "interval": 2.48}
    assert simulated.difference([1.0]) == {"difference": 1.0}


def test_the_command_ends_with_means_and_intervals(tmp_path, capsys):
    for name, words in (("s", PLAIN.source), ("t", PLAIN.target)):
        words.save(tmp_path / f"{name}.vec")
    for name, pairs in (("train", TRAIN), ("test", TEST)):
        Lexicon(list(pairs.pairs)).save(tmp_path / f"{name}.tsv")
    files = [str(tmp_path / name) for name in ("s.vec", "t.vec", "train.tsv", "test.tsv")]
    settings = ["--seeds", "300", "--decisions", "0", "20", "--splits", "2"]
    assert simulated.main([*files, *settings]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    none, decided = lines[-2:]
    assert len(lines) == 2 * 3 + 2
    assert set(none["p@1"]) == {"none"}
    assert set(decided["p@1"]) == {"queue", "random", "difference", "interval"}
