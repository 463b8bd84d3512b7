"""The evaluation against a float64 reimplementation that sorts every score, and against planted cases."""

from __future__ import annotations

import io
import json
import random
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from bilex import BilexError
from bilex.evaluation import evaluate
from bilex.evaluation.result import bootstrap_intervals, mean_metrics
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

SOURCE_WORDS, TARGET_WORDS, DIM = 70, 55, 6


def make_space(seed: int = 0) -> Space:
    generator = np.random.default_rng(seed)
    source = generator.normal(size=(SOURCE_WORDS, DIM))
    target = source[:TARGET_WORDS] + 0.6 * generator.normal(size=(TARGET_WORDS, DIM))
    return Space(
        WordVectors([f"s{i}" for i in range(SOURCE_WORDS)], source.astype(np.float32)),
        WordVectors([f"t{i}" if i % 5 else f"s{i}" for i in range(TARGET_WORDS)], target.astype(np.float32)),
        device="cpu",
    )


def make_lexicon(space: Space, seed: int = 0) -> Lexicon:
    """Pairs with several golds, repeats, and words that the space lacks on either side."""
    rng = random.Random(seed)
    targets = space.target.index_to_key
    pairs = [(f"s{i}", targets[i]) for i in range(0, TARGET_WORDS, 2)]
    pairs += [(f"s{rng.randrange(SOURCE_WORDS)}", rng.choice(targets)) for _ in range(15)]
    pairs += [("s1", "unknown"), ("s3", "unknown"), ("s4", "unknown"), ("unknown", targets[0]), ("x", "y")]
    return Lexicon([*pairs, pairs[0], pairs[1]], "made.tsv")


def brute_force(space: Space, pairs: list[tuple[str, str]], method: str, flipped: bool) -> dict[str, Any]:
    """Every figure again: plain Python over sorted lists, float64, one word at a time."""
    query_side, key_side = (space.target, space.source) if flipped else (space.source, space.target)
    pairs = [(b, a) for a, b in pairs] if flipped else pairs

    def unit(words: WordVectors) -> dict[str, Any]:
        rows = words.vectors.astype(np.float64)
        return {w: row / np.sqrt((row**2).sum()) for w, row in zip(words.index_to_key, rows, strict=True)}

    x, y = unit(query_side), unit(key_side)
    r = {w: np.mean(sorted((float(v @ u) for u in x.values()), reverse=True)[:10]) for w, v in y.items()}

    def ranking(word: str) -> list[str]:
        score = {w: float(x[word] @ v) * (2 if method == "csls" else 1) for w, v in y.items()}
        if method == "csls":
            score = {w: s - r[w] for w, s in score.items()}
        return sorted(score, key=lambda w: -score[w])

    golds = defaultdict(set)
    for a, b in pairs:
        if a in x and b in y:
            golds[a].add(b)
    order = {a: ranking(a) for a in golds}
    rank = {a: min(order[a].index(b) + 1 for b in bs) for a, bs in golds.items()}
    alone = [order[a].index(b) + 1 for a, b in pairs if a in x and b in y]

    def figures(ranks: list[int], count: int) -> dict[str, float]:
        found = {f"p@{n}": sum(i <= n for i in ranks) / count for n in (1, 5, 10)}
        return {**found, "mrr": sum(1 / i for i in ranks) / count}

    total = len({a for a, _ in pairs})
    return {
        "standard": figures(list(rank.values()), len(rank)),
        "oov_as_error": figures(list(rank.values()), total),
        "per_pair": figures(alone, len(alone)),
        "covered": len(rank),
        "total": total,
        "ranks": rank,
        "answers": {a: tuple(o[:10]) for a, o in order.items()},
        "alike": figures([i for a, i in rank.items() if a in golds[a]], sum(a in golds[a] for a in rank)),
    }


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("method", ["nn", "csls"])
def test_every_convention_agrees_with_brute_force(direction: str, method: str) -> None:
    space = make_space()
    lexicon = make_lexicon(space)
    result = evaluate(space, lexicon, bootstrap=0).as_dict(predictions=True)[direction]
    expected = brute_force(space, list(lexicon.pairs), method, direction == "backward")
    assert 0.1 < expected["standard"]["p@1"] < 0.9  # or the comparison would say little
    assert max(expected["ranks"].values()) > 10
    assert result[method] == pytest.approx(expected["standard"])
    assert result["oov_as_error"][method] == pytest.approx(expected["oov_as_error"])
    assert result["per_pair"][method] == pytest.approx(expected["per_pair"])
    assert result["identical"][method] == pytest.approx(expected["alike"])
    assert (result["covered"], result["total"]) == (expected["covered"], expected["total"])
    assert {p["source"]: p["ranks"][method] for p in result["predictions"]} == expected["ranks"]
    assert {p["source"]: tuple(p["answers"][method]) for p in result["predictions"]} == expected["answers"]


def test_denominators_by_hand() -> None:
    """Four words; a and b are translated rightly, c wrongly, d is not in the vectors."""
    rows = np.eye(3, dtype=np.float32)
    space = Space(WordVectors(["a", "b", "c"], rows), WordVectors(["x", "y", "z"], rows), device="cpu")
    lexicon = Lexicon([("a", "x"), ("a", "z"), ("b", "y"), ("b", "none"), ("c", "x"), ("d", "x")])
    result = evaluate(space, lexicon, neighbours=1, precision_at=(1, 2)).forward
    assert (result.covered, result.total, result.pairs, result.pairs_covered) == (3, 4, 6, 4)
    assert result.metrics["nn"] is not None and result.oov_as_error["nn"] is not None
    assert result.metrics["nn"]["p@1"] == pytest.approx(2 / 3)
    assert result.oov_as_error["nn"]["p@1"] == pytest.approx(2 / 4)
    assert result.per_pair["nn"] is not None
    assert result.per_pair["nn"]["p@1"] == pytest.approx(2 / 4)
    assert result.metrics["nn"]["p@2"] == pytest.approx(3 / 3)  # c: z, then x before y by index
    assert result.metrics["nn"]["mrr"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert {p.source: p.translations for p in result.predictions} == {
        "a": ("x", "z"),
        "b": ("y",),
        "c": ("x",),
    }


def test_metrics_are_attributes_and_json() -> None:
    space = make_space()
    found = evaluate(space, make_lexicon(space), bootstrap=0)
    assert found.csls.p_at_1 == found.forward.csls["p@1"] == found.as_dict()["forward"]["csls"]["p@1"]
    assert found.nn.mrr == found.forward.nn["mrr"] != found.backward.nn.mrr
    assert dir(found.csls) == ["mrr", "p_at_1", "p_at_10", "p_at_5"]
    assert json.loads(found.to_json())["backward"]["nn"] == found.backward.nn
    with pytest.raises(AttributeError, match="p_at_10"):
        found.csls.p_at_2  # noqa: B018


def test_leaked_words_are_left_out_in_each_direction() -> None:
    space = make_space()
    lexicon = make_lexicon(space)
    train = Lexicon([lexicon.pairs[0], lexicon.pairs[3], ("s69", "t1")])
    evaluation = evaluate(space, lexicon, train=train, bootstrap=0)
    for result, words in (
        (evaluation.forward, {a for a, _ in train.pairs[:2]}),
        (evaluation.backward, {b for _, b in train.pairs[:2]}),
    ):
        kept = [p.ranks["csls"] for p in result.predictions if p.source not in words]
        assert {p.source for p in result.predictions if p.leaked} == words
        assert result.leak_free is not None and result.leak_free.covered == len(kept) == result.covered - 2
        figures = result.leak_free.metrics["csls"]
        assert figures is not None and figures["p@1"] == pytest.approx(np.mean(np.array(kept) == 1))
    assert evaluate(space, lexicon, bootstrap=0).forward.leak_free is None


def test_groups_part_the_covered_words() -> None:
    words = 1500
    rows = np.random.default_rng(0).normal(size=(words, 4)).astype(np.float32)
    vectors = WordVectors([f"w{i}" for i in range(words)], rows)
    lexicon = Lexicon([(f"w{i}", f"w{i}" if i % 3 else f"w{i + 1}") for i in range(900, 1100)])
    result = evaluate(Space(vectors, vectors, device="cpu"), lexicon, bootstrap=0).forward
    assert {band: group.covered for band, group in result.bands.items()} == {"1-1000": 100, "1001-5000": 100}
    assert result.identical.covered + result.different.covered == result.covered == 200
    assert result.identical.metrics["nn"] == {"p@1": 1.0, "p@5": 1.0, "p@10": 1.0, "mrr": 1.0}
    assert result.different.metrics["nn"] is not None and result.different.metrics["nn"]["p@1"] == 0.0


def test_json_has_the_promised_keys() -> None:
    space = make_space()
    evaluation = evaluate(space, make_lexicon(space), train=Lexicon([("s0", "s0")]), bootstrap=50)
    read = json.loads(evaluation.to_json(predictions=True))
    for direction in ("forward", "backward"):
        part = read[direction]
        for method in ("nn", "csls"):
            assert set(part[method]) == {"p@1", "p@5", "p@10", "mrr"}
            assert all(0 <= value <= 1 for value in part[method].values())
            for name, (low, high) in part["interval_95"][method].items():
                assert low <= part[method][name] <= high
        assert isinstance(part["covered"], int) and isinstance(part["total"], int)
        assert len(part["predictions"]) == part["covered"]
    assert "predictions" not in json.loads(evaluation.to_json())["forward"]
    assert read["dictionary"] == "made.tsv"


def test_table_shows_the_figures() -> None:
    space = make_space()
    evaluation = evaluate(space, make_lexicon(space), train=Lexicon([("s0", "s0")]), bootstrap=50)
    console = Console(record=True, width=160, file=io.StringIO())
    console.print(evaluation.table())
    text = console.export_text()
    figures = evaluation.backward.metrics["csls"]
    assert figures is not None and f"{100 * figures['p@1']:.1f}" in text
    assert "not in the seeds" in text and "spelt alike" in text and "rank 1-1000" in text
    bare = Console(record=True, width=160, file=io.StringIO())
    bare.print(evaluate(space, Lexicon([("s1", "t1")]), bootstrap=0).table())
    assert "–" in bare.export_text() and "not in the seeds" not in bare.export_text()


def test_bootstrap_is_seeded_and_near_the_normal_interval() -> None:
    ranks = np.array([1] * 300 + [50] * 700)
    first = bootstrap_intervals(ranks, (1,), replicates=2000, seed=3)
    assert first == bootstrap_intervals(ranks, (1,), replicates=2000, seed=3)
    assert first != bootstrap_intervals(ranks, (1,), replicates=2000, seed=4)
    spread = 1.96 * np.sqrt(0.3 * 0.7 / 1000)
    assert first["p@1"] == pytest.approx((0.3 - spread, 0.3 + spread), abs=0.004)
    assert bootstrap_intervals(np.array([1, 1]), (1,), replicates=9, seed=0)["mrr"] == (1.0, 1.0)


def test_nothing_to_divide_by() -> None:
    assert mean_metrics(np.zeros(0, np.int64), (1,)) is None
    assert mean_metrics(np.zeros(0, np.int64), (1, 5), 4) == {"p@1": 0.0, "p@5": 0.0, "mrr": 0.0}


def test_uncovered_dictionary_is_refused_with_advice() -> None:
    space = make_space()
    swapped = Lexicon([("t1", "s1"), ("t2", "s2"), ("t3", "s3")], "test.tsv")
    with pytest.raises(BilexError) as caught:
        evaluate(space, swapped)
    message = str(caught.value)
    assert message.startswith("test.tsv: 0 of 3 pairs have both words in the vectors")
    assert "3 pairs would be covered if you swap source and target" in message
    with pytest.raises(BilexError, match="precision_at"):
        evaluate(space, make_lexicon(space), precision_at=())
