"""What is said about a model without a test dictionary."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError
from bilex.cli import run
from bilex.evaluation import evaluate
from bilex.evaluation.without_gold import judge
from bilex.fit.calibration import Calibration
from bilex.model import Translator
from planted import Planted, planted


@pytest.fixture(scope="module")
def world() -> Planted:
    return planted(1500, 24, 1.0)


@pytest.fixture(scope="module")
def translator(world: Planted) -> Translator:
    return Translator("procrustes").fit(world.source, world.target, world.pairs(0, 800), progress=False)


def test_the_expected_accuracy_is_near_the_true_one(world: Planted, translator: Translator) -> None:
    found = judge(translator)
    true = evaluate(translator.space, world.pairs(800, 1500), bootstrap=0)
    for side, result in ((found.forward, true.forward), (found.backward, true.backward)):
        assert side.expected is not None
        assert side.expected.low < result.csls.p_at_1 < side.expected.high


def test_align_and_evaluate_expect_the_same(translator: Translator, tmp_path: Path) -> None:
    expected = judge(translator).forward.expected
    assert expected is not None
    made = translator.provenance.expectation
    assert made.of("forward") == (expected.share, expected.low, expected.high)
    translator.save(tmp_path / "model")
    assert judge(Translator.load(tmp_path / "model")).forward.expected == expected


def test_worse_vectors_are_expected_to_be_worse(translator: Translator) -> None:
    blurred = planted(1500, 24, 1.6)
    worse = Translator("procrustes").fit(
        blurred.source, blurred.target, blurred.pairs(0, 800), progress=False
    )
    good, bad = judge(translator).forward, judge(worse).forward
    for name in ("expected", "held_out", "mutual"):
        assert getattr(bad, name).share < getattr(good, name).share - 0.05


def test_mutual_answers_are_counted_over_all_frequent_words(translator: Translator) -> None:
    space = translator.space
    similar = np.asarray(space.source.vectors) @ np.asarray(space.target.vectors).T
    r_source, r_target = space.neighbourhoods()
    csls = 2 * similar - r_source[:, None] - r_target[None, :]
    mutual = csls.argmax(0)[csls.argmax(1)] == np.arange(len(csls))
    assert judge(translator).forward.mutual.share == pytest.approx(mutual.mean(), abs=0.002)


def test_words_that_shall_be_translated_can_be_named(world: Planted, translator: Translator) -> None:
    named = judge(translator, words={"forward": world.source.index_to_key[1000:1100]}).forward.named
    assert named is not None
    assert named.words == 100
    with pytest.raises(BilexError, match="none of the words"):
        judge(translator, words={"backward": ["no", "such", "words"]})


def test_a_model_without_confidences_promises_nothing(translator: Translator) -> None:
    found = judge(translator.with_parts(calibration=Calibration(note="switched off")))
    assert found.forward.expected is None
    assert found.forward.held_out is None
    assert "switched off" in found.note


def test_the_command_needs_no_dictionary(
    world: Planted, translator: Translator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    translator.save(tmp_path / "model")
    assert run(["evaluate", str(tmp_path / "model")]) == 0
    assert "expected P@1" in capsys.readouterr().out
    (tmp_path / "words.txt").write_text("\n".join(world.source.index_to_key[900:950]), encoding="utf-8")
    command = ["evaluate", str(tmp_path / "model"), "--words", str(tmp_path / "words.txt"), "--json"]
    assert run(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert next(iter(found.values()))["forward"]["named"]["words"] == 50
    (tmp_path / "test.tsv").write_text("a\tb\n")
    assert run([*command[:2], str(tmp_path / "test.tsv"), *command[2:]]) == 2
