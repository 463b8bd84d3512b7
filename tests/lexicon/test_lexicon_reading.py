from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.lexicon import Lexicon


def written(folder: Path, content: str | bytes, name: str = "words.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("a.tsv", "dog\tkoira\ncat\tkissa\n", "tab"),
        ("a.txt", "dog koira\ncat  kissa\n", "space"),
        ("a.csv", "dog,koira\ncat,kissa\n", "csv"),
        ("a.csv", 'score,target,source\n0.5,koira,dog\n0.25,"kissa",cat\n', "csv"),
        (
            "a.jsonl",
            '{"source": "dog", "target": "koira", "score": 1}\n\n{"target":"kissa","source":"cat"}',
            "jsonl",
        ),
        ("a.tsv", b"\xef\xbb\xbfdog\tkoira\r\ncat\tkissa\r\n", "tab"),
        ("a.tsv", "dog\tkoira\rcat\tkissa", "tab"),
        ("a.tsv", "# made by hand\n#\n\ndog\tkoira\n   \ncat \t kissa\n", "tab"),
        ("a.txt", "# a comment with\ta tab\ndog koira\ncat kissa", "space"),
    ],
)
def test_every_form_gives_the_same_pairs(tmp_path: Path, name: str, content: str, form: str) -> None:
    lexicon = Lexicon.load(written(tmp_path, content, name))
    assert list(lexicon.pairs) == [("dog", "koira"), ("cat", "kissa")]
    assert lexicon.report is not None
    assert (lexicon.report.format, lexicon.report.sentences()) == (form, [])
    assert lexicon.name == str(tmp_path / name)


def test_hash_is_a_word_before_a_tab_but_a_comment_before_a_space(tmp_path: Path) -> None:
    tab = Lexicon.load(written(tmp_path, "#\tristikko\n#tag\tmerkki\n# words\tsanat\n#nothing\n"))
    assert list(tab.pairs) == [("#", "ristikko"), ("#tag", "merkki")]
    assert tab.report is not None and tab.report.comments == 2
    space = Lexicon.load(written(tmp_path, "# ristikko\n#tag merkki\n"))
    assert list(space.pairs) == [("#tag", "merkki")]


def test_words_of_a_tab_file_may_hold_spaces(tmp_path: Path) -> None:
    assert list(Lexicon.load(written(tmp_path, "ice cream\tjäätelö\n")).pairs) == [("ice cream", "jäätelö")]


def test_unusual_line_separators_end_no_line_and_are_in_no_word(tmp_path: Path) -> None:
    lexicon = Lexicon.load(written(tmp_path, "a\u2028b\tc\x0bd\ne\tf\n"))
    assert list(lexicon.pairs) == [("e", "f")]
    assert lexicon.report is not None and lexicon.report.left_out == {"a line end in a word": 1}


def test_casing_and_normal_forms(tmp_path: Path) -> None:
    path = written(tmp_path, "Cafe\u0301\tÄITI\n")
    assert list(Lexicon.load(path).pairs) == [("café", "äiti")]
    assert list(Lexicon.load(path, lowercase=False).pairs) == [("Café", "ÄITI")]
    assert list(Lexicon.load(path, normal_form="NFD").pairs) == [("cafe\u0301", "a\u0308iti")]
    assert list(Lexicon.load(path, lowercase=False, normal_form=None).pairs) == [("Cafe\u0301", "ÄITI")]


def test_broken_lines_are_counted_numbered_and_capped(tmp_path: Path) -> None:
    good = "".join(f"a{i}\tb{i}\n" for i in range(40))
    lexicon = Lexicon.load(written(tmp_path, "only\n\tempty\n" + good + "x\t\n" * 28 + "a0\tb0\tthird\n"))
    report = lexicon.report
    assert report is not None and len(lexicon) == 41
    assert (report.left_out.total(), report.entries, report.extra_columns, report.repeated) == (30, 71, 1, 1)
    places = report.places["one of the two words is missing"]
    assert report.places["no tab in it"] == [1] and places[:2] == [2, 43] and len(places) == 20
    columns, missing, no_tab = report.sentences()
    assert "more than two columns" in columns and no_tab.endswith(
        "1 of 71 lines left out (line 1): no tab in it."
    )
    assert "29 of 71 lines left out (line 2, 43, 44, 45, " in missing and ", ...)" in missing


def test_three_words_divided_by_spaces_are_broken_not_guessed(tmp_path: Path) -> None:
    report = Lexicon.load(written(tmp_path, "dog koira\nice cream jäätelö\ncat kissa\n")).report
    assert report is not None and report.places == {"3 words where two are expected": [2]}


@pytest.mark.parametrize(
    "record", ["[1]", "{", '{"source": 1, "target": "b"}', '{"source": "a"}', "[" * 100_000]
)
def test_broken_json_lines(tmp_path: Path, record: str) -> None:
    good = '{"source": "a", "target": "b"}\n'
    report = Lexicon.load(written(tmp_path, good + good + record, "a.jsonl")).report
    assert report is not None and list(report.places.values()) == [[3]]


def test_broken_csv_rows(tmp_path: Path) -> None:
    report = Lexicon.load(written(tmp_path, "a,b\nc\n\nd,e\n,f\ng,h\n", "a.csv")).report
    assert report is not None and list(report.places.values()) == [[2], [5]]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf\r\n# only a comment\r\n", "empty"),
        (b"one\ntwo\nthree four\n", "2 of 3 lines are not word pairs (line 1: 1 words"),
        (b"dog\tkoira\r\ncat\tk\xe4\r\n", "line 2 is not UTF-8 text (byte 0xe4)"),
        ("dog\tkoira\n".encode("utf-16")[:-1], "is not UTF-16 text"),
        (b"PK\x03\x04 an .xlsx file", "save the sheet as CSV"),
        (gzip.compress(b"dog\tkoira\n", mtime=0)[:-4], "the gzip data is cut off or damaged"),
    ],
)
def test_hopeless_files_are_refused_in_one_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(BilexError) as caught:
        Lexicon.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and reason in message and "\n" not in message


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(BilexError, match=r"none\.tsv: cannot be read \(No such file"):
        Lexicon.load(tmp_path / "none.tsv")
    with pytest.raises(BilexError, match="cannot be read"):
        Lexicon.load(tmp_path)
