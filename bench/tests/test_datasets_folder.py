"""Data folders: their layouts, their vectors, what is reported when something is missing."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError
from bilex.vectors import WordVectors
from bilex_bench.datasets import DataFolder, load_vectors
from bilex_bench.datasets.checking import check_folder


def write(path: Path, text: str = "dog\tkoira\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def xling(root: Path, *pairs: str) -> None:
    for pair in pairs:
        write(root / pair / f"yacle.train.freq.5k.{pair}.tsv", "dog\tKoira\ncat\tkissa\n")
        write(root / pair / f"yacle.train.freq.1k.{pair}.tsv")
        write(root / pair / f"yacle.train.freq.500.{pair}.tsv")
        write(root / pair / f"yacle.test.freq.2k.{pair}.tsv", "house\ttalo\n")


@pytest.mark.parametrize("below", [".", "xling", "dictionaries/xling", "xling-eval/bli_datasets"])
def test_xling_is_found_at_the_root_and_below(tmp_path: Path, below: str) -> None:
    xling(tmp_path / below, "en-fi", "ru-fr")
    folder = DataFolder.open(tmp_path)
    assert folder.dictionaries.layout == "xling"
    assert folder.path == tmp_path
    assert tuple(folder.dictionaries.pairs) == ("en-fi", "ru-fr")
    assert list(folder.dictionaries.pairs["en-fi"].seeds) == ["500", "1k", "5k"]
    assert list(folder.seeds("en-fi", "5k").pairs) == [("dog", "koira"), ("cat", "kissa")]
    assert list(folder.test("ru-fr").pairs) == [("house", "talo")]


def test_a_pair_in_the_other_direction_is_swapped(tmp_path: Path) -> None:
    xling(tmp_path, "en-fi")
    folder = DataFolder.open(tmp_path)
    assert list(folder.dictionaries.pairs["en-fi"].seeds) == ["500", "1k", "5k"]
    assert list(folder.seeds("fi-en", "5k").pairs) == [("koira", "dog"), ("kissa", "cat")]
    assert list(folder.test("fi-en").pairs) == [("talo", "house")]


def test_xlings_two_stray_files_of_the_other_direction_are_not_taken(tmp_path: Path) -> None:
    xling(tmp_path, "en-fr")
    write(tmp_path / "en-fr" / "yacle.test.freq.2k.fr-en.tsv", "talo\thouse\n")
    folder = DataFolder.open(tmp_path)
    assert tuple(folder.dictionaries.pairs) == ("en-fr",)
    assert list(folder.test("en-fr").pairs) == [("house", "talo")]


def test_panlex(tmp_path: Path) -> None:
    for pair in ("bg-ca", "ca-bg"):
        for size in (5000, 2000, 1000, 500):
            write(tmp_path / "all" / pair / f"{pair}.train.{size}.cc.trans", f"{pair}\ttrain\n")
        write(tmp_path / "all" / pair / f"{pair}.test.2000.cc.trans", f"{pair}\ttest\n")
    folder = DataFolder.open(tmp_path, "panlex")
    assert (folder.name, folder.dictionaries.layout) == ("panlex", "panlex")
    assert tuple(folder.dictionaries.pairs) == ("bg-ca", "ca-bg")
    assert list(folder.dictionaries.pairs["ca-bg"].seeds) == ["500", "1k", "2k", "5k"]
    assert list(folder.test("ca-bg").pairs) == [("ca-bg", "test")], "stored in both directions: not swapped"


def test_muse(tmp_path: Path) -> None:
    write(tmp_path / "en-fi.0-5000.txt", "dog koira\n")
    write(tmp_path / "en-fi.5000-6500.txt", "house talo\n")
    write(tmp_path / "en-fi.txt", "dog koira\nhouse talo\n")
    folder = DataFolder.open(tmp_path)
    assert folder.dictionaries.layout == "muse"
    assert list(folder.dictionaries.pairs["en-fi"].seeds) == ["5k", "full"]
    assert list(folder.seeds("en-fi", "5k").pairs) == [("dog", "koira")]
    assert list(folder.test("en-fi").pairs) == [("house", "talo")]


@pytest.mark.parametrize(
    ("train", "test", "name"),
    [
        ("en-fi.train.5k.tsv", "en-fi.test.tsv", "5k"),
        ("en-fi/train.tsv", "en-fi/test.csv", "all"),
        ("en-fi/seeds-300.txt", "en-fi/test.txt", "300"),
        ("en-fi.seeds.1000.jsonl", "en-fi/en-fi.test.tsv", "1k"),
    ],
)
def test_plain_names(tmp_path: Path, train: str, test: str, name: str) -> None:
    write(tmp_path / train)
    write(tmp_path / test, "dog,koira\n" if test.endswith(".csv") else "dog\tkoira\n")
    write(tmp_path / "README.txt")
    write(tmp_path / "en-fi.notes.tsv")
    folder = DataFolder.open(tmp_path)
    assert (folder.dictionaries.layout, list(folder.dictionaries.pairs)) == ("plain", ["en-fi"])
    assert list(folder.dictionaries.pairs["en-fi"].seeds) == [name]
    assert folder.test("en-fi").name == str(tmp_path / test)


def test_one_of_several_sets_is_chosen_by_its_name(tmp_path: Path) -> None:
    xling(tmp_path / "dictionaries" / "xling", "en-fi")
    write(tmp_path / "dictionaries" / "mine" / "en-ru.train.tsv")
    assert DataFolder.open(tmp_path, "xling").dictionaries.pairs.keys() == {"en-fi"}
    assert DataFolder.open(tmp_path, "mine").dictionaries.pairs.keys() == {"en-ru"}
    assert [part.name for part in DataFolder.open_all(tmp_path)] == ["mine", "xling"]
    with pytest.raises(BilexError, match=r"several sets of dictionaries \(dictionaries/mine, .*xling\)"):
        DataFolder.open(tmp_path, "other")


@pytest.mark.parametrize(
    "name",
    [
        "en.vec",
        "en.vec.gz",
        "en.bin",
        "en.npy",
        "wiki.en.vec",
        "wiki.en.200k.vec",
        "cc.en.300.vec.gz",
        "cc.en.300.200k.vec",
        "cc.en.300.bin",
        "fasttext.wiki.en.300.vocab_200K.vec",
        "en/config.json",
    ],
)
@pytest.mark.parametrize("below", [".", "vectors"])
def test_vectors_under_the_usual_names(tmp_path: Path, name: str, below: str) -> None:
    write(tmp_path / "en-fi.train.tsv")
    file = write(tmp_path / below / name)
    folder = DataFolder.open(tmp_path)
    assert tuple(folder.vectors) == ("en",)
    assert folder.vectors_path("en") == (file.parent if name.endswith(".json") else file)


def test_what_opens_at_once_is_preferred_and_strangers_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "en-fi.train.tsv")
    for name in ("cc.en.300.vec.gz", "en.vec", "en.npy", "en.txt", "wiki.en.vec", "fi.txt", "ru/other.txt"):
        write(tmp_path / "vectors" / name)
    write(tmp_path / "en.bin")
    folder = DataFolder.open(tmp_path)
    assert tuple(folder.vectors) == ("en",)
    assert folder.vectors_path("en") == tmp_path / "en.bin", "the folder itself comes before vectors/"
    assert DataFolder.open(tmp_path, vectors=tmp_path / "vectors").vectors_path("en").name == "en.npy"


def test_vectors_elsewhere_by_folder_and_by_pattern(tmp_path: Path) -> None:
    write(tmp_path / "data" / "en-fi.train.tsv")
    for language in ("en", "fi"):
        write(tmp_path / "other" / f"my-{language}-v2.txt")
    pattern = str(tmp_path / "other" / "my-{}-v2.txt")
    folder = DataFolder.open(tmp_path / "data", vectors=pattern)
    assert tuple(folder.vectors) == ("en", "fi")
    assert folder.vectors_path("fi") == tmp_path / "other" / "my-fi-v2.txt"
    with pytest.raises(BilexError, match=r"no vectors for 'ru'; looked for .*my-ru-v2\.txt\.$"):
        folder.vectors_path("ru")
    with pytest.raises(BilexError, match="neither a folder nor a pattern"):
        DataFolder.open(tmp_path / "data", vectors=tmp_path / "nowhere")


def test_check_names_what_is_missing_and_reads_nothing(tmp_path: Path) -> None:
    xling(tmp_path, "en-fi", "en-ru")
    for path in tmp_path.rglob("*.tsv"):
        path.write_bytes(b"\xff\xfe no dictionary")
    write(tmp_path / "en.vec", "no vectors")
    write(tmp_path / "fi.vec", "no vectors")
    folder = DataFolder.open(tmp_path)
    folder.check("en-fi", "5k")
    folder.check("fi-en", "0")
    for pair, seeds, sentence in (
        ("en-fi", "3k", r"no seed dictionary '3k' for 'en-fi'; it has 500, 1k, 5k\.$"),
        ("en-ru", "1k", r"no vectors for 'ru'; looked for ru/ .* wiki\.ru\.vec, cc\.ru\.300\.vec"),
        ("fi-ru", "1k", r"no dictionaries for 'fi-ru'; it has en-fi, en-ru\.$"),
    ):
        with pytest.raises(BilexError, match=sentence) as caught:
            folder.check(pair, seeds)
        assert str(tmp_path) in str(caught.value)


def test_a_test_dictionary_must_be_one(tmp_path: Path) -> None:
    write(tmp_path / "en-fi.train.tsv")
    folder = DataFolder.open(tmp_path)
    with pytest.raises(BilexError, match="one test dictionary is needed for 'en-fi', there is none"):
        folder.test("en-fi")
    write(tmp_path / "en-fi.test.1k.tsv")
    write(tmp_path / "en-fi.test.2k.tsv")
    with pytest.raises(BilexError, match=r"there is several \(.*en-fi\.test\.1k\.tsv, .*2k\.tsv\)"):
        DataFolder.open(tmp_path).test("en-fi")


def test_nothing_to_open(tmp_path: Path) -> None:
    with pytest.raises(BilexError, match="there is no such folder"):
        DataFolder.open(tmp_path / "missing")
    with pytest.raises(BilexError, match="no dictionaries that bilex knows"):
        DataFolder.open(tmp_path)
    assert DataFolder.open_all(tmp_path) == []


def test_no_seeds_is_an_empty_dictionary(tmp_path: Path) -> None:
    xling(tmp_path, "en-fi")
    assert len(DataFolder.open(tmp_path).seeds("en-fi", "0")) == 0


def test_the_packaged_sample() -> None:
    folder = DataFolder.sample()
    assert (folder.name, tuple(folder.dictionaries.pairs), tuple(folder.vectors)) == (
        "sample",
        ("en-fi",),
        ("en", "fi"),
    )
    folder.check("fi-en", "all")
    assert len(folder.seeds("en-fi", "all")) > 100
    assert len(folder.test("en-fi")) > 100


# What `bilex data check` finds out, on a folder where it is known.


@pytest.fixture
def data(tmp_path: Path) -> Path:
    numbers = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    WordVectors(["Dog", "cat", "house", "tree"], numbers).save(tmp_path / "vectors" / "en.vec")
    WordVectors(["koira", "kissa", "talo", "puu"], numbers).save(tmp_path / "vectors" / "fi.vec")
    (tmp_path / "en-fi.train.5k.tsv").write_text("dog\tkoira\nDOG\tkoira\ncat\tkissa\nboat\tvene\n")
    (tmp_path / "en-fi.train.1k.tsv").write_text("dog\tkoira\n")
    (tmp_path / "en-fi.test.tsv").write_text("house\ttalo\ncat\tkissa\ncat\tkissa\nship\tlaiva\n")
    (tmp_path / "en-ru.train.5k.tsv").write_text("dog\tпёс\n")
    (tmp_path / "en-ru.test.tsv").write_text("dog\tпёс\n")
    return tmp_path


def test_counts(data: Path) -> None:
    found = check_folder(DataFolder.open(data))
    assert {name: (check.words, check.dim) for name, check in found.vectors.items()} == {
        "en": (4, 5),
        "fi": (4, 5),
    }
    first = found.pairs[0].dictionaries
    assert {
        name: (check.pairs, check.repeated, check.covered, check.leaked) for name, check in first.items()
    } == {"test": (4, 1, 3, None), "5k": (4, 1, 3, 1), "1k": (1, 0, 1, 0)}
    assert found.pairs[1].dictionaries["5k"].covered is None
    assert found.pairs[1].dictionaries["5k"].leaked == 1
    assert found.usable == ("en-fi",)
    assert json.loads(json.dumps(found.as_dict()))["usable"] == ["en-fi"]


def test_warnings(data: Path) -> None:
    warnings = check_folder(DataFolder.open(data)).warnings
    assert "no vectors for ru: 1 of 2 pairs cannot be run." in warnings
    assert any(
        sentence.startswith("seeds 5k: test pairs are in them too, 1 to 1 in 2") for sentence in warnings
    )
    assert not any(sentence.startswith("seeds 1k") for sentence in warnings)


def test_a_limit_lowers_the_coverage_and_few_covered_pairs_are_reported(data: Path) -> None:
    found = check_folder(DataFolder.open(data), limit=2)
    assert found.pairs[0].dictionaries["test"].covered == 2
    found = check_folder(DataFolder.open(data), limit=1)
    assert found.pairs[0].dictionaries["test"].covered == 0
    assert any("en-fi.test.tsv: only 0 of 4 pairs have both words" in sentence for sentence in found.warnings)
    assert found.usable == ()


def test_broken_files_are_warnings(data: Path) -> None:
    (data / "en-fi.train.1k.tsv").write_bytes(b"\xff\xfe")
    (data / "vectors" / "en.vec").write_text("")
    (data / "en-ru.test.tsv").unlink()
    found = check_folder(DataFolder.open(data))
    assert set(found.pairs[0].dictionaries) == {"test", "5k"}
    caught = "\n".join(found.warnings)
    assert "1k.tsv: holds no word pairs" in caught
    assert "en.vec: is empty" in caught
    assert "one test dictionary is needed for 'en-ru'" in caught
    assert "no vectors for en, ru" in caught


# Vectors of a data set: how they are read, and that they are read once.


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
