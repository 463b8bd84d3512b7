"""The worked examples, on planted worlds and made-up text; the plain C1 is the reference for the fast one."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_text import write_texts

import from_text
import own_vectors
import paper_table
import plain_c1
from bilex import C1, Lexicon, Translator, evaluate
from bilex.corpus import TrainingSettings
from bilex_bench.grid import Grid
from bilex_bench.store import ResultsStore
from planted import Planted, planted


@pytest.fixture(scope="module")
def world() -> Planted:
    return planted(700, 20, 0.8, 0)


@pytest.mark.parametrize("on_augmented", [False, True])
def test_the_fast_c1_learns_the_maps_of_the_plain_one(world: Planted, on_augmented: bool) -> None:
    seeds = world.pairs(0, 150)
    constants = replace(
        plain_c1.Constants(),
        n_iter=2, n_cl=12, n_neg=20, n_freq=400, n_aug=200, contrast_on_augmented=on_augmented,
        negative_words=500,
    )  # fmt: skip
    fast = C1(
        preset="paper", device="cpu", iterations=2, updates=12, negatives=20, frequent=400, augment=200,
        learning_rate=1.5, decay=0.99, contrast_on_augmented=on_augmented, warm_up=0,
        negative_vocabulary=500, start="seeds",
    ).fit(world.source, world.target, seeds)  # fmt: skip
    x, y = (torch.tensor(side.vectors[:], dtype=torch.float32) for side in (world.source, world.target))
    rows = seeds.index(world.source.key_to_index, world.target.key_to_index)
    plain = plain_c1.plain_c1(x, y, torch.from_numpy(rows), constants)
    for slow, found in zip(plain, (fast.source_map_, fast.target_map_), strict=True):
        np.testing.assert_allclose(slow.numpy(), found.matrix, atol=2e-4 * float(slow.abs().max()))


def test_the_example_runs_from_files(
    world: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plain_c1, "FEW_SEEDS", plain_c1.Constants(1, 3, 10, 200, 50, 2.0, 1.0, True))
    world.source.save(tmp_path / "en.vec")
    world.target.save(tmp_path / "fi.vec")
    world.pairs(0, 150).save(tmp_path / "seeds.tsv")
    world.pairs(150, 300).save(tmp_path / "test.tsv")
    files = [str(tmp_path / name) for name in ("en.vec", "fi.vec", "seeds.tsv")]
    plain_c1.main([*files, "--test", str(tmp_path / "test.tsv")])
    assert float(capsys.readouterr().out.split()[1]) > 50


# The worked example from own vectors to a dictionary, on a planted world.


def test_vectors_and_pairs_become_a_model_and_a_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = planted(600, 16, 0.5)
    files = [tmp_path / name for name in ("a.vec", "b.vec", "seeds.tsv")]
    world.source.save(files[0])
    world.target.save(files[1])
    world.pairs(0, 300).save(files[2])
    arguments = [*files[:2], "--seeds", files[2], "-o", tmp_path / "out"]
    monkeypatch.setattr("sys.argv", ["own_vectors.py", *map(str, arguments)])
    own_vectors.main()
    accuracy = float(capsys.readouterr().out.split("held-out pairs: ")[1].split("%")[0])
    assert accuracy > 80  # 0.2 by chance
    right = dict(world.pairs(300, 600).pairs)
    found = dict(Lexicon.load(tmp_path / "out" / "dictionary.tsv").pairs)
    unseen = [source for source in right if source in found]
    assert len(unseen) > 200
    assert sum(found[source] == right[source] for source in unseen) > 0.9 * len(unseen)
    assert Translator.load(tmp_path / "out" / "model").space.source.index_to_key[0] in world.source


# The worked example from raw text to a dictionary, at small size on made-up text.


PAGE = rb""".\" a comment
.TH CAT 1
.SH NAME
cat \- join \fIFILES\fP
.PP
.B \-n
writes
\(aqx\(aq
"""


def test_two_texts_and_some_pairs_become_a_dictionary(tmp_path: Path) -> None:
    source, target, pairs = write_texts(tmp_path)
    seeds, test = Lexicon(pairs[::2]), Lexicon(pairs[1::2])
    settings = TrainingSettings(dim=24, epochs=6, buckets=2000)
    translator, reports = from_text.build(
        ("en", "fi"), ([str(source)], [str(target)]), seeds, tmp_path / "out", settings=settings
    )
    result = evaluate(translator.space, test, bootstrap=0)
    assert result.forward.covered == len(test)
    assert (result.forward.metrics["csls"] or {})["p@5"] > 0.6  # 0.02 by chance
    dictionary = Lexicon.load(tmp_path / "out" / "dictionary.tsv")
    assert len(dictionary) > len(seeds)
    assert "P@5" in from_text.table(result, reports)


def test_manual_pages_become_text(tmp_path: Path) -> None:
    page = tmp_path / "man1" / "cat.1.gz"
    page.parent.mkdir()
    page.write_bytes(gzip.compress(PAGE))
    (tmp_path / "readme.gz").write_bytes(gzip.compress(b"not a page"))
    (made,) = from_text.text_files([str(tmp_path)], tmp_path / "made.txt")
    assert made.read_text().split() == ["NAME", "cat", "-", "join", "FILES", "-n", "writes", "'x'"]


def test_files_of_text_are_taken_as_they_are(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("x")
    assert from_text.text_files([str(text)], tmp_path / "made.txt") == [text]


# The worked example of a paper's table, on planted languages under the paper's grid.


PAIR, SEEDS, WORDS = "aa-bb", 120, 300


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    world = planted(WORDS, 16, 0.6)
    for language, words in zip(PAIR.split("-"), (world.source, world.target), strict=True):
        words.save(folder / "vectors" / f"{language}.vec")
    world.pairs(0, SEEDS).save(folder / f"{PAIR}.train.1k.tsv")
    world.pairs(SEEDS, WORDS).save(folder / f"{PAIR}.test.tsv")
    return folder


def test_the_grid_becomes_a_table_and_is_run_once(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "main.sqlite"
    grid = Grid.read(paper_table.GRID).choosing(
        data=[str(data)], pairs=[PAIR], seeds=["1k"], lm="none", device="cpu"
    )
    assert paper_table.run(grid, results, ["FIPP"], threads=1) == 0
    with ResultsStore.open(results, create=False) as store:
        (result,) = store.results()
    shown = 100 * (result.metric("forward", "csls") or 0.0)
    table = paper_table.tables(results)
    assert "FIPP" in table and f"{shown:.2f}" in table
    assert "FIPP, aa-bb" in capsys.readouterr().err
    assert paper_table.run(grid, results, ["FIPP"], threads=1) == 0
    assert "FIPP, aa-bb" not in capsys.readouterr().err
