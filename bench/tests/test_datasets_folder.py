"""Data folders: their layouts, their vectors, what is reported when something is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilex.core.errors import BilexError
from bilex_bench.datasets import DataFolder


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
