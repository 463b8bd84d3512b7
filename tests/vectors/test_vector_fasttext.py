from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilex import BilexError
from bilex.vectors import Subwords, WordVectors
from bilex.vectors.fasttext import ngram_buckets

DATA = Path(__file__).parent / "data"
TOLERANCE = 1e-7


def load(folder: Path, content: bytes) -> WordVectors:
    path = folder / "x.bin"
    path.unlink(missing_ok=True)  # a mapped file is not written over
    path.write_bytes(content)
    return WordVectors.load(path, format="fasttext")


def recorded(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["skipgram", "without_subwords"])
def test_vectors_are_those_the_fasttext_library_gave(name: str) -> None:
    vectors = WordVectors.load(DATA / f"{name}.bin", lowercase=False, keep_markers=True)
    record = recorded(name)
    assert vectors.index_to_key == record["words"]
    assert vectors.report.format == "fasttext"
    for word, expected in record["vectors"].items():
        np.testing.assert_allclose(vectors[word], expected, atol=TOLERANCE, rtol=0)


def test_the_record_has_words_outside_the_vocabulary_and_outside_ascii() -> None:
    record = recorded("skipgram")
    outside = set(record["vectors"]) - set(record["words"])
    assert len(outside) == 8
    assert sum(not word.isascii() for word in outside) >= 4


def test_without_subwords_an_unknown_word_has_no_vector() -> None:
    vectors = WordVectors.load(DATA / "without_subwords.bin", lowercase=False)
    assert vectors.subwords is None
    with pytest.raises(KeyError):
        vectors["tilted"]


@pytest.mark.parametrize("name", ["skipgram", "without_subwords"])
def test_against_the_live_library(name: str) -> None:
    library = pytest.importorskip("fasttext")
    model = library.load_model(str(DATA / f"{name}.bin"))
    vectors = WordVectors.load(DATA / f"{name}.bin", lowercase=False, keep_markers=True)
    words = model.get_words()
    if name == "skipgram":
        words = [*words, "quite", "unheardof", "äöü", "слово", "猫と犬", "🙂🙂"]
    for word in words:  # fasttext-community gives unit vectors where fasttext gives them as they are
        ours, theirs = (v / np.linalg.norm(v) for v in (vectors[word], model.get_word_vector(word)))
        np.testing.assert_allclose(ours, theirs, atol=1e-6, rtol=0)


def test_against_gensim() -> None:
    pytest.importorskip("gensim")
    from gensim.models.fasttext import load_facebook_vectors

    theirs = load_facebook_vectors(str(DATA / "skipgram.bin"))
    ours = WordVectors.load(DATA / "skipgram.bin", lowercase=False, keep_markers=True)
    taken_over = WordVectors.from_gensim(theirs)
    for word in [*ours.index_to_key, "catlike", "собаками", "猫猫"]:
        if word != "</s>":  # gensim adds n-grams to the mark of the end of a sentence, fastText does not
            np.testing.assert_allclose(ours[word], theirs[word], atol=1e-6)
            np.testing.assert_allclose(taken_over[word], theirs[word], atol=1e-6)


def test_subwords_survive_conversion_and_preprocessing(tmp_path: Path) -> None:
    vectors = WordVectors.load(DATA / "skipgram.bin", lowercase=False, keep_markers=True).preprocessed(
        "unit", "center", "unit"
    )
    vectors.save(tmp_path / "v")
    loaded = WordVectors.load(tmp_path / "v", lowercase=False)
    for word in ("catlike", "собаками"):
        np.testing.assert_array_equal(loaded[word], vectors[word])
    raw = WordVectors.load(DATA / "skipgram.bin", lowercase=False, keep_markers=True)
    unit = raw.vectors / np.linalg.norm(raw.vectors, axis=1, keepdims=True)
    expected = raw["catlike"] / np.linalg.norm(raw["catlike"]) - unit.mean(axis=0)
    np.testing.assert_allclose(loaded["catlike"], expected / np.linalg.norm(expected), atol=1e-5)
    for dtype in ("float16", "int8"):
        vectors.save(tmp_path / "small", dtype=dtype)
        small = WordVectors.load(tmp_path / "small", lowercase=False)
        assert small["catlike"] @ vectors["catlike"] > 0.999


def test_ngrams_of_a_saved_folder_need_numpy_and_safetensors_only(tmp_path: Path) -> None:
    vectors = WordVectors.load(DATA / "skipgram.bin", lowercase=False)
    vectors.save(tmp_path / "v")
    program = f"""
import sys
sys.modules.update(dict.fromkeys(("numba", "scipy", "torch")))  # none of them can be imported
from bilex.vectors import WordVectors
print(WordVectors.load({str(tmp_path / "v")!r}, lowercase=False)["catlike"].tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == vectors["catlike"].tolist()


def test_a_word_too_short_for_any_ngram_has_no_vector() -> None:
    vectors = WordVectors.load(DATA / "skipgram.bin", lowercase=False, keep_markers=True)
    with pytest.raises(KeyError):
        vectors.subwords.__class__(vectors.subwords.rows, 4, 5).vector("a")


def test_ngrams_hash_as_the_published_constants_say() -> None:
    def hashed(ngram: str) -> int:
        value = 2166136261
        for byte in ngram.encode():
            value = ((value ^ (byte | (0xFFFFFF00 if byte & 0x80 else 0))) * 16777619) & 0xFFFFFFFF
        return value

    word, buckets = "läb", 1000003
    marked = f"<{word}>"
    expected = [
        hashed(marked[start:end]) % buckets
        for start in range(len(marked))
        for end in range(start + 1, min(start + 3, len(marked)) + 1)
        if marked[start:end] not in ("<", ">")
    ]
    found, counts = ngram_buckets([b"x", word.encode(), b""], 1, 3, buckets)
    assert counts.tolist() == [4, len(expected), 1]
    assert found[4:-1].tolist() == expected


def test_limit_and_lower_case() -> None:
    limited = WordVectors.load(DATA / "skipgram.bin", limit=5, lowercase=False, keep_markers=True)
    assert len(limited) == 5
    np.testing.assert_allclose(limited["catlike"], recorded("skipgram")["vectors"]["catlike"], atol=TOLERANCE)
    assert "mädchen" in WordVectors.load(DATA / "skipgram.bin", lowercase=True)


def test_quantised_models_are_refused_in_one_sentence() -> None:
    with pytest.raises(
        BilexError, match=r"quantised\.ftz: is a quantised \(\.ftz\) model, .*use the \.bin model\.$"
    ):
        WordVectors.load(DATA / "quantised.ftz", lowercase=False)


def test_every_truncation_is_reported(tmp_path: Path) -> None:
    content = (DATA / "without_subwords.bin").read_bytes()
    words = len(recorded("without_subwords")["words"])
    needed = content.index(struct.pack("<?qq", False, words, 8)) + 17 + words * 8 * 4
    for length in [*range(4, needed, 37), needed - 1]:
        with pytest.raises(BilexError, match=r"is cut off after [\d,]+ bytes"):
            load(tmp_path, content[:length])
    load(tmp_path, content[:needed])


@pytest.mark.parametrize(
    ("offset", "value", "says"),
    [
        (4, 99, "version 99"),
        (8, -1, "make no sense"),
        (8, 9, "does not fit"),
        (8 + 4 * 8, 2**31 - 1, "does not fit"),
        (8 + 56 + 4, 0, "its dictionary says"),
    ],
)
def test_settings_that_lie(offset: int, value: int, says: str, tmp_path: Path) -> None:
    content = bytearray((DATA / "skipgram.bin").read_bytes())
    struct.pack_into("<i", content, offset, value)
    with pytest.raises(BilexError, match=says):
        load(tmp_path, bytes(content))


@pytest.mark.parametrize(
    "changes",
    [{"longest": 10**6}, {"longest": 0}, {"shortest": float("inf")}, {"steps": ["center"]}, {"steps": 3}],
)
def test_a_folder_whose_subwords_make_no_sense(tmp_path: Path, changes: dict[str, Any]) -> None:
    WordVectors.load(DATA / "skipgram.bin", lowercase=False, keep_markers=True).save(tmp_path / "v")
    path = tmp_path / "v" / "config.json"
    config = json.loads(path.read_text())
    config["subwords"] |= changes
    path.write_text(json.dumps(config))
    with pytest.raises(BilexError, match="subwords"):
        WordVectors.load(tmp_path / "v", lowercase=False)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_ngrams_that_are_not_finite_make_no_vector(value: float) -> None:
    rows = np.array([[value, 1], [-value, 1]], np.float32)
    words = WordVectors(["a"], np.ones((1, 2), np.float32), subwords=Subwords(rows, 1, 3))
    with pytest.raises(KeyError):
        words["unknown"]
