"""Aligned vectors in other programs: gensim itself, and the readers' rules of VecMap, MUSE and fastText."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bilex.aligners import get_method
from bilex.cli import run
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors
from planted import planted

ODD = ["new york", "new_york", "a\u00a0b", "x\u2028y", "_", "tab\tword", "\r", "é"]


def fitted(folder: Path, odd: list[str], noise: float) -> Path:
    world = planted(400, 20, noise)
    words = [*world.source.index_to_key[: 400 - len(odd)], *odd]
    source = WordVectors(words, world.source.vectors)
    seeds = Lexicon([(words[i], world.target.index_to_key[i]) for i in range(150)])
    translator = Translator(get_method("procrustes")(device="cpu"))
    translator.fit(source, world.target, seeds, languages=("en", "fi"), calibrate=False).save(folder)
    test = Lexicon([(words[i], world.target.index_to_key[i]) for i in range(150, 390)])
    test.save(folder.parent / "test.tsv")
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fitted(tmp_path_factory.mktemp("export") / "en-fi", ODD, 0.4)


def as_vecmap_reads(path: Path) -> tuple[list[str], np.ndarray]:
    """One line after another, divided at the first space; numbers divided by spaces."""
    with path.open(encoding="utf-8", errors="strict") as file:
        count, dim = map(int, file.readline().split(" "))
        words, rows = [], np.empty((count, dim), np.float32)
        for row in range(count):
            word, numbers = file.readline().split(" ", 1)
            words.append(word)
            rows[row] = np.array(numbers.split(" "), np.float32)
        assert not file.readline()
    return words, rows


def test_every_reader_takes_the_files(model: Path, tmp_path: Path) -> None:
    gensim = pytest.importorskip(
        "gensim.models", reason="gensim is not installed: it does NOT read the files"
    )
    for form, limit in (("vec", None), ("bin", None), ("vec", 50)):
        folder = tmp_path / f"{form}{limit}"
        options = ["--limit", str(limit)] if limit else []
        assert run(["export", str(model), "-o", str(folder), "--format", form, *options]) == 0
        assert sorted(path.name for path in folder.iterdir()) == [f"en.{form}", f"fi.{form}"]
        keyed = gensim.KeyedVectors.load_word2vec_format(str(folder / f"en.{form}"), binary=form == "bin")
        own = WordVectors.load(folder / f"en.{form}")
        assert keyed.index_to_key == own.index_to_key and np.array_equal(
            keyed.vectors, np.asarray(own.vectors)
        )
        assert len(own) == (limit or 400 - 2)
        if not limit:
            assert own.index_to_key[-6:] == ["new_york", "a_b", "x_y", "_", "tab_word", "é"]
    words, rows = as_vecmap_reads(tmp_path / "vecNone" / "en.vec")
    assert words == WordVectors.load(tmp_path / "vecNone" / "en.vec").index_to_key
    data = (tmp_path / "vecNone" / "en.vec").read_bytes()
    tokens = data.split()  # fastText: whatever stands between blanks
    assert len(tokens) == 2 + len(words) * (1 + rows.shape[1])
    muse = [line.rstrip().split(" ", 1)[0] for line in data.decode("utf-8").split("\n")[1:-1]]
    assert muse == words and all(words)


@pytest.mark.parametrize("retrieval", ["nn", "csls"])
def test_vecmaps_evaluation_of_the_files_equals_ours(tmp_path: Path, retrieval: str) -> None:
    model = fitted(tmp_path / "en-fi", ["new york"], 2.0)
    assert run(["export", str(model), "-o", str(tmp_path / "out")]) == 0
    (source_words, x), (target_words, z) = (
        as_vecmap_reads(tmp_path / "out" / f"{code}.vec") for code in ("en", "fi")
    )
    x, z = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, z))
    test = Lexicon.load(model.parent / "test.tsv")
    gold: dict[int, set[int]] = {}
    for a, b in test.pairs:
        gold.setdefault(source_words.index(a), set()).add(target_words.index(b))
    scores = x[sorted(gold)] @ z.T
    if retrieval == "csls":
        neighbourhood = np.sort(x @ z.T, axis=0)[-10:].mean(axis=0)
        scores = 2 * scores - neighbourhood
    best = scores.argmax(axis=1)
    accuracy = np.mean([word in gold[row] for word, row in zip(best.tolist(), sorted(gold), strict=True)])
    ours = Translator.load(model).evaluate(test)
    assert 0 < accuracy < 1
    assert getattr(ours, retrieval).p_at_1 == pytest.approx(accuracy, abs=1e-9)


def test_files_are_replaced_only_on_request(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fi.vec").write_text("precious")
    assert run(["export", str(model), "-o", str(tmp_path)]) == 2
    assert "fi.vec: is there already" in capsys.readouterr().err and not (tmp_path / "en.vec").exists()
    assert run(["export", str(model), "-o", str(tmp_path), "--force"]) == 0
    vectors = next(path.parent for path in model.rglob("vocabulary.txt") if "new york" in path.read_text())
    assert run(["convert", str(vectors), "-o", str(tmp_path / "s.vec")]) == 0
    assert " " not in "".join(as_vecmap_reads(tmp_path / "s.vec")[0])
