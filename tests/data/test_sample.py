from __future__ import annotations

from pathlib import Path

import numpy as np

from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors


def test_sample_is_whole_and_its_dictionaries_are_disjoint() -> None:
    path = sample_path()
    english, finnish = WordVectors.load(path / "en"), WordVectors.load(path / "fi")
    assert len(english) == len(finnish) == 10_000 and english.dim == finnish.dim == 300
    for vectors in (english, finnish):
        assert np.allclose(np.linalg.norm(vectors.vectors, axis=1), 1, atol=1e-5)
        assert all(word.isalpha() and word == word.lower() for word in vectors.index_to_key)
    seeds, test = Lexicon.load(path / "seeds.tsv"), Lexicon.load(path / "test.tsv")
    assert test.leaks(seeds).touched == 0
    for lexicon in (seeds, test):
        coverage = lexicon.coverage(english.key_to_index, finnish.key_to_index)
        assert coverage.covered == coverage.pairs > 1_500
        assert lexicon.report is not None and " ".join(lexicon.report.sentences()) == ""
    assert len(test.translations()) == 1_000
    assert ("water", "vesi") in seeds.pairs or ("water", "vesi") in test.pairs


def test_sample_stays_small_and_says_where_it_comes_from() -> None:
    path = sample_path()
    assert sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) < 7_000_000
    sources = (path / "SOURCES.md").read_text(encoding="utf-8")
    assert "CC BY-SA 3.0" in sources and "MIT" in sources and "dict-freedict-eng-fin" in sources


def test_the_seeds_are_as_their_reader_left_them() -> None:
    review = Path(__file__).parents[2] / "tools" / "sample_review.tsv"
    rows = [line.split("\t") for line in review.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    seeds = set(Lexicon.load(sample_path() / "seeds.tsv").pairs)
    dropped = {(source, target) for source, target, verdict, _ in rows if verdict == "drop"}
    added = {(source, target) for source, target, verdict, _ in rows if verdict == "add"}
    assert {("to", "vaille"), ("or", "kultainen"), ("company", "vieraat")} <= dropped
    assert not dropped & seeds and added <= seeds and len(dropped) + len(added) == len(rows)
