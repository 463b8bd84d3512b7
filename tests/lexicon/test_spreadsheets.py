"""Dictionaries as spreadsheets write them, and corrections."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilex import BilexError
from bilex.lexicon import Lexicon

PAIRS = [("dog", "koira"), ("cat", "kissa"), ("house", "talo")]


def written(folder: Path, text: str, name: str = "words.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("name", ["words.csv", "words.txt", "words"])
@pytest.mark.parametrize("delimiter", [";", ",", "|", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "header", [(), ("English", "Finnish"), ("word", "translation"), ("source", "target")]
)
def test_whatever_a_spreadsheet_writes_is_read(
    tmp_path: Path, name: str, delimiter: str, encoding: str, header: tuple[str, ...]
) -> None:
    rows = [header, *PAIRS] if header else PAIRS
    path = written(tmp_path, "".join(delimiter.join(row) + "\r\n" for row in rows), name, encoding)
    lexicon = Lexicon.load(path)
    assert list(lexicon.pairs) == PAIRS
    assert lexicon.report is not None and lexicon.report.header == header


def test_excels_own_line_about_the_delimiter(tmp_path: Path) -> None:
    assert list(Lexicon.load(written(tmp_path, "sep=;\ndog;koira\ncat;kissa\n")).pairs) == PAIRS[:2]


def test_commas_inside_cells_do_not_outvote_semicolons(tmp_path: Path) -> None:
    path = written(tmp_path, "en;fi\ndog;koira, hauva\ncat;kissa, katti\n")
    assert list(Lexicon.load(path, split=",").pairs) == [
        ("dog", "koira"),
        ("dog", "hauva"),
        ("cat", "kissa"),
        ("cat", "katti"),
    ]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Nr;Suomi;English\n1;koira;dog\n2;kissa;cat\n3;talo;house\n", {"languages": ("en", "fi")}),
        ("Nr;Suomi;English\n1;koira;dog\n2;kissa;cat\n3;talo;house\n", {"columns": ("english", "suomi")}),
        ("Nr;Suomi;English\n1;koira;dog\n2;kissa;cat\n3;talo;house\n", {"columns": ("en", "fi")}),
        ("1;koira;dog\n2;kissa;cat\n3;talo;house\n", {"columns": (3, 2)}),
        ("1#koira#dog\n2#kissa#cat\n3#talo#house\n", {"columns": ("3", "2"), "delimiter": "#"}),
    ],
)
def test_columns_by_number_name_and_language(tmp_path: Path, text: str, options: dict) -> None:
    assert list(Lexicon.load(written(tmp_path, text), **options).pairs) == PAIRS


def test_codes_are_words_in_a_plain_list_unless_they_are_expected(tmp_path: Path) -> None:
    path = written(tmp_path, "it\tse\ndog\tkoira\n", "words.tsv")
    assert list(Lexicon.load(path).pairs) == [("it", "se"), ("dog", "koira")]
    path = written(tmp_path, "fi\ten\nkoira\tdog\n", "words.tsv")
    assert list(Lexicon.load(path, languages=("en", "fi")).pairs) == [("dog", "koira")]


def test_several_translations_in_a_cell_are_pointed_out_and_split_when_asked_to(tmp_path: Path) -> None:
    path = written(tmp_path, "dog\tkoira; hauva\ncat\tkissa; katti\nhouse\ttalo; koti\n", "words.tsv")
    report = Lexicon.load(path).report
    assert (
        report is not None
        and "3 cells" in " ".join(report.sentences())
        and "--split ';'" in " ".join(report.sentences())
    )
    lexicon = Lexicon.load(path, split=";")
    assert lexicon.translations()["dog"] == ("koira", "hauva") and len(lexicon) == 6


@pytest.mark.parametrize(
    ("columns", "reason"),
    [(("1", "9"), "has no column 9"), (("english", "finish"), "Did you mean 'finnish'")],
)
def test_columns_that_are_not_there(tmp_path: Path, columns: tuple[str, str], reason: str) -> None:
    with pytest.raises(BilexError, match=reason):
        Lexicon.load(written(tmp_path, "english,finnish\ndog,koira\n"), columns=columns)


@pytest.mark.parametrize("suffix", [".ods", ".vec"])
def test_unknown_suffixes_are_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(BilexError, match="suffix names no dictionary format"):
        Lexicon(PAIRS).save(tmp_path / f"words{suffix}")
    assert not list(tmp_path.iterdir())


def test_verdicts(tmp_path: Path) -> None:
    text = "dog\tkoira\ncat\tkoira\tno\nhouse\ttalo\tyes\nriver\tjärvi\tWrong\nlake\tjärvi\tperhaps\n"
    lexicon = Lexicon.load(written(tmp_path, text, "words.tsv"), verdicts=True)
    assert list(lexicon.pairs) == [("dog", "koira"), ("house", "talo")]
    assert list(lexicon.rejected) == [("cat", "koira"), ("river", "järvi")]
    assert lexicon.report is not None
    assert lexicon.report.places == {"the verdict 'perhaps' is neither yes nor no": [5]}


def test_joining_keeps_each_pair_once() -> None:
    one, two = Lexicon(PAIRS[:2], "one"), Lexicon(PAIRS[1:], "two", rejected=(("dog", "kissa"),))
    both = one + two
    assert list(both.pairs) == PAIRS and both.name == "one, two" and both.rejected == (("dog", "kissa"),)


def test_corrections_outweigh_the_seeds() -> None:
    seeds = Lexicon(
        [("dog", "kissa"), ("dog", "koira"), ("cat", "kissa"), ("cat", "talo"), ("house", "talo")]
    )
    corrections = Lexicon([("dog", "koira")], "mine", rejected=(("cat", "talo"), ("river", "talo")))
    corrected = seeds.corrected(corrections)
    assert sorted(corrected.pairs) == [("cat", "kissa"), ("dog", "koira"), ("house", "talo")]
    assert set(corrected.rejected) == {("cat", "talo"), ("river", "talo")}
    assert corrected.swapped().rejected == [("talo", "cat"), ("talo", "river")]
    assert corrected.head(1).rejected == corrected.rejected
