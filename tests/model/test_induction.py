"""Whole dictionaries."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.lexicon import Lexicon
from bilex.model import Translator
from planted import Planted


def test_best_per_source_is_what_translate_says(translator: Translator, world: Planted) -> None:
    found = translator.lexicon(ranks=(1, 200))
    answers = translator.translate(world.source.index_to_key[:200], 1)
    assert [(e.source, e.target) for e in found] == [(a.word, a[0].word) for a in answers]
    assert [e.confidence for e in found] == pytest.approx([a[0].confidence for a in answers], abs=1e-6)
    assert [e.source_rank for e in found] == list(range(1, 201))


def test_backward_asks_with_target_words(translator: Translator, world: Planted) -> None:
    found = {(e.target, e.source) for e in translator.lexicon(direction="backward", ranks=(5, 30))}
    answers = translator.translate(world.target.index_to_key[4:30], 1, direction="backward")
    assert found == {(a.word, a[0].word) for a in answers}


def test_both_is_the_union_without_repeats(translator: Translator) -> None:
    one, two, both = (
        [(e.source, e.target) for e in translator.lexicon(direction=side)]
        for side in ("forward", "backward", "both")
    )
    assert len(both) == len(set(both)) and set(both) == set(one) | set(two)


def test_mutual_is_the_intersection(translator: Translator) -> None:
    one, two, mutual, both = (
        {(e.source, e.target) for e in translator.lexicon(**override)}
        for override in (
            {},
            {"direction": "backward"},
            {"mutual": True},
            {"mutual": True, "direction": "both", "k": 3},
        )
    )
    assert mutual == one & two == both
    assert 0 < len(mutual) < len(one)


def test_mutual_pairs_are_more_often_right(translator: Translator, world: Planted) -> None:
    def precision(**override: bool) -> float:
        pairs = translator.lexicon(ranks=(601, None), **override).pairs().pairs
        truth = dict(world.pairs(0, 1500).pairs)
        return sum(truth[a] == b for a, b in pairs) / len(pairs)

    assert precision(mutual=True) > precision()


def test_thresholds(translator: Translator) -> None:
    everything = list(translator.lexicon(k=3, ranks=(1, 100)))
    assert len(everything) == 300
    by_score = translator.lexicon(k=3, ranks=(1, 100), min_score=0.1)
    assert list(by_score) == [e for e in everything if e.known or e.score >= 0.1]
    sure = translator.lexicon(k=3, ranks=(1, 100), min_confidence=0.5)
    assert list(sure) == [
        e for e in everything if e.known or (e.confidence is not None and e.confidence >= 0.5)
    ]
    assert 100 < len(sure) < 300


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_a_written_dictionary_is_a_dictionary_again(
    translator: Translator, tmp_path: Path, suffix: str
) -> None:
    found = translator.lexicon(ranks=(1, 50), k=2)
    found.save(tmp_path / f"out.{suffix}")
    assert list(Lexicon.load(tmp_path / f"out.{suffix}").pairs) == list(found.pairs().pairs)


def test_the_asking_language_is_written_first(translator: Translator, world: Planted) -> None:
    found = translator.lexicon(direction="backward", ranks=(1, 20))
    lines = found.text("tsv").splitlines()
    assert [line.split("\t")[0] for line in lines] == world.target.index_to_key[:20]
    assert found.text("csv").splitlines()[0].startswith("target,source,score,confidence,known,target_rank")
    assert list(found.pairs().pairs) == [(e.source, e.target) for e in found], "pairs stay source first"


def test_json_lines_keep_everything(translator: Translator) -> None:
    found = translator.lexicon(ranks=(1, 5))
    lines = [json.loads(line) for line in found.text("jsonl").splitlines()]
    assert lines == [
        {name: value for name, value in asdict(e).items() if name != "sense" and value != ""} for e in found
    ]


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ({"ranks": (0, 5)}, "count from 1"),
        ({"ranks": (9, 5)}, "count from 1"),
        ({"k": 0}, "at least 1"),
        ({"ranks": (5000, None)}, "1500 words"),
        ({"direction": "up"}, "forward or backward"),
    ],
)
def test_senseless_overrides_are_refused(translator: Translator, override: dict, part: str) -> None:
    with pytest.raises(BilexError, match=part):
        translator.lexicon(**override)


def test_confidence_wished_of_a_model_without(translator: Translator) -> None:
    bare = Translator.of_parts(translator.space, translator.source_map, translator.target_map)
    with pytest.raises(BilexError, match="not calibrated"):
        bare.lexicon(min_confidence=0.5)
