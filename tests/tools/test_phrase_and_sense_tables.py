"""The programs behind the tables of docs/phrases.md and docs/lemmas.md, on planted vocabularies."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from bilex import Lexicon, Translator, WordVectors, get_method
from planted import planted

ROOT = Path(__file__).parents[2]


@pytest.fixture
def timings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"timings.{name}")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = planted(300, 16, 0.05)
    fitted = Translator.fit(get_method("procrustes")(), made.source, made.target, made.pairs(0, 100))
    path = tmp_path_factory.mktemp("planted") / "model"
    fitted.save(path)
    return path


def test_phrases_are_measured_beside_words(timings, model: Path, tmp_path: Path, capsys) -> None:
    made = planted(300, 16, 0.05)
    words, keys = made.source.index_to_key, made.target.index_to_key
    rows = [f"{words[i]}\t{keys[i]}" for i in range(150, 200)]
    # Of these phrases the last word alone is right.
    rows += [f"{words[i]} {words[i + 1]}\t{keys[i + 1]}" for i in range(200, 250)]
    rows += [f"{words[5]} unknown\t{keys[5]}", f"{words[0]}\t{keys[0]}"]  # an unknown word; a seed
    test = tmp_path / "test.tsv"
    test.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert timings("phrases").main([str(model), str(test)]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    found = {line[:44].strip(): [float(cell) for cell in line[44:].split()] for line in lines}
    assert found["single words"] == [50, 100, 100]
    assert found["the last word alone"] == [50, 100, 100]
    assert found["the first word alone"][1] < 20
    assert found["composed (a = 0.001)"][0] == 50 and "the language model alone" not in found


def test_bilex_composes_as_the_program_does(timings, model: Path) -> None:
    translator = Translator.load(model)
    phrase = " ".join(translator.space.source.index_to_key[place] for place in (0, 150))
    program = timings("phrases")
    made = program.composed_rows([phrase], translator.space.source, program.composing_weights)[0]
    own = translator.phrase_vectors([phrase], "source")[0]
    assert own is not None
    np.testing.assert_allclose(made, own / np.linalg.norm(own), rtol=1e-5, atol=1e-6)
    wider = program.smooth(0.001)([0, 150], 300)
    np.testing.assert_allclose(wider, program.composing_weights([0, 150], 300), rtol=1e-6)


def test_senses_are_separated(timings, tmp_path: Path) -> None:
    article = b"bank\n1. pankki, laitos\n2. ranta, penger\nfish\n1. kala\n"
    (tmp_path / "d.dict").write_bytes(article)
    (tmp_path / "d.index").write_text("bank\tA\to\nfish\to\tN\n", encoding="utf-8")
    vectors = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], np.float32)
    words = WordVectors(["pankki", "laitos", "ranta", "penger"], vectors)
    headwords, within, across = timings("senses").cosines(tmp_path / "d.index", words)
    assert (headwords, len(within), len(across)) == (1, 2, 4)
    assert min(within) > 0.9 and max(across) < 0.3
    assert len(Lexicon.read(tmp_path / "d.index")) == 5
