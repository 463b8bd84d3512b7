"""Training: outputs, reproducibility, defaults by size, what goes wrong."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from made_text import WORDS, write_texts

from bilex import BilexError
from bilex.cli import BAD_INPUT, OK, run
from bilex.corpus import Preparation, TrainingSettings, prepare, train_vectors
from bilex.corpus.preparing import BoundedCounts, PhraseCounts, find_phrases, join_phrases, npmi
from bilex.corpus.tokens import Tokeniser
from bilex.vectors import WordVectors

SMALL = TrainingSettings(dim=16, epochs=1, min_count=1, buckets=500)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_texts(tmp_path_factory.mktemp("text"), lines=400)[0]


@pytest.fixture(scope="module")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same vectors as fastText's model, as text and as a folder."""
    folder = tmp_path_factory.mktemp("trained")
    for name in ("en.bin", "en.vec", "en"):
        report = train_vectors([corpus], folder / name, settings=SMALL)
        assert report.vocabulary == WORDS
    return folder


def test_every_output_holds_the_same_vectors(trained: Path) -> None:
    model, text, folder = (WordVectors.load(trained / name) for name in ("en.bin", "en.vec", "en"))
    assert len(text) == len(folder) == WORDS
    assert sorted(text.index_to_key) == sorted(set(model.index_to_key) - {"</s>"})
    for word in text.index_to_key[:20]:
        np.testing.assert_allclose(text[word], model[word], rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(folder[word], model[word])
    assert model.subwords is not None
    np.testing.assert_array_equal(folder["unheardof"], model["unheardof"])
    assert [path.name for path in trained.iterdir() if path.name.startswith(".")] == []


def test_words_come_by_frequency(corpus: Path, trained: Path) -> None:
    counts = Counter(corpus.read_text().split())
    order = [counts[word] for word in WordVectors.load(trained / "en.vec").index_to_key]
    assert order == sorted(order, reverse=True)


def test_one_thread_and_one_random_seed_give_the_same_file(
    corpus: Path, trained: Path, tmp_path: Path
) -> None:
    for name, seed in (("again.bin", 0), ("other.bin", 4)):
        train_vectors([corpus], tmp_path / name, settings=replace(SMALL, random_seed=seed))
    first = (trained / "en.bin").read_bytes()
    assert first == (tmp_path / "again.bin").read_bytes()
    assert first != (tmp_path / "other.bin").read_bytes()


def test_size_decides_what_was_left_open() -> None:
    sizes = [TrainingSettings(epochs=7).for_size(tokens) for tokens in (10**5, 10**6, 10**7, 10**8, 10**10)]
    assert [s.dim for s in sizes] == [100, 100, 200, 300, 300]
    assert {s.epochs for s in sizes} == {7}
    assert sizes == sorted(sizes, key=lambda s: s.min_count or 0)


def test_limit_keeps_the_most_frequent_words(corpus: Path, tmp_path: Path) -> None:
    settings = TrainingSettings(dim=8, epochs=1, min_count=1, buckets=500, limit=50)
    report = train_vectors([corpus], tmp_path / "en.vec", settings=settings)
    assert report.vocabulary == len(WordVectors.load(tmp_path / "en.vec")) <= 50
    assert report.distinct == WORDS


def test_too_much_memory_is_refused_before_training(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bilex.corpus.training.available_memory", lambda: 1000)
    with pytest.raises(BilexError, match="GB are free"):
        train_vectors([corpus], tmp_path / "en.bin", settings=SMALL)


def test_a_failed_training_leaves_the_old_file(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "en.bin"
    output.write_bytes(b"old")
    monkeypatch.setattr("bilex.corpus.training.sys.executable", "/bin/false")
    with pytest.raises(BilexError, match="fastText could not train"):
        train_vectors([corpus], output, settings=SMALL)
    assert output.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["en.bin"]


def test_without_fasttext_the_extra_is_named(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bilex.corpus.training.importlib.util.find_spec", lambda name: None)
    with pytest.raises(BilexError, match=r"bilex\[train\]"):
        train_vectors([corpus], tmp_path / "en.bin", settings=SMALL)


def test_the_command_trains_and_reports(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = corpus.read_text().splitlines()
    packed, records = tmp_path / "a.txt.gz", tmp_path / "b.jsonl"
    packed.write_bytes(gzip.compress("\n".join(lines[:200]).encode()))
    records.write_text("\n".join(json.dumps({"text": line}) for line in lines[200:]))
    options = ["--dim", "8", "--epochs", "1", "--min-count", "1", "--threads", "1", "--json"]
    assert run(["vectors", str(packed), str(records), "-o", str(tmp_path / "en.vec"), *options]) == OK
    report = json.loads(capsys.readouterr().out)
    assert report["lines"] == 400
    assert report["vocabulary"] == len(WordVectors.load(tmp_path / "en.vec"))
    assert report["settings"]["dim"] == 8


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--subwords", "6-3"], "6 to 3 letters"),
        (["--subwords", "some"], "'--subwords': some"),
        (["--language", "klingonish"], "--language klingonish"),
        (["--field", "text"], "not a JSON object"),
    ],
)
def test_the_command_refuses_in_one_sentence(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    assert run(["vectors", str(corpus), "-o", str(tmp_path / "en.bin"), *options]) == BAD_INPUT
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_corpus_is_never_overwritten(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = corpus.read_bytes()
    assert run(["vectors", str(corpus), "-o", str(corpus)]) == BAD_INPUT
    assert "is an input" in capsys.readouterr().err
    assert corpus.read_bytes() == before


_PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "bilex.corpus.fasttext_process", sys.argv[1]],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_training_ends_when_its_command_is_killed(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three four five six\n" * 2000)
    arguments = {"epoch": 1_000_000, "thread": 1, "dim": 50, "minCount": 1, "bucket": 1000}
    wanted = {
        "corpus": str(text),
        "model": str(tmp_path / "m.bin"),
        "architecture": "skipgram",
        "arguments": arguments,
    }
    command = [sys.executable, "-c", _PARENT, json.dumps(wanted)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        child = psutil.Process(int(parent.stdout.readline()))
        while str(text) not in {file.path for file in child.open_files()}:  # until it trains
            assert child.status() != psutil.STATUS_ZOMBIE, "it ended by itself"
            time.sleep(0.02)
    finally:
        parent.kill()
        parent.communicate()
    gone, _ = psutil.wait_procs([child], timeout=60)
    assert gone


# Phrases: the score, joining, and counts in bounded memory.


def test_score_by_hand() -> None:
    # 10 of 1,000 tokens are each of the two words, always together
    assert npmi(10, 10, 10, 1000) == pytest.approx(1.0)
    assert npmi(1, 100, 10, 1000) == pytest.approx(0.0)
    assert npmi(5, 10, 20, 1000) == pytest.approx(math.log(25) / math.log(200))


def test_phrases_are_neighbours_that_stand_together_more_often_than_chance() -> None:
    counts = PhraseCounts()
    for number in range(300):
        counts.add(["new", "york", "is", f"w{number % 7}", "the", f"w{number % 5}", "the"], pairs=True)
    found = find_phrases(counts, 0.5, 10)
    assert ("new", "york") in found
    assert not any("the" in pair for pair in found)
    assert not find_phrases(counts, 0.5, 301)


def test_of_overlapping_phrases_the_stronger_is_joined() -> None:
    phrases = {("a", "b"): 0.6, ("b", "c"): 0.9}
    assert join_phrases(["x", "a", "b", "c"], phrases) == ["x", "a", "b_c"]
    assert join_phrases(["a", "b"], phrases) == ["a_b"]
    assert join_phrases([], phrases) == []


def test_counts_forget_the_rarest_when_there_are_too_many() -> None:
    counts = BoundedCounts[str](most=3)
    counts.add(["often"] * 9 + ["some"] * 4)
    counts.add([f"rare{number}" for number in range(50)])
    assert counts["often"] == 9
    assert counts["some"] == 4
    assert len(counts) <= 3


def test_a_second_pass_finds_longer_phrases(tmp_path: Path) -> None:
    lines = [f"w{n % 11} the new york times said w{n % 13} and w{n % 3}" for n in range(200)]
    lines += [f"new york w{n % 5} the times w{n % 7}" for n in range(60)]
    corpus = tmp_path / "c.txt"
    corpus.write_text("\n".join(lines))
    prepared = prepare([corpus], tmp_path, Preparation())
    assert prepared.words["new_york_times"] + prepared.words["new_york_times_said"] > 100
    text = prepared.path.read_text().splitlines()
    assert prepared.tokens == sum(len(line.split()) for line in text)
    assert len(text) == prepared.lines == 260
    none = prepare([corpus], tmp_path, Preparation(phrase_passes=0))
    assert none.phrases == []


def test_text_that_needs_icu_is_refused_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("tokens", "preparing"):
        monkeypatch.setattr(f"bilex.corpus.{module}.can_segment", lambda: False)
    corpus = tmp_path / "zh.txt"
    corpus.write_text("我在北京大学学习中文\n" * 50)
    with pytest.raises(BilexError, match=r"zh\.txt.*Han.*segment.*--tokenised"):
        prepare([corpus], tmp_path, Preparation())
    divided = Preparation(Tokeniser(tokenised=True), phrase_passes=0)
    assert prepare([corpus], tmp_path, divided).tokens == 50
    corpus.write_text("mostly plain english text here, with 北京 in it\n" * 50)
    assert 0 < prepare([corpus], tmp_path, Preparation()).uncut < 0.1


def test_a_corpus_without_words_is_refused(tmp_path: Path) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("... --- !!!\n")
    with pytest.raises(BilexError, match="holds no words"):
        prepare([corpus], tmp_path, Preparation())
