"""The experiments that separate the data from the program run on made-up languages, and measure right."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.stats

from bilex.aligners.preparation import unit_center_unit
from bilex.lexicon import Lexicon
from bilex.vectors import WordVectors

WORDS, DIM, NOISE = 400, 12, 0.5


def _module(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    return importlib.import_module(f"timings.data_or_program.{name}")


def _languages() -> dict[str, WordVectors]:
    """Three rotated and blurred copies of one language; word i of each means the same."""
    random = np.random.default_rng(0)
    meanings = random.normal(size=(WORDS, DIM))
    made = {}
    for number, language in enumerate(("en", "fi", "ru")):
        turn = scipy.stats.ortho_group.rvs(DIM, random_state=number)
        rows = (meanings + NOISE * random.normal(size=meanings.shape)) @ turn
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        made[language] = WordVectors([f"{language}{i}" for i in range(WORDS)], rows.astype(np.float32))
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Their data folder; every tenth pair is for testing."""
    (tmp_path / "vectors").mkdir()
    for name, side in _languages().items():
        scale = np.abs(side.vectors).max(axis=1, keepdims=True) / 127
        np.savez(
            tmp_path / "vectors" / f"{name}.npz",
            q=np.round(side.vectors / scale).astype(np.int8),
            scale=scale,
        )
        text = "".join(f"{word}\n" for word in side.index_to_key)
        (tmp_path / "vectors" / f"{name}.txt").write_text(text, encoding="utf-8")
    train = [i for i in range(WORDS) if i % 10]
    parts = {"train.freq.1k": train[:50], "train.freq.5k": train[:200], "test.freq.2k": range(0, WORDS, 10)}
    for pair in ("en-fi", "fi-ru"):
        left, right = pair.split("-")
        folder = tmp_path / "dictionaries" / "xling" / pair
        folder.mkdir(parents=True)
        for name, numbers in parts.items():
            pairs = [(f"{left}{i}", f"{right}{i}") for i in numbers]
            Lexicon(pairs).write(folder / f"yacle.{name}.{pair}.tsv")
    return tmp_path


@pytest.fixture
def rows_and_tables(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[list[dict[str, object]], str]:
    """All three experiments, with a C1 that takes few steps."""
    monkeypatch.setitem(_module(monkeypatch, "vocabulary").METHODS, "c1", {"updates": 3})
    main = _module(monkeypatch, "__main__").main
    small = ["--device", "cpu", "--pairs", "en-fi", "--patience", "2", "--sizes", "150"]
    small += ["--words", "300", "--kinds", "lonely", "--noise", "0.3", "--seeds", "60"]
    main([str(data), *small, "--methods", "procrustes", "vecmap-semi"])
    out = capsys.readouterr().out
    lines, tables = out[: out.index("\n###")], out[out.index("\n###") :]
    kept = tmp_path / "rows.jsonl"
    kept.write_text(out, encoding="utf-8")
    main([str(data), "--summarise", str(kept)])
    assert capsys.readouterr().out == tables
    return [json.loads(line) for line in lines.splitlines()], tables


def test_all_experiments_run_and_their_tables_can_be_made_again(
    rows_and_tables: tuple[list[dict[str, object]], str],
) -> None:
    rows, tables = rows_and_tables
    learning, planted, sizes = (
        [row for row in rows if row["what"] == what] for what in ("self-learning", "planted", "vocabulary")
    )
    assert [row["run"] for row in learning] == ["1k", "many", "many calmly"]
    assert [row["seeds"] for row in learning] == [50, 150, 150]
    assert all(row["held out"] == row["held out, both words matched"] == 50 for row in learning)
    # Copies of one language that differ by chance alone: every start ends in the same, right dictionary.
    assert all(share > 90 for row in learning for share in row["same partners as"].values())
    assert all(row["at the end"]["gold found"] > 65 for row in learning)
    assert [row["method"] for row in planted] == ["the true rotation", "procrustes", "vecmap-semi"]
    assert all(row["p@1"]["forward csls"] > 90 for row in planted)
    assert {tuple(row["words"]) for row in sizes if row["pair"] == "fi-ru"} == {
        *((n, n) for n in (150, 400)),
        (150, 400),
    }
    # Test words among the first 150: 15; of the 135 seeds there a fifth, 27, is held out.
    assert {(row["seeds"], row["asked"]) for row in sizes} == {(108, 42)}
    assert tables.count("\n| en-fi |") == 3 + 2 * 2


def test_objective_and_gold_are_those_of_a_plain_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    module = _module(monkeypatch, "self_learning")
    made = _languages()
    gold = Lexicon([(f"en{i}", f"fi{i}") for i in range(300, 360)])
    seeds = Lexicon([(f"en{i}", f"fi{i}") for i in range(15)])
    pair = module.Pair(made["en"], made["fi"], gold, "cpu")
    found = pair.matches(seeds)

    x, y = (unit_center_unit(made[name].vectors).rows.astype(np.float64) for name in ("en", "fi"))
    u, _, vt = np.linalg.svd(x[:15].T @ y[:15])
    scores = x @ u @ vt @ y.T
    objective = (scores.max(axis=1).mean() + scores.max(axis=0).mean()) / 2
    nearest = [np.sort(s, axis=1)[:, -10:].mean(axis=1) for s in (scores, scores.T)]
    csls = 2 * scores - nearest[0][:, None] - nearest[1]
    right = np.mean([(csls.argmax(axis=axis)[300:360] == np.arange(300, 360)).mean() for axis in (0, 1)])
    standing = pair.standing(found)
    assert standing["objective"] == pytest.approx(objective, abs=1e-6)
    assert 0 < right < 1 and standing["gold found"] == pytest.approx(100 * right, abs=0.01)
    assert standing["partners used"] == [len(set(csls.argmax(axis=1))), len(set(csls.argmax(axis=0)))]


def test_relational_similarity_is_one_after_a_rotation_and_none_after_shuffling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    similarity = _module(monkeypatch, "self_learning").relational_similarity
    x = _languages()["en"].vectors
    turn = scipy.stats.ortho_group.rvs(DIM, random_state=9).astype(np.float32)
    assert similarity(x, x @ turn) == pytest.approx(1, abs=1e-5)
    assert abs(similarity(x, np.random.default_rng(1).permutation(x))) < 0.05


def test_planted_pairs_are_right_and_the_lonely_are_never_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = _module(monkeypatch, "planted").planted
    real = _languages()["en"].vectors
    problem = planted(real, 300, "lonely", 0.0, 60)
    turned = problem.source.vectors @ problem.rotation
    same = np.isclose((turned * problem.target.vectors).sum(axis=1), 1, atol=1e-5)
    assert same.sum() == 240
    known, asked = (
        problem.source.rows(a for a, _ in lexicon.pairs) for lexicon in (problem.seeds, problem.asked)
    )
    assert same[known].all() and same[asked].all() and len(known) == 60 and len(asked) == 180
    assert not set(known) & set(asked) and known.max() < asked.max()

    shared = planted(real, 300, "shared", 1.0, 60)
    move = shared.source.vectors @ shared.rotation - planted(real, 300, "plain", 0.0, 60).source.vectors
    assert len(shared.asked) == 240 and np.linalg.norm(move, axis=1).mean() > 0.5


def test_a_lead_is_a_mean_over_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    common = _module(monkeypatch, "common")
    ours = {column: np.array([True, True, False, False]) for column in common.COLUMNS}
    theirs = {column: np.array([True, False, False, False]) for column in common.COLUMNS}
    theirs["backward nn"] = np.array([True, True, True, False])
    spread = 196 * 0.25 * 3**0.5 / 2
    assert common.lead(ours, theirs) == {
        "nn": [0.0, pytest.approx(spread, abs=0.01)],
        "csls": [25.0, pytest.approx(spread, abs=0.01)],
    }
