"""Reading corpora: formats, faults, bounded pieces."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import pytest

from bilex import BilexError
from bilex.core.progress import SILENT
from bilex.core.reading import FileReport
from bilex.corpus.preparing import read_texts
from bilex.corpus.tokens import ScriptCount, Tokeniser


def texts(path: Path, wanted: str | None = None) -> tuple[list[str], FileReport]:
    report = FileReport(str(path))
    with SILENT.task("reading") as task:
        return list(read_texts(path, wanted, report, task)), report


def test_plain_and_packed_text_say_the_same(tmp_path: Path) -> None:
    content = "\ufeffyksi kaksi\nkolme\r\n\nneljä".encode()
    for name, packed in (("a.txt", content), ("a.gz", gzip.compress(content)), ("a", bz2.compress(content))):
        (tmp_path / name).write_bytes(packed)
        assert [text.strip() for text in texts(tmp_path / name)[0]] == ["yksi kaksi", "kolme", "", "neljä"]


def test_json_lines_by_name_or_by_field(tmp_path: Path) -> None:
    records = [{"text": "one\ntwo", "body": ["x", "y"]}, {"text": "three", "body": "z"}]
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
    assert texts(path)[0] == ["one", "two", "three"]
    assert texts(path, "body")[0] == ["x", "y", "z"]
    plain = tmp_path / "c.txt"
    plain.write_text(json.dumps({"t": "four"}))
    assert texts(plain)[0] == ['{"t": "four"}']
    assert texts(plain, "t")[0] == ["four"]


def test_faulty_lines_are_counted_by_reason(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        b'{"text": "a"}\n[1\n{"text": 3}\n{"text": "b"}\n{"text": "\xff"}\n{"text": "c"}\n{"text":"d"}\n'
    )
    found, report = texts(path)
    assert found == ["a", "b", "c", "d"]
    assert report.left_out == {"not a JSON object": 1, "no text in the field 'text'": 1, "not UTF-8": 1}
    assert any("(line 5)" in sentence for sentence in report.sentences())


@pytest.mark.parametrize("content", [b"\xff\xfea\0b\0", b"\x00\x01\n\x00\x02\n", b"\xe4\xf6\n\xe4\n"])
def test_what_is_no_utf8_text_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(content)
    with pytest.raises(BilexError, match=r"c\.txt"):
        texts(path)


def test_a_line_without_end_comes_in_pieces_and_loses_no_letter(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    for unit in ("sana ", "語"):
        whole = unit * (3_000_000 // len(unit.encode()))
        path.write_text(whole, encoding="utf-8")
        found, report = texts(path)
        assert len(found) > 1
        assert max(map(len, found)) < 2_200_000
        assert "".join(found) == whole
        assert not report.left_out


def test_a_json_record_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bilex.corpus.preparing._LONGEST_RECORD", 1 << 20)
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "' + "x" * (3 << 20))
    with pytest.raises(BilexError, match="longer than 1 MB"):
        texts(path)


# Cutting text into words, and saying when that cannot be done.


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("en", "The dog's mother-in-law DIDN'T; 'quoted' 3rd.", "the dog 's mother-in-law didn't quoted 3rd"),
        ("fr", "L’eau d'aujourd'hui, qu'elle n'est", "l' eau d' aujourd'hui qu' elle n' est"),
        ("it", "dell'acqua un'altra", "dell' acqua un' altra"),
        (None, "l'eau snake_case Ωmega", "l'eau snake case ωmega"),
        ("hi", "हिन्दी में लिखना।", "हिन्दी में लिखना"),
        ("fi", "äiti", "äiti"),
        ("ru", "Нью-Йорк — город", "нью-йорк город"),
    ],
)
def test_words_by_language(language: str | None, text: str, words: str) -> None:
    assert Tokeniser(language).tokens(text) == words.split(" ")


def test_case_is_kept_and_divided_text_is_only_split_at_spaces_on_demand() -> None:
    assert Tokeniser(lowercase=False).tokens("New York") == ["New", "York"]
    assert Tokeniser(tokenised=True).tokens("don't , x_y 東京都") == ["don't", ",", "x_y", "東京都"]


@pytest.mark.parametrize(
    ("language", "text", "some"),
    [
        ("zh", "我在北京大学学习中文", ["北京", "大学", "学习", "中文"]),
        ("ja", "東京都に住んでいます。Pythonで", ["東京", "に", "python"]),
        ("th", "ฉันชอบกินข้าวผัด hello", ["ชอบ", "กิน", "hello"]),
        (None, "ខ្ញុំស្រលាញ់ប្រទេស", ["ស្រលាញ់", "ប្រទេស"]),
    ],
)
def test_scripts_without_spaces_are_cut_by_icu(language: str | None, text: str, some: list[str]) -> None:
    pytest.importorskip("icu4py")
    found = Tokeniser(language).tokens(text)
    assert set(some) <= set(found)
    assert "".join(found) == "".join(char for char in text.lower() if char not in " 。")


def test_without_icu_such_runs_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bilex.corpus.tokens.can_segment", lambda: False)
    assert Tokeniser("zh").tokens("我在北京, ok") == ["我在北京", "ok"]


def test_share_of_unspaced_script() -> None:
    count = ScriptCount()
    count.add("abcd ไทยไทย")
    assert count.share == pytest.approx(0.6)
    assert count.script == "Thai"
