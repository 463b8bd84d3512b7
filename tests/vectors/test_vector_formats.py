from __future__ import annotations

import hashlib
import json
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilex import BilexError
from bilex.core.files import sha256
from bilex.vectors import WordVectors, folder
from bilex.vectors.formats import format_of_name

FILES = {
    "v.vec": "text",
    "v.txt": "text",
    "v.vec.gz": "text",
    "v.txt.bz2": "text",
    "v.vec.xz": "text",
    "v.bin": "binary",
    "v.npy": "npy",
    "v": "safetensors",
}
WORDS = ["the", "Zürich", "猫", "кошка", "1", "a'b", "\u00a0", "e\u0301", "😀"]


@pytest.fixture
def vectors() -> WordVectors:
    matrix = np.random.default_rng(1).standard_normal((len(WORDS), 5)).astype(np.float32)
    matrix[0, 0], matrix[1, 1] = 1e-40, 3.4e38
    return WordVectors(list(WORDS), matrix)


def assert_same(found: WordVectors, expected: WordVectors) -> None:
    assert found.index_to_key == expected.index_to_key
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    assert found.vectors.dtype == np.float32
    assert found.report is not None
    assert found.report.sentences() == []


@pytest.mark.parametrize(("name", "kind"), FILES.items())
def test_round_trip(vectors: WordVectors, tmp_path: Path, name: str, kind: str) -> None:
    vectors.save(tmp_path / name)
    loaded = WordVectors.load(tmp_path / name, lowercase=False)
    assert_same(loaded, vectors)
    assert loaded.report.format == kind
    assert_same(WordVectors.load(str(tmp_path / name), format=kind, lowercase=False), vectors)
    assert WordVectors.load(tmp_path / name, limit=3, lowercase=False).index_to_key == WORDS[:3]
    leftovers = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert leftovers == []


@pytest.mark.parametrize("name", FILES)
def test_lower_casing_in_every_format(tmp_path: Path, name: str) -> None:
    WordVectors(["Cat", "cat", "Dog"], np.array([[1], [2], [3]], np.float32)).save(tmp_path / name)
    loaded = WordVectors.load(tmp_path / name, lowercase=True)
    assert loaded.index_to_key == ["cat", "dog"]
    assert np.asarray(loaded.vectors).ravel().tolist() == [1, 3]
    assert loaded.report.merged == 1
    assert loaded.report.sentences()[0].endswith("1 word was merged into an earlier word by lower-casing.")


words_of = st.lists(
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8),
    min_size=1,
    max_size=12,
    unique=True,
)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


def as_vectors(words: list[str], dim: int, data: st.DataObject) -> WordVectors:
    flat = data.draw(st.lists(floats, min_size=len(words) * dim, max_size=len(words) * dim))
    matrix = np.array(flat, np.float32).reshape(len(words), dim)
    matrix[~matrix.any(axis=1), 0] = 1
    return WordVectors(words, matrix)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=words_of, dim=st.integers(1, 6), data=st.data(), name=st.sampled_from(sorted(FILES)))
def test_what_is_saved_comes_back_or_is_refused(
    tmp_path: Path, words: list[str], dim: int, data: st.DataObject, name: str
) -> None:
    vectors = as_vectors(words, dim, data)
    path = tmp_path / f"folder of {name}" / name  # v.npy would not overwrite the v.txt of another format
    try:
        vectors.save(path)
    except BilexError as error:
        assert FILES[name] != "safetensors"
        assert "cannot be written in this format" in str(error)
        return
    # Words that end in a number are not always distinct from numbers in text; all others must come back.
    if FILES[name] == "text" and any(
        any(c.isdigit() or c in "nN" for c in word.split(" ")[-1]) for word in words
    ):
        WordVectors.load(path, format=FILES[name], lowercase=False)
        return
    assert_same(WordVectors.load(path, format=FILES[name], lowercase=False), vectors)


@pytest.mark.parametrize(
    ("name", "word"),
    [("v.vec", "a\nb"), ("v.vec", " a"), ("v.bin", "a b"), ("v.npy", "a\nb"), ("v.vec", "\ud800")],
)
def test_words_a_format_cannot_hold_are_refused_and_nothing_is_written(
    tmp_path: Path, name: str, word: str
) -> None:
    with pytest.raises(BilexError, match="cannot be written in this format; save a safetensors folder"):
        WordVectors([word], np.ones((1, 2), np.float32)).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_escapes_words_with_newlines(tmp_path: Path) -> None:
    words = ["a\nb", "a\\nb", "\r", "\\", "", " "]
    WordVectors(words, np.ones((6, 2), np.float32)).save(tmp_path / "v")
    assert WordVectors.load(tmp_path / "v", lowercase=False).index_to_key == words


def test_text_from_other_programs(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_bytes(b"the 0.1 -0.2\n. 0.3 4e-2\n")
    assert WordVectors.load(tmp_path / "glove.txt", lowercase=False).index_to_key == ["the", "."]


def test_binary_without_newlines_between_entries(tmp_path: Path) -> None:
    entries = b"".join(word + b" " + struct.pack("<2f", 1, 2) for word in (b"a", b"b"))
    (tmp_path / "w.bin").write_bytes(b"2 2\n" + entries)
    loaded = WordVectors.load(tmp_path / "w.bin", lowercase=False)
    assert loaded.index_to_key == ["a", "b"]
    assert loaded.report.sentences() == []


def test_binary_with_more_than_the_header_announces(tmp_path: Path) -> None:
    entry = b" " + struct.pack("<2f", 1, 2) + b"\n"
    (tmp_path / "w.bin").write_bytes(b"1 2\na" + entry + b"b" + entry)
    loaded = WordVectors.load(tmp_path / "w.bin", lowercase=False)
    assert loaded.index_to_key == ["a"]
    assert "more data follows the 1 words" in loaded.report.sentences()[0]


def test_compression_goes_by_content_not_by_name(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v.vec.gz")
    (tmp_path / "v.vec.gz").rename(tmp_path / "renamed.vec")
    assert_same(WordVectors.load(tmp_path / "renamed.vec", lowercase=False), vectors)


def test_npy_of_other_types_and_orders(tmp_path: Path) -> None:
    matrix = np.arange(1, 7, dtype=np.float64).reshape(3, 2)
    (tmp_path / "v.words").write_text("a\r\nb\r\nc\r\n", encoding="utf-8", newline="")
    for array in (
        matrix,
        matrix.astype(np.float16),
        np.asfortranarray(matrix, np.float32),
        matrix.astype(">f4"),
    ):
        np.save(tmp_path / "v.npy", array)
        loaded = WordVectors.load(tmp_path / "v.npy", lowercase=False)
        assert loaded.index_to_key == ["a", "b", "c"]
        np.testing.assert_array_equal(loaded.vectors, matrix)
        assert loaded.vectors.dtype == np.dtype("=f4")


def test_npy_leaves_out_what_is_bad_and_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.array([[1, 2], [np.nan, 1], [0, 0], [3, 4], [5, 6]], np.float32))
    (tmp_path / "v.txt").write_text("a\nb\nc\na\n\n", encoding="utf-8")
    loaded = WordVectors.load(tmp_path / "v.npy", lowercase=False)
    assert loaded.index_to_key == ["a"]
    report = loaded.report
    assert (report.places["NaN or infinity"], report.places["only zeros"]) == ([2], [3])
    assert (report.places["the word is repeated"], report.places["broken"]) == ([4], [5])


def test_a_clean_npy_is_mapped_not_copied(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v.npy")
    assert not WordVectors.load(tmp_path / "v.npy", lowercase=False).vectors.flags.writeable


def test_the_folder_is_mapped_and_records_preprocessing(vectors: WordVectors, tmp_path: Path) -> None:
    unit = WordVectors(WORDS, vectors.vectors[:, 2:].copy()).preprocessed("unit", "center", "unit")
    unit.save(tmp_path / "v")
    loaded = WordVectors.load(tmp_path / "v", lowercase=False)
    assert loaded.preprocessing == ("unit", "center", "unit")
    assert not loaded.vectors.flags.writeable
    assert loaded.vectors.flags.aligned
    np.testing.assert_array_equal(loaded.vectors, unit.vectors)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 1e-3), ("int8", 1e-2)])
def test_packed_folders(tmp_path: Path, dtype: str, tolerance: float) -> None:
    matrix = np.random.default_rng(2).standard_normal((200, 40)).astype(np.float32)
    unit = WordVectors([f"w{i}" for i in range(200)], matrix).preprocessed("unit")
    unit.save(tmp_path / "v", dtype=dtype)
    loaded = WordVectors.load(tmp_path / "v", lowercase=False)
    assert np.abs(loaded.vectors - unit.vectors).max() < tolerance
    assert (loaded.vectors * unit.vectors).sum(axis=1).min() > 0.9999
    np.testing.assert_allclose(np.linalg.norm(loaded.vectors, axis=1), 1, atol=1e-6)
    size = (tmp_path / "v" / folder.VECTORS).stat().st_size
    assert size < 200 * 40 * np.dtype(dtype).itemsize + 2000
    assert len(WordVectors.load(tmp_path / "v", limit=7, lowercase=False)) == 7


def test_int8_rounds_to_the_nearest_of_255_steps(tmp_path: Path) -> None:
    matrix = np.random.default_rng(3).standard_normal((50, 9)).astype(np.float32)
    WordVectors([str(i) for i in range(50)], matrix).save(tmp_path / "v", dtype="int8")
    step = np.abs(matrix).max(axis=1, keepdims=True) / 127
    assert (np.abs(WordVectors.load(tmp_path / "v", lowercase=False).vectors - matrix) <= step * 0.5001).all()


def test_saving_again_replaces_a_folder_but_never_a_strangers(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v")
    vectors.head(2).save(tmp_path / "v")
    assert len(WordVectors.load(tmp_path / "v", lowercase=False)) == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(BilexError, match="other things in it"):
        vectors.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_verify_finds_a_flipped_byte(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v")
    WordVectors.load(tmp_path / "v")
    for file in sorted((tmp_path / "v").iterdir()):
        content = bytearray(file.read_bytes())
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(
            BilexError, match=r"changed|damaged|another kind|not valid JSON|not those of its files"
        ):
            WordVectors.load(tmp_path / "v")
        file.write_bytes(content)
    WordVectors.load(tmp_path / "v")


def as_the_first_version(path: Path) -> None:
    """Turn a folder into one of version 1, which kept its checksums in config.json."""
    config = json.loads((path / folder.CONFIG).read_text(encoding="utf-8")) | {"version": 1}
    others = [file for file in sorted(path.iterdir()) if file.name not in (folder.CONFIG, "SHA256SUMS")]
    config["sha256"] = {file.name: sha256(file) for file in others}
    config["config_sha256"] = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
    (path / folder.CONFIG).write_text(json.dumps(config), encoding="utf-8")
    (path / "SHA256SUMS").unlink()


def test_folders_of_the_first_version_are_read_verified_and_replaced(
    vectors: WordVectors, tmp_path: Path
) -> None:
    vectors.save(tmp_path / "v")
    as_the_first_version(tmp_path / "v")
    assert_same(WordVectors.load(tmp_path / "v", lowercase=False), vectors)
    for name in (folder.VECTORS, folder.CONFIG):
        content = (tmp_path / "v" / name).read_bytes()
        (tmp_path / "v" / name).write_bytes(content.replace(b'"dim": 5', b'"dim": 6')[:-1] + b"}")
        with pytest.raises(BilexError, match="was changed or damaged"):
            WordVectors.load(tmp_path / "v")
        (tmp_path / "v" / name).write_bytes(content)
    vectors.head(2).save(tmp_path / "v")
    assert (tmp_path / "v" / "SHA256SUMS").read_text().startswith("# bilex-vectors\n")
    assert len(WordVectors.load(tmp_path / "v")) == 2


@pytest.mark.parametrize("name", ["v.doc", "v.npy.gz", "v.gz", "v.bin.xz"])
def test_suffixes_that_name_no_format(name: str) -> None:
    with pytest.raises(BilexError, match="names no format"):
        format_of_name(Path(name))


def test_config_is_readable_and_names_everything(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v")
    config = json.loads((tmp_path / "v" / folder.CONFIG).read_text(encoding="utf-8"))
    assert config["format"] == "bilex-vectors"
    assert (config["version"], config["words"], config["dim"], config["dtype"]) == (
        2,
        len(WORDS),
        5,
        "float32",
    )
    assert sorted(file.name for file in (tmp_path / "v").iterdir()) == [
        "SHA256SUMS",
        "config.json",
        "vectors.safetensors",
        "vocabulary.txt",
    ]


_KILLED_BETWEEN = """
import os, signal, sys
from pathlib import Path
import numpy as np
from bilex.vectors import WordVectors
real, at = Path.replace, int(sys.argv[2])
calls = []
def replace(self, target):
    calls.extend([target] if self.exists() else [])
    return os.kill(os.getpid(), signal.SIGKILL) if len(calls) == at else real(self, target)
Path.replace = replace
WordVectors(["uusi", "sana"], np.full((2, 3), 2, np.float32)).save(sys.argv[1])
"""


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("there_was_one", [True, False])
def test_a_kill_between_matrix_and_word_list_does_not_mix_two_saves(
    tmp_path: Path, at: int, there_was_one: bool
) -> None:
    path = tmp_path / "v.npy"
    old = WordVectors(["old", "word"], np.ones((2, 3), np.float32))
    if there_was_one:
        old.save(path)
    ended = subprocess.run([sys.executable, "-c", _KILLED_BETWEEN, str(path), str(at)], check=False)
    assert ended.returncode == -signal.SIGKILL
    if there_was_one or at == 3:  # the third file that is put in place is the word list
        found = WordVectors.load(path, lowercase=False)
        assert found.index_to_key == (["uusi", "sana"] if at == 3 else ["old", "word"])
        assert (found.vectors == (2 if at == 3 else 1)).all()
    else:
        assert not path.exists()
    old.save(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["v.npy", "v.txt"]
    assert WordVectors.load(path, lowercase=False).index_to_key == ["old", "word"]


@pytest.mark.parametrize("name", ["v.vec", "v.bin", "v.npy"])
def test_markers_of_trainers_are_no_words(name: str, tmp_path: Path) -> None:
    words = ["</s>", "the", "<unk>", "<pad>", "UNK", "[PAD]", "unk", "s"]
    vectors = WordVectors(words, np.arange(1, 17, dtype=np.float32).reshape(8, 2))
    vectors.save(tmp_path / name)
    found = WordVectors.load(tmp_path / name, lowercase=False)
    assert found.index_to_key == ["the", "unk", "s"] and found["s"].tolist() == [15, 16]
    assert found.report is not None and found.report.markers == 5 and not found.report.sentences()
    assert WordVectors.load(tmp_path / name, keep_markers=True, lowercase=False).index_to_key == words


def test_vectors_and_dictionaries_are_lower_cased_alike(tmp_path: Path) -> None:
    """By default both are, so that a seed dictionary finds its words; lowercase=False keeps them in both."""
    from bilex.lexicon import Lexicon

    WordVectors(["Haus", "haus", "Tür"], np.eye(3, dtype=np.float32)).save(tmp_path / "de.vec")
    (tmp_path / "de-en.tsv").write_text("Haus\tHouse\nTür\tdoor\n", encoding="utf-8")
    assert WordVectors.load(tmp_path / "de.vec").index_to_key == ["haus", "tür"]
    assert Lexicon.load(tmp_path / "de-en.tsv").pairs[0] == ("haus", "house")
    kept = WordVectors.load(tmp_path / "de.vec", lowercase=False)
    assert kept.index_to_key == ["Haus", "haus", "Tür"]
    assert Lexicon.load(tmp_path / "de-en.tsv", lowercase=False).pairs[0] == ("Haus", "House")
