"""Vectors of a data set: how they are read, and that they are read once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bilex.core.errors import BilexError
from bilex.vectors import WordVectors
from bilex_bench.datasets import DataFolder, load_vectors

WORDS = ["The", "the", "Dog", "cat", "CAT", "house"]
MATRIX = np.arange(1, 1 + len(WORDS) * 4, dtype=np.float32).reshape(-1, 4)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    root = tmp_path / "data"
    root.mkdir()
    (root / "en-fi.train.tsv").write_text("dog\tkoira\n")
    vectors = WordVectors(WORDS, MATRIX)
    vectors.save(root / "en.vec")
    WordVectors([word.lower() for word in ("a", "b", "c")], MATRIX[:3]).save(root / "fi.npy")
    vectors.save(root / "fr.npy")
    WordVectors(["x", "y"], MATRIX[:2]).save(root / "ru", "safetensors")
    return DataFolder.open(root)


@pytest.mark.parametrize("cached", [False, True])
def test_lower_cased_the_first_stays(folder: DataFolder, tmp_path: Path, cached: bool) -> None:
    cache = tmp_path / "cache" if cached else None
    for language in ("en", "fr"):
        for _ in range(2):
            vectors = load_vectors(folder, language, None, cache)
            assert vectors.index_to_key == ["the", "dog", "cat", "house"]
            np.testing.assert_array_equal(vectors.vectors, MATRIX[[0, 2, 3, 5]])
            assert load_vectors(folder, language, 3, cache).index_to_key == ["the", "dog"]


def test_a_kept_file_is_not_parsed_again_until_it_changes(folder: DataFolder, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    path = folder.vectors_path("en")
    before = path.stat()
    first = load_vectors(folder, "en", None, cache)
    path.write_bytes(path.read_bytes().replace(b"house", b"mouse"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = load_vectors(folder, "en", None, cache)
    assert again.index_to_key == first.index_to_key == ["the", "dog", "cat", "house"]
    np.testing.assert_array_equal(again.vectors, first.vectors)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert load_vectors(folder, "en", None, cache).index_to_key[-1] == "mouse"
    WordVectors(["new"], MATRIX[:1]).save(path)
    assert load_vectors(folder, "en", None, cache).index_to_key == ["new"]


def test_kept_vectors_are_a_memory_map(folder: DataFolder, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    vectors = load_vectors(folder, "en", None, cache)
    assert not vectors.vectors.flags.writeable
    assert str(cache) in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("language", ["fi", "ru"])
def test_what_can_be_mapped_is_not_copied(folder: DataFolder, tmp_path: Path, language: str) -> None:
    cache = tmp_path / "cache"
    vectors = load_vectors(folder, language, 2, cache)
    assert len(vectors) == 2
    assert not vectors.vectors.flags.writeable
    assert not [entry for entry in cache.iterdir() if entry.is_dir()]


def test_of_several_at_once_one_parses(folder: DataFolder, tmp_path: Path) -> None:
    # A lock belongs to an open file, so threads exclude each other as processes do.
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: load_vectors(folder, "en", None, tmp_path / "cache"), range(6)))
    parsed = [vectors for vectors in found if vectors.report and vectors.report.format == "text"]
    assert len(parsed) == 1
    assert all(vectors.index_to_key == found[0].index_to_key for vectors in found)
    assert len([entry for entry in (tmp_path / "cache").iterdir() if entry.is_dir()]) == 1


def test_what_was_kept_and_is_damaged_is_reported(folder: DataFolder, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    load_vectors(folder, "en", None, cache)
    kept = next(entry for entry in cache.iterdir() if entry.is_dir())
    (kept / "vocabulary.txt").write_text("other\n")
    with pytest.raises(BilexError, match=r"the cached vectors of .*en\.vec are damaged; remove that folder"):
        load_vectors(folder, "en", None, cache)


def test_a_cache_that_cannot_be_written_is_reported(folder: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(BilexError, match="cache: cannot be written"):
        load_vectors(folder, "en", None, tmp_path / "cache")
