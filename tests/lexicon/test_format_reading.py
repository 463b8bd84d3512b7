"""Dictionaries as other programs write them, and files made to do harm."""

from __future__ import annotations

import gzip
import json
import os
import struct
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path
from types import FrameType

import pytest

from bilex import BilexError
from bilex.lexicon import Lexicon
from bilex.lexicon.files import Layout
from bilex.lexicon.formats import read, xlsx

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))


def made(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(path: Path, form: str | None = None, **layout) -> str:
    with pytest.raises(BilexError) as found:
        read(path, Layout(**layout), form)
    sentence = str(found.value)
    assert sentence.endswith(".") and "\n" not in sentence and path.name.split(".")[0] in sentence
    return sentence


def pairs(path: Path, **options) -> list[tuple[str, str]]:
    return list(Lexicon.load(path, lowercase=False, **options).pairs)


def base64(number: int) -> str:
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    found = digits[number % 64]
    while number := number // 64:
        found = digits[number % 64] + found
    return found


def dictd(folder: Path, articles: dict[str, str]) -> Path:
    """A dictionary of dictd, words in the index without capitals and signs, as dictfmt makes it."""
    text, lines = b"", []
    for word, article in articles.items():
        listed = "".join(char for char in word.lower() if char.isalnum() or char == " ")
        lines.append(f"{listed}\t{base64(len(text))}\t{base64(len(article.encode()))}\n")
        text += article.encode()
    (folder / "d.dict.dz").write_bytes(gzip.compress(text))
    return made(folder, "d.index", "00databaseinfo\tA\tA\n" + "".join(sorted(lines)))


def test_freedict_articles_give_their_translations(tmp_path: Path) -> None:
    path = dictd(
        tmp_path,
        {
            "battre": "battre /batʀ/ <v>\n1. beat, hit; strike\n2.  [cul] whisk\n see: {rebattre}\n",
            "Bible Belt": "Bible Belt /bˈaɪbəl/ <pn>\nraamattuvyöhyke 2.\narea in the United States\n",
            "Abdampf": "Abdampf //ap// <masc, n, sg>\nexhaust (steam) <n>, steam <n>\n",
            "nothing": "nothing <n>\nan explanation that goes on and on for far too many words to be one\n",
        },
    )
    reading = read(path)
    assert {(entry.source, entry.target, entry.part_of_speech) for entry in reading.entries} == {
        ("battre", "beat", "v"),
        ("battre", "hit", "v"),
        ("battre", "strike", "v"),
        ("battre", "whisk", "v"),
        ("Bible Belt", "raamattuvyöhyke", "pn"),
        ("Abdampf", "exhaust", "n"),
        ("Abdampf", "steam", "n"),
    }
    assert reading.report.left_out == {"no translation, only explanations": 1}
    assert "1 of 4 entries left out (line 5): no translation" in " ".join(reading.report.sentences())
    assert len(Lexicon.load(tmp_path / "d.dict.dz")) == 7, "any file of it names the dictionary"


def test_explanations_in_freedict_articles_are_no_translations(tmp_path: Path) -> None:
    """Of nld-spa 20 % of the pairs, of nld-por 32 % were explanations or synonyms in Dutch."""
    articles = {
        "dag": "dag //dɑx// <n>\ndía\n1. tijd tussen zon\n",
        "sonde": "sonde /sˈɔndə/ <n>\nsonda 2.\n1. een peilstift\n 3.\n3. een ruimtevaartuig\n",
        "bord": "bord //bɔrt// <n>\n1. lousa\n2. Vlak voorwerp\n2. prato\n[1] Schijf\n",
        "vals": "vals <adj>\n1. falso\n1. niet echt\n2. malicioso, maligno\n2. kwaadaardig\n",
        "charbon": "charbon /ʃaʁ.bɔ̃/ <n, masc>\n1. kivihiili, hiili\n2. puuhiili\nminéral\n",
        "opnemen": "opnemen <v>\n1. atender\n1. in handen nemen\n2. gravar\n7. registreren\n",
        "Botswana": "Botswana //bɔ.ˈts<sup>ʊ</sup>a.na// //bɔts.ˈʋa.na// <pn>\nBotsuana\n1. een land\n",
        "Maddalena": "Maddalena / /maddaˈlena// <pn>\nMagdaleena\n",
        "to": "to //tu// <preposition>\n1. -lle, kanssa\nrecipient\n2. vaille\ntime: preceding\n",
    }
    found: dict[str, list[str]] = {}
    for entry in read(dictd(tmp_path, articles)).entries:
        found.setdefault(entry.source, []).append(entry.target)
    assert found == {
        "dag": ["día"],
        "sonde": ["sonda"],
        "bord": ["lousa", "prato"],
        "vals": ["falso", "malicioso", "maligno"],
        "charbon": ["kivihiili", "hiili", "puuhiili"],
        "opnemen": ["atender", "gravar"],
        "Botswana": ["Botsuana"],
        "Maddalena": ["Magdaleena"],
        "to": ["kanssa", "vaille"],
    }
    made(tmp_path, "d.tei", TEI)
    assert ("to go", "mennä") in Lexicon.load(tmp_path / "d.index").pairs, "its source is read instead"


def test_freedict_of_debian_is_read() -> None:
    path = Path("/usr/share/dictd/freedict-fra-eng.index")
    if not path.exists():
        pytest.skip("dict-freedict-fra-eng is not installed: real dictd files are NOT read")
    lexicon = Lexicon.load(path)
    assert len(lexicon) > 16_000 and "donkey" in lexicon.translations()["baudet"]
    assert lexicon.report is not None and lexicon.report.left_out.total() < 20


def test_stardict_with_html_and_typed_articles(tmp_path: Path) -> None:
    (tmp_path / "s.ifo").write_text("StarDict's dict ifo file\nversion=2.4.2\nbookname=x\n", encoding="utf-8")
    parts = [
        b"h<k>dog</k><b>koira</b>, <i>hauva</i><br/>1. piski\0",
        b"mkissa\0",
        b"W\0\0\0\x03abcmtalo\0",
        b"W\0\0\0\x01a",
    ]
    index, text = b"", b""
    for word, part in zip((b"dog", b"cat", b"house", b"sound"), parts, strict=True):
        index += word + b"\0" + struct.pack(">II", len(text), len(part))
        text += part
    made(tmp_path, "s.idx.gz", gzip.compress(index))
    made(tmp_path, "s.dict", text)
    reading = read(tmp_path / "s.ifo")
    assert sorted((entry.source, entry.target) for entry in reading.entries) == [
        ("cat", "kissa"),
        ("dog", "hauva"),
        ("dog", "koira"),
        ("dog", "piski"),
        ("house", "talo"),
    ]
    assert reading.report.left_out == {"an article that is not text": 1}


TEI = """<?xml version="1.0"?><?xml-model href="x"?><!DOCTYPE TEI SYSTEM "freedict-P5.dtd">
<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader/><text><body xml:lang="en">
<entry><form><orth>to  go</orth><pron>x</pron></form><gramGrp><pos>v</pos></gramGrp>
<sense><cit type="trans" xml:lang="fi"><quote>menn&auml;</quote></cit><cit type="trans" xml:lang="sv">
<quote>gå</quote></cit>
<cit type="example"><quote>go</quote><cit type="trans"><quote>mene kotiin</quote></cit></cit></sense></entry>
<entry><form><orth>dog</orth></form><sense><def>an animal</def></sense></entry>
<entry><form><orth>cat</orth></form><trans><tr>kissa</tr></trans></entry></body></text></TEI>"""


def test_tei_of_freedict(tmp_path: Path) -> None:
    path = made(tmp_path, "d.xml", TEI)
    reading = read(path)
    assert [(e.source, e.target, e.part_of_speech) for e in reading.entries] == [
        ("to go", "mennä", "v"),
        ("cat", "kissa", ""),
    ]
    assert reading.report.places == {"no translation": [7]} and reading.languages == ("en", "fi")
    assert pairs(path, languages=("fi", "en"))[0] == ("mennä", "to go")
    assert pairs(path, languages=("en", "sv"))[0] == ("to go", "gå")


def test_tmx_with_more_than_two_languages(tmp_path: Path) -> None:
    text = """<tmx version="1.4"><header srclang="EN-GB"/><body><tu><tuv xml:lang="fi"><seg>koira</seg></tuv>
<tuv xml:lang="en-GB"><seg>dog<ph>code</ph></seg></tuv><tuv xml:lang="sv"><seg>hund</seg></tuv></tu>
<tu><tuv xml:lang="fi"><seg>kissa</seg></tuv></tu></body></tmx>"""
    path = made(tmp_path, "d.tmx", text)
    assert "3 languages (fi, en, sv); name the two" in refused(path)
    assert "no words in 'de'; it has fi, en, sv" in refused(path, languages=("de", None))
    assert pairs(path, languages=("en", "fi")) == [("dog", "koira")]
    assert read(path, Layout(languages=("fin", "eng"))).report.left_out == {"not in both languages": 1}
    two = made(tmp_path, "t.tmx", text.replace('<tuv xml:lang="sv"><seg>hund</seg></tuv>', ""))
    assert pairs(two) == [("dog", "koira")], "the header says which is the source"


def test_tbx_of_2019(tmp_path: Path) -> None:
    text = """<tbx type="TBX-Basic" style="dca" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"><text><body>
<conceptEntry id="1"><langSec xml:lang="fi"><termSec><term>koira</term></termSec><termSec>
<term>hauva</term></termSec></langSec><langSec xml:lang="en"><termSec><term>dog</term>
<termNote type="partOfSpeech">noun</termNote></termSec></langSec></conceptEntry></body></text></tbx>"""
    found = read(made(tmp_path, "d.tbx", text))
    assert [(e.source, e.target, e.part_of_speech) for e in found.entries] == [
        ("dog", "koira", "noun"),
        ("dog", "hauva", "noun"),
    ]


def test_apertium_leaves_out_what_is_no_pair_of_words(tmp_path: Path) -> None:
    text = """<dictionary><pardefs><pardef n="p"><e><p><l>x</l><r>y</r></p></e></pardef></pardefs>
<section id="main" type="standard"><e r="LR"><p><l>ice<b/>cream<s n="n"/></l><r>jäätelö</r></p></e>
<e><i>taxi<s n="n"/></i></e><e><p><l>take<g><b/>off</g></l><r>nousta</r></p></e>
<e i="yes"><p><l>a</l><r>b</r></p></e><e><re>[0-9]+</re></e><e><p><l/><r>c</r></p></e>
</section></dictionary>"""
    reading = read(made(tmp_path, "d.dix", text))
    assert [(e.source, e.target) for e in reading.entries] == [
        ("ice cream", "jäätelö"),
        ("taxi", "taxi"),
        ("take off", "nousta"),
    ]
    assert reading.report.left_out == {
        "marked to be ignored": 1,
        "a paradigm or an expression, not words": 1,
        "one of the two words is missing": 1,
    }
    assert reading.report.sentences()[0].endswith(": 1 of 6 entries left out (line 4): marked to be ignored.")


def test_wiktextract_in_both_directions(tmp_path: Path) -> None:
    records = [
        {
            "word": "dog",
            "lang_code": "en",
            "pos": "noun",
            "translations": [{"code": "fi", "word": "koira"}, {"code": "sv", "word": "hund"}, {"code": "fi"}],
        },
        {
            "word": "cat",
            "lang_code": "en",
            "senses": [{"translations": [{"lang_code": "fi", "word": "kissa"}]}],
        },
        {"word": "gå", "lang_code": "sv", "translations": []},
    ]
    path = made(tmp_path, "w.jsonl", "\n".join(map(json.dumps, records)))
    assert "into 2 languages (fi, sv); name the two" in refused(path)
    assert pairs(path, languages=("en", "fi")) == [("dog", "koira"), ("cat", "kissa")]
    assert pairs(path, languages=("fi", "en")) == [("koira", "dog"), ("kissa", "cat")]
    assert read(path, Layout(languages=("en", "fi"))).entries[0].part_of_speech == "noun"


def test_synonyms_with_escapes_and_several_words_on_either_side(tmp_path: Path) -> None:
    text = "# a comment\ndog, hound => koira\na\\,b \\=> c => x\ncar, automobile\n"
    reading = read(made(tmp_path, "d.synonyms", text))
    assert [(e.source, e.target) for e in reading.entries] == [
        ("dog", "koira"),
        ("hound", "koira"),
        ("a,b => c", "x"),
    ]
    assert reading.report.left_out == {"not exactly one '=>' in it": 1}


def test_a_workbook_of_others(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: XLSX is NOT read")
    book = openpyxl.Workbook()
    for row in (
        ["Nr", "Suomi", "English"],
        [1, "koira; hauva", "dog"],
        [2, None, "x"],
        [],
        [3, "kissa", "cat"],
    ):
        book.active.append(row)
    book.save(tmp_path / "d.xlsx")
    reading = read(tmp_path / "d.xlsx", Layout(languages=("en", "fi"), split=";"))
    assert [(e.source, e.target) for e in reading.entries] == [
        ("dog", "koira"),
        ("dog", "hauva"),
        ("cat", "kissa"),
    ]
    assert reading.report.places == {"one of the two words is missing": [3]}
    assert "1 of 3 rows left out (row 3)" in " ".join(reading.report.sentences())
    made(tmp_path, "n.xlsx", b"PK\x03\x04 nothing")
    assert "not a workbook" in refused(tmp_path / "n.xlsx")


def test_rows_that_a_workbook_leaves_out_cost_nothing(tmp_path: Path) -> None:
    """A row may say that it is the two thousand millionth; the fuzzer found one that took seconds."""
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: XLSX is NOT read")
    book = openpyxl.Workbook()
    for row, words in ((1, ("dog", "koira")), (3, ("ice", "jää")), (100_000, ("cat", "kissa"))):
        for column, word in enumerate(words, 1):
            book.active.cell(row, column, word)
    book.save(tmp_path / "d.xlsx")
    calls = 0

    def counted(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename == xlsx.__file__

    sys.setprofile(counted)
    try:
        reading = read(tmp_path / "d.xlsx")
    finally:
        sys.setprofile(None)
    assert [entry.source for entry in reading.entries] == ["dog", "ice", "cat"]
    assert calls < 1_000


def workbook(path: Path, rows: bytes, strings: bytes = b"") -> Path:
    """A workbook with some XML for its rows and for its shared strings."""
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", f"<workbook xmlns:r='{kinds}'><sheet r:id='a'/></workbook>")
        links = (
            f"<Relationship Id='a' Type='{kinds}/worksheet' Target='/xl/s.xml'/>"
            f"<Relationship Id='b' Type='{kinds}/sharedStrings' Target='t.xml'/>"
        )
        archive.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{links}</Relationships>")
        archive.writestr("xl/s.xml", b"<worksheet><sheetData>" + rows + b"</sheetData></worksheet>")
        archive.writestr("xl/t.xml", b"<sst>" + strings + b"</sst>")
    return path


def test_a_small_workbook_costs_little_whatever_it_unpacks_into(tmp_path: Path) -> None:
    """One of 298 kB took 1.2 GB and 21 s, one of 41 kB with empty rows did not end."""
    pair = b"<row><c t='inlineStr'><is><t>dog</t></is></c><c t='s'><v>0</v></c></row>"
    good = workbook(tmp_path / "good.xlsx", pair + b"<row r='2000000000'/>", b"<si><t>koira</t></si>")
    assert pairs(good) == [("dog", "koira")]
    bombs = {
        "rows": (b"<row/>" * 7_000_000, b""),
        "cells": (pair * 500_000, b"<si><t>koira</t></si>"),
        "strings": (pair, b"<si><t>koira</t></si>" * 2_000_000),
        "wide": (b"<row>" + b"<c><v>1</v></c>" * 2_000_000 + b"</row>", b""),
    }
    for name, (rows, strings) in bombs.items():
        path = workbook(tmp_path / f"{name}.xlsx", rows, strings)
        assert path.stat().st_size < 300_000
        tracemalloc.start()
        begun = time.process_time()
        assert "unpacks into more than 200 times" in refused(path) or name == "wide"
        assert tracemalloc.get_traced_memory()[1] < 50_000_000 and time.process_time() - begun < 5, name
        tracemalloc.stop()


def test_the_rows_and_texts_of_a_workbook_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "MOST_ROWS", 3)
    assert "more than 3 rows" in refused(workbook(tmp_path / "a.xlsx", b"<row/>" * 4))
    monkeypatch.setattr(xlsx, "MOST_TEXT", 1000)
    strings = b"<si><t>koira</t></si>" * 20
    assert "MB of text" in refused(workbook(tmp_path / "b.xlsx", b"<row/>", strings))


@pytest.mark.parametrize("name", ["s.idx.gz", "s.dict.dz", "lex.gz", "d.dict.dz"])
def test_packed_files_unpack_into_a_bounded_multiple(tmp_path: Path, name: str) -> None:
    bomb = gzip.compress((b"a b 0." + b"5" * 10_000 + b"\n") * 4_000)  # 40 MB
    (tmp_path / name).write_bytes(bomb)
    made(tmp_path, "s.ifo", "StarDict's dict ifo file\nversion=2.4.2\nsametypesequence=m\n")
    if name == "s.dict.dz":
        made(tmp_path, "s.idx", b"dog\0" + struct.pack(">II", 39_000_000, 5))
    made(tmp_path, "d.index", f"dog\t{base64(39_000_000)}\tF\n")
    opened, form = {"s": ("s.ifo", "stardict"), "l": (name, "bicleaner"), "d": ("d.index", "dictd")}[name[0]]
    with pytest.raises(BilexError, match="unpacks into more than 200 times its size"):
        read(tmp_path / opened, Layout(), form)


@pytest.mark.parametrize("root", ["tmx", "martif", "TEI", "dictionary"])
@pytest.mark.parametrize(
    "declared",
    [f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>', '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
     '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://localhost/x"> %p;]>'],
    ids=["laughs", "file", "parameter"],
)  # fmt: skip
def test_declared_entities_are_refused(tmp_path: Path, root: str, declared: str) -> None:
    path = made(tmp_path, "d.xml", f"{declared}\n<{root}><e>&l11;&e;</e></{root}>")
    forms = {"tmx": "tmx", "martif": "tbx", "TEI": "tei", "dictionary": "apertium"}
    assert "line 1: it declares an entity" in refused(path, forms[root])


def test_xml_within_bounds(tmp_path: Path) -> None:
    deep = "<dictionary><section>" + "<e>" * 100 + "</e>" * 100 + "</section></dictionary>"
    assert "nested more than 64 deep" in refused(made(tmp_path, "d.dix", deep))
    large = f"<dictionary><section>\n<e><p><l>{'a' * 2_000_000}</l><r>b</r></p></e></section></dictionary>"
    assert "line 2: an entry of more than 1 MB" in refused(made(tmp_path, "e.dix", large))
    tag = b"<dictionary " + b"a" * 5_000_000 + b"='1'/>"
    assert "a tag of more than 4 MB" in refused(made(tmp_path, "f.dix", tag), "apertium")
    broken = "<dictionary>\n<section>\n<e></section></dictionary>"
    assert "line 3 is not XML (mismatched tag)" in refused(made(tmp_path, "g.dix", broken))
    assert "outermost element is 'html' where 'tmx'" in refused(made(tmp_path, "h.tmx", "<html/>"), "tmx")
    assert "entity '&nosuch;' is not known" in refused(
        made(
            tmp_path,
            "i.dix",
            "<!DOCTYPE dictionary SYSTEM 'x'><dictionary><e><i>&nosuch;</i></e></dictionary>",
        )
    )


def test_archives_and_packed_articles_within_bounds(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<a/>")
        archive.writestr("xl/workbook.xml", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>")
    assert "it declares an entity" in refused(bomb)
    made(tmp_path, "s.ifo", "StarDict's dict ifo file\nversion=2.4.2\nsametypesequence=m\n")
    made(tmp_path, "s.dict", b"koira")
    made(tmp_path, "s.idx", b"dog\0" + struct.pack(">II", 0, 2**32 - 1) + b"cat\0" + struct.pack(">II", 0, 5))
    assert read(tmp_path / "s.ifo").report.left_out == {"an article that is not there or larger than 1 MB": 1}
    made(tmp_path, "s.idx", b"dog\0\0\0")
    assert "entry 1 is cut off" in refused(tmp_path / "s.ifo")
    os.truncate(tmp_path / "s.idx", (1 << 28) + 1)  # as sparse files are, it takes no space
    assert "s.idx: unpacks into more than 256 MB" in refused(tmp_path / "s.ifo")
    made(tmp_path, "s.idx", b"".join(b"w\0" + struct.pack(">II", n, 5) for n in range(5)))
    made(tmp_path, "s.dict.dz", gzip.compress(b"koira" * 10)[:12])
    assert "s.dict.dz: the gzip data is cut off" in refused(tmp_path / "s.ifo")
    made(tmp_path, "s.dict.dz", b"\x1f\x8b" + b"x" * 50)
    assert "s.dict.dz: the gzip data is cut off or damaged" in refused(tmp_path / "s.ifo")


def test_dictzip_of_many_chunks_is_gzip_and_comes_back(tmp_path: Path) -> None:
    words = [(f"word{number:05}", f"{number:05}" + "ä" * 40) for number in range(5_000)]
    Lexicon(words).save(tmp_path / "x.ifo")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.dict.dz", "x.idx", "x.ifo"]
    packed = (tmp_path / "x.dict.dz").read_bytes()
    assert gzip.decompress(packed) == "".join(target for _, target in words).encode()
    chunk, count = struct.unpack_from("<HH", packed, 18)  # after the header, "RA", a size and a version
    assert packed[12:14] == b"RA" and (count - 1) * chunk < 5_000 * 85 <= count * chunk
    assert pairs(tmp_path / "x.idx") == words


def test_what_the_fuzzer_found(tmp_path: Path) -> None:
    digits = f'{{"source": "a", "target": "b", "source_rank": {"9" * 400}, "score": 1{"0" * 400}}}'
    entry = read(made(tmp_path, "d.jsonl", digits)).entries[0]
    assert entry.source_rank is None and entry.score is None
    verdict = read(made(tmp_path, "d.csv", 'a,b,"no\nyes"\nc,d,yes\n'), Layout(verdicts=True))
    assert verdict.report.left_out.total() == 1 and "\n" not in " ".join(verdict.report.sentences())
    number = f"&#{'1' * 5000};"
    entry = read(made(tmp_path, "d.anki", f"dog\tkoira {number}\n"), chosen="anki").entries[0]
    assert entry.target == f"koira {number}"
    header = made(tmp_path, "e.csv", '"a\nb",c\nd,e\n')
    assert "names a b, c" in refused(header, columns=("x", "c"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "iso-8859-1"])
def test_xml_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    named = "" if encoding == "utf-8-sig" else f'<?xml version="1.0" encoding="{encoding}"?>'
    text = f"{named}<dictionary><section><e><p><l>ice</l><r>jää</r></p></e></section></dictionary>"
    assert pairs(made(tmp_path, "d.dix", text.encode(encoding))) == [("ice", "jää")]


def test_what_anki_exports_is_read_by_its_header(tmp_path: Path) -> None:
    exported = made(
        tmp_path,
        "notes.txt",
        "#separator:tab\n#html:true\n#guid column:1\n#notetype column:2\n#deck column:3\n#tags column:6\n"
        "k/x!\tBasic\tDefault\tdog\t<b>koira</b><br>hauva\tbilex::known\n"
        'q\tBasic\tD\t"ice ""cream"""\tjäätelö\t\n',
    )
    entries = read(exported).entries
    assert [(e.source, e.target, e.known) for e in entries] == [
        ("dog", "koira", True),
        ("dog", "hauva", True),
        ('ice "cream"', "jäätelö", False),
    ]
    plain = made(tmp_path, "plain.txt", "#separator:Comma\n#html:false\na < b,&amp;\nc,d\nonly\n")
    reading = read(plain)
    assert [(e.source, e.target) for e in reading.entries] == [("a < b", "&amp;"), ("c", "d")]
    assert reading.report.left_out == {"fewer than two columns": 1}


def test_a_column_of_languages_is_no_header(tmp_path: Path) -> None:
    glossary = made(tmp_path, "deepl.csv", "the,se,EN,FI\ndog,koira,EN,FI\n")
    assert pairs(glossary) == [("the", "se"), ("dog", "koira")]
    reading = read(glossary, chosen="deepl")
    assert reading.languages == ("en", "fi")
    assert pairs(made(tmp_path, "sheet.csv", "nr,note,en,fi\n1,x,dog,koira\n2,y,cat,kissa\n")) == [
        ("dog", "koira"),
        ("cat", "kissa"),
    ]


def test_xml_is_named_by_its_suffix_where_its_content_does_not(tmp_path: Path) -> None:
    page = made(tmp_path, "page.tbx", "<html><body>x</body></html>")
    assert "the outermost element is 'html' where 'martif' is expected" in refused(page)
    assert "is not XML" in refused(made(tmp_path, "empty.tmx", ""))


def test_dictionaries_without_columns_are_turned_round(tmp_path: Path) -> None:
    synonyms = made(tmp_path, "d.synonyms", "dog => koira, hauva\n")
    layout = Layout(columns=("2", "1"), languages=("fi", "en"))
    reading = read(synonyms, layout)
    assert [(e.source, e.target) for e in reading.entries] == [("koira", "dog"), ("hauva", "dog")]
    assert reading.languages == ("fi", "en")
    assert "has no columns" in refused(synonyms, columns=("x", "c"))


def test_our_own_tables_have_no_superfluous_columns(tmp_path: Path) -> None:
    ours = made(tmp_path, "ours.tsv", "dog\tkoira\t0.5\t\tknown\nice\tj\u00e4\u00e4\t0.1\t0.2\tfound\n")
    assert read(ours).report.sentences() == []
    assert "more than two columns" in " ".join(
        read(made(tmp_path, "x.tsv", "a\tb\tc\nd\te\tf\n")).report.sentences()
    )


def stardict(folder: Path, words: dict[str, tuple[int, int]], articles: bytes, facts: str = "") -> Path:
    """A dictionary of StarDict: words with the places of their articles."""
    (folder / "d.dict").write_bytes(articles)
    places = (word.encode() + b"\0" + struct.pack(">II", *place) for word, place in words.items())
    (folder / "d.idx").write_bytes(b"".join(places))
    return made(folder, "d.ifo", f"StarDict's dict ifo file\nversion=2.4.2\n{facts}")


def test_many_words_with_one_large_article_are_left_out(tmp_path: Path) -> None:
    article = ",".join(f"w{i}x" for i in range(100)).encode()
    words = {f"word{i:03}": (0, len(article)) for i in range(20)} | {"dog": (len(article), 5)}
    reading = read(stardict(tmp_path, words, article + b"koira", "sametypesequence=m\n"))
    assert [(e.source, e.target) for e in reading.entries] == [("dog", "koira")]
    assert reading.report.left_out == {"more than 1,000 pairs in one place": 20}


def test_an_article_of_too_many_translations_is_left_out(tmp_path: Path) -> None:
    text = ",".join(f"w{i}x" for i in range(20_000))
    wide = dictd(tmp_path, {"dog": "dog\nkoira\n", "cat": f"cat\n{text}"})
    assert [e.target for e in read(wide).entries] == ["koira"]


def test_an_article_is_not_read_for_a_million_words(tmp_path: Path) -> None:
    article = b"m" + b"x" * 900_000
    words = {f"{i:05}": (0, len(article)) for i in range(20_000)} | {"dog": (len(article), 6)}
    reading = read(stardict(tmp_path, words, article + b"mkoira"))
    assert [e.target for e in reading.entries] == ["koira"]
    assert reading.report.left_out == {"a large article that too many words share": 20_000}


def test_an_article_of_half_a_million_parts_is_read_once(tmp_path: Path) -> None:
    """Once quadratic in the length of the article, half a minute for this one."""
    parts = b"a\0" * 500_000
    path = stardict(tmp_path, {"dog": (0, len(parts) + 6)}, parts + b"mkoira")
    assert [(e.source, e.target) for e in read(path).entries] == [("dog", "koira")]


def test_no_dictionary_has_more_pairs_than_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bilex.lexicon.files.MOST_PAIRS", 3)
    assert "holds more than 3 pairs" in refused(made(tmp_path, "d.tsv", "a\tb\n" * 4))
