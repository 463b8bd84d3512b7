"""Dictionaries of other programs through the commands: as seeds and tests, converted, and exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bilex.cli import run
from bilex.lexicon import Lexicon
from bilex.lexicon.files import Layout
from bilex.lexicon.formats import all_formats, format_named, read
from cli_files import Files
from planted import planted

Captured = pytest.CaptureFixture[str]
WRITTEN_FORMATS = [form.name for form in all_formats() if form.writable]
SUFFIXES = {name: (format_named(name).suffixes or (".csv",))[0] for name in WRITTEN_FORMATS}


def bilex(*arguments: object) -> int:
    return run([str(argument) for argument in arguments])


@pytest.mark.parametrize("name", WRITTEN_FORMATS)
def test_a_model_is_exported_in_every_format(
    files: Files, tmp_path: Path, capsys: Captured, name: str
) -> None:
    path = tmp_path / f"d{SUFFIXES[name]}"
    options = ["--ranks", "1-30", "--languages", "en,fi"]
    assert bilex("lexicon", files.model, "-o", path, "--format", name, *options) == 0
    assert "Wrote 30 pairs" in capsys.readouterr().err
    entries = read(path, Layout(), name).entries
    assert bilex("lexicon", files.model, "--format", "jsonl", *options) == 0
    expected = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted((e.source, e.target) for e in entries) == sorted(
        (e["source"], e["target"]) for e in expected
    )
    if name not in (
        "muse",
        "deepl",
        "synonyms",
        "hunalign",
        "bicleaner",
        "omegat",
        "stardict",
    ):  # which have no place for it
        assert sum(e.known for e in entries) == sum(e["known"] for e in expected) > 0


def test_formats_that_are_no_text_need_a_file(files: Files, capsys: Captured) -> None:
    assert bilex("lexicon", files.model, "--format", "stardict") == 2
    assert "name a file to write with -o" in capsys.readouterr().err


def test_the_language_that_is_translated_comes_first(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "d.tmx"
    options = ["--ranks", "1-5", "--languages", "en,fi", "--direction", "backward"]
    assert bilex("lexicon", files.model, "-o", path, *options) == 0
    assert 'srclang="fi"' in path.read_text(encoding="utf-8")
    sources = {a for a, _ in Lexicon.load(path, languages=("fi", "en")).pairs}
    assert bilex("lexicon", files.model, "-o", tmp_path / "d.tsv", *options) == 0
    assert sources == {a for a, _ in Lexicon.load(tmp_path / "d.tsv").pairs}


@pytest.mark.parametrize("name", ["stardict", "tei", "tbx", "tmx", "apertium", "xlsx", "muse"])
def test_other_formats_serve_as_seeds_and_tests(
    files: Files, tmp_path: Path, capsys: Captured, name: str
) -> None:
    seeds = tmp_path / f"seeds{SUFFIXES[name]}"
    assert bilex("convert", files.seeds, "-o", seeds, "--to", name, "--languages", "en,fi") == 0
    assert bilex("evaluate", files.model, seeds, "--json") == 0
    found = capsys.readouterr().out
    assert bilex("evaluate", files.model, files.seeds, "--json") == 0
    expected = json.loads(capsys.readouterr().out)
    assert json.loads(found)["forward"] == expected["forward"]


def test_converting_keeps_what_is_known_about_pairs(files: Files, tmp_path: Path, capsys: Captured) -> None:
    assert bilex("lexicon", files.model, "-o", tmp_path / "a.csv", "--ranks", "1-20") == 0
    steps = [
        ("a.csv", "b.tmx"),
        ("b.tmx", "c.tei"),
        ("c.tei", "d.tbx"),
        ("d.tbx", "e.xlsx"),
        ("e.xlsx", "f.csv"),
    ]
    for one, other in steps:
        assert bilex("convert", tmp_path / one, "-o", tmp_path / other, "--languages", "en,fi") == 0
    lines = [
        sorted((tmp_path / name).read_text(encoding="utf-8").splitlines()) for name in ("a.csv", "f.csv")
    ]
    assert lines[0] == lines[1]
    assert (
        bilex("convert", tmp_path / "a.csv", "-o", tmp_path / "g.dix", "--from", "csv", "--to", "apertium")
        == 0
    )
    capsys.readouterr()
    assert bilex("convert", tmp_path / "a.csv", "-o", tmp_path / "h.tmx") == 2
    assert "--languages en,fi" in capsys.readouterr().err
    assert bilex("convert", tmp_path / "a.csv", "-o", tmp_path / "h.tmx", "--languages", "en") == 2
    assert "name two languages" in capsys.readouterr().err


@pytest.mark.parametrize("one", WRITTEN_FORMATS)
def test_every_format_is_converted_into_every_other(tmp_path: Path, one: str) -> None:
    pairs = [("dog", "koira"), ("ice", "jää"), ("zebra", "seepra")]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    first = tmp_path / f"first{SUFFIXES[one]}"
    assert bilex("convert", path, "-o", first, "--from", "tsv", "--to", one, "--languages", "en,fi") == 0
    for other in WRITTEN_FORMATS:
        second = tmp_path / f"{other}{SUFFIXES[other]}"
        options = ["--from", one, "--to", other, "--languages", "en,fi"]
        assert bilex("convert", first, "-o", second, *options) == 0, other
        assert [(e.source, e.target) for e in read(second, Layout(), other).entries] == pairs, other


def test_what_is_left_out_is_counted(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("dog\tkoira\nice cream\tjäätelö\ncat\n=1\tyksi\n", encoding="utf-8")
    assert bilex("convert", path, "-o", tmp_path / "d.muse") == 2
    assert "the pair 'ice cream', 'jäätelö' does not fit into a MUSE file (a space" in capsys.readouterr().err
    assert bilex("convert", path, "-o", tmp_path / "d.muse", "--skip-unfit") == 0
    caught = capsys.readouterr().err
    assert "1 of 4 lines left out (line 3): no tab" in caught.replace("\n", " ")
    assert "Wrote 2 pairs" in caught and "1 pairs were left out: 1 with a space in a word." in caught
    assert bilex("convert", path, "-o", tmp_path / "d.csv", "--defuse-formulas") == 0
    assert "'=1,yksi" in (tmp_path / "d.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_list_in_utf_16_is_a_dictionary(tmp_path: Path, encoding: str) -> None:
    text = ("\ufeff" if encoding == "utf-16-be" else "") + "dog\tkoira\nice\tj\u00e4\u00e4\n"
    path = tmp_path / "list.txt"
    path.write_bytes(text.encode(encoding))
    assert bilex("convert", path, "-o", tmp_path / "d.tsv") == 0
    assert (tmp_path / "d.tsv").read_text(encoding="utf-8") == "dog\tkoira\nice\tj\u00e4\u00e4\n"


def test_corrections_without_effect_are_all_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = planted(300, 12, 0.3)
    for name, vectors in (("en", world.source), ("fi", world.target)):
        vectors.save(tmp_path / f"{name}.vec")
    world.pairs(0, 250).save(tmp_path / "seeds.tsv")
    missing = [f"nosuch{i}\tword{i}" for i in range(30)]
    (tmp_path / "mine.tsv").write_text("\n".join([*missing, "gone\tlost\tno"]) + "\n")
    arguments = [str(tmp_path / "en.vec"), str(tmp_path / "fi.vec"), "--seeds", str(tmp_path / "seeds.tsv")]
    assert run(["align", *arguments, "--corrections", str(tmp_path / "mine.tsv"), "--dry-run"]) == 0
    warned = " ".join(capsys.readouterr().err.split())
    assert "31 pairs have no effect" in warned and "nosuch29–word29" in warned and "gone–lost" in warned
