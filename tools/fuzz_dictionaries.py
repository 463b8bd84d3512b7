"""The readers of dictionaries as targets of `tools/fuzz_readers.py`: a small valid dictionary of each format.

Every input is a dictionary as bilex or another program writes it with one of its files changed, or random
bytes, read by the reader of its format or by whichever the file is taken for. What is read must keep what is
promised: whole words without blanks around them, and a report that adds up.
"""

from __future__ import annotations

import functools
import gzip
import io
import random
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bilex.lexicon import Entry
from bilex.lexicon.entries import Dictionary
from bilex.lexicon.formats import all_formats, format_named, read, write
from bilex.lexicon.reading import Layout, Reading
from mutations import LARGEST, mutated, restructured

TOKENS = (
    *(b"\t", b"\n", b"\r\n", b"\r", b" ", b";", b",", b"|", b'"', b"'", b"#", b"=>", b" @ ", b"\\", b"\0"),
    *(b"<", b">", b"</", b"/>", b"&", b"&amp;", b"&eacute;", b"&#0;", b"&#x10FFFF;", b"&x;", b"<![CDATA["),
    *(
        b"<!--",
        b"<?x?>",
        b"<e>",
        b"encoding='utf-7'",
        b"encoding='utf-16'",
        b"encoding='x'",
        b"xml:lang='sv'",
    ),
    *(b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"1. "),
    *(b'{"', b'":', b"null", b"[]", b"1e999", b'"\\ud800"', b"NaN", b"[" * 50, b"sep=;", b"source\ttarget\n"),
    *(b"PK\x03\x04", b"\x1f\x8b"),
)
RUNS = tuple(
    token * (LARGEST // 2 // len(token))
    for token in (b"/", b" ", b"(", b"<", b"\t", b"a ", b"1. ", b";", b"\\", b'"', b"=>")
)
LAYOUTS = (
    Layout(),
    Layout(),
    Layout(languages=("en", "fi")),
    Layout(languages=("fi", "en"), split=";,"),
    Layout(verdicts=True),
    Layout(columns=("2", "1")),
    Layout(columns=("English", "target")),
    Layout(delimiter=";"),
)
WIKTEXTRACT = (
    b'{"word": "dog", "lang_code": "en", "pos": "n", "translations": [{"code": "fi", "word": "koira"}]}\n'
    b'{"word": "cat", "lang_code": "en", "senses": [{"translations": [{"code": "fi", "word": "kissa"}]}]}\n'
)
MARTIF = (
    b"<tbx type='TBX-Basic' xmlns='urn:iso:std:iso:30042:ed-2'><text><body><conceptEntry>"
    b"<langSec xml:lang='en'><termSec><term>dog</term><termNote type='partOfSpeech'>noun</termNote></termSec>"
    b"</langSec><langSec xml:lang='fi'><termSec><term>koira</term></termSec></langSec></conceptEntry></body>"
    b"</text></tbx>"
)
DIX = (
    b"<dictionary><pardefs><pardef n='x'><e><i>a</i></e></pardef></pardefs><section id='main' "
    b"type='standard'><e r='LR'><p><l>ice<b/>cream<s n='n'/></l><r>j\xc3\xa4\xc3\xa4tel\xc3\xb6</r></p></e>"
    b"<e><i>taxi</i></e><e><par n='x'/></e></section></dictionary>"
)
FREEDICT = (
    b"<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE TEI SYSTEM 'freedict-P5.dtd'><TEI "
    b"xmlns='http://www.tei-c.org/ns/1.0'><text><body xml:lang='en'><entry xml:id='d'><form type='lemma'>"
    b"<orth>dog</orth><pron>d</pron></form><gramGrp><pos>n</pos></gramGrp><sense n='1'><sense>"
    b"<cit type='trans' xml:lang='fi'><quote>koira</quote></cit></sense><cit type='example'><quote>"
    b"a dog</quote></cit></sense><re><form><orth>dogs</orth></form></re></entry></body></text></TEI>"
)
TABLES = {
    "tsv": (b"dog\tkoira\ncat\tkissa\tno\n# comment\nhouse\ttalo\n", "a;b\nc;d\n".encode("utf-16")),
    "csv": (b'Nr;English;Suomi\r\n1;dog;"koira; hauva"\r\n2;cat;kissa\r\n', b"sep=;\na;b\nc;d\n"),
    "tbx": (MARTIF,),
    "apertium": (DIX,),
    "tei": (FREEDICT,),
}
DICTD = {
    "d.index": b"00databaseinfo\tA\tB\ncat\tY\tZ\ndog\tA\tX\n",
    "d.dict.dz": b"dog /d/ <n>\n1. koira, hauva\ncat\nkissa (el\xc3\xa4in)\n",
}
BOOK = {
    "[Content_Types].xml": b"<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'>"
    b"<Default Extension='rels' ContentType='application/vnd.openxmlformats-package.relationships+xml'/>"
    b"<Override PartName='/xl/workbook.xml' ContentType='application/vnd.openxmlformats-officedocument."
    b"spreadsheetml.sheet.main+xml'/></Types>",
    "xl/_rels/workbook.xml.rels": b"<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/"
    b"relationships'><Relationship Id='r1' Target='s.xml' Type='http://schemas.openxmlformats.org/"
    b"officeDocument/2006/relationships/worksheet'/></Relationships>",
    "xl/workbook.xml": b"<workbook xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main' xmlns:r="
    b"'http://schemas.openxmlformats.org/officeDocument/2006/relationships'><sheets><sheet name='a' sheetId="
    b"'1' r:id='r1'/></sheets></workbook>",
    "xl/s.xml": b"<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><dimension "
    b"ref='A1:C2'/><sheetData><row r='1'><c r='A1' t='inlineStr'><is><t>dog</t></is></c><c r='B1' t='str'><v>"
    b"koira</v></c></row><row r='2'><c r='A2'><v>1.5</v></c><c r='B2' t='b'><v>1</v></c><c r='C2' t='e'><v>"
    b"#N/A</v></c></row></sheetData></worksheet>",
}


class DictionaryTarget:
    """A dictionary of one format.

    Args:
        name: What the reader is called.
        form: The format's name; None to let the reader find out.
        opened: The file that is opened.
        variants: Valid dictionaries, each as files by name; all have the same names.
        folder: Where they are laid out.
    """

    def __init__(
        self, name: str, form: str | None, opened: str, variants: Sequence[Mapping[str, bytes]], folder: Path
    ) -> None:
        self.name, self.form, self.variants = name, form, variants
        self.folder = folder / f"files of {name}"
        self.folder.mkdir()
        self.opened = self.folder / opened
        self._there: dict[str, bytes] = {}

    def make(self, rng: random.Random) -> Mapping[str, bytes]:
        """Lay out a dictionary of which one file is changed."""
        files = dict(rng.choice(self.variants))
        victim = rng.choice(list(files)) if len(files) > 1 else next(iter(files))
        files[victim] = self._changed(rng, victim, files[victim])
        for name, content in files.items():
            if self._there.get(name) != content:
                (self.folder / name).write_bytes(content)
        self._there = files
        return files

    def read(self, rng: random.Random) -> None:
        """Read it, now and then without saying what it is, and check what comes out."""
        form = None if rng.random() < 0.2 else self.form
        check_reading(read(self.opened, rng.choice(LAYOUTS), form))

    def _changed(self, rng: random.Random, name: str, content: bytes) -> bytes:
        if name.endswith(".xlsx") and rng.random() < 0.9:
            return changed_inside(rng, content)
        if name.endswith(".dz") and content[:2] == b"\x1f\x8b" and rng.random() < 0.5:
            return gzip.compress(_changed_text(rng, gzip.decompress(content), self._seeds(name)), 1, mtime=0)
        return _changed_text(rng, content, self._seeds(name))

    def _seeds(self, name: str) -> list[bytes]:
        return [files[name] for files in self.variants]


def _changed_text(rng: random.Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    if rng.random() < 0.4:
        return restructured(rng, content)
    content = mutated(rng, (content, *seeds), TOKENS)
    if rng.random() < 0.001:
        at = rng.randrange(len(content) + 1)
        content = content[:at] + rng.choice(RUNS) + content[at:]
    return content[:LARGEST]


def changed_inside(rng: random.Random, archive: bytes) -> bytes:
    """An archive with one of its files changed, doubled or left out, so that its checksums still fit."""
    packed = io.BytesIO()
    kind = rng.choice(("change", "change", "change", "double", "drop", "bomb"))
    packing = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    parts = list(_parts(archive))
    victim = rng.randrange(len(parts))
    name, content = parts[victim]
    if kind == "drop":
        del parts[victim]
    elif kind == "bomb" and rng.random() < 0.02:
        parts[victim], packing = (name, content + b" " * 3_000_000), zipfile.ZIP_DEFLATED
    elif kind == "double":
        parts.append((rng.choice((name + "2", "../x.xml", "/x.xml", name.upper())), content))
    else:
        parts[victim] = (name, _changed_text(rng, content, (content,)))
    with zipfile.ZipFile(packed, "w") as new:
        for name, content in parts:
            new.writestr(zipfile.ZipInfo(name), content, packing)
    return packed.getvalue()


@functools.lru_cache(maxsize=8)
def _parts(archive: bytes) -> tuple[tuple[str, bytes], ...]:
    """The files of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return tuple((name, opened.read(name)) for name in opened.namelist())


def check_reading(reading: Reading) -> None:
    """What holds for every reading."""
    report = reading.report
    for entry in (*reading.entries, *reading.rejected):
        for word in (entry.source, entry.target):
            assert word and word == word.strip(), word
            word.encode("utf-8")
        assert entry.confidence is None or isinstance(entry.confidence, float)
        entry.note().encode("utf-8")
    assert reading.entries or reading.rejected
    assert report.left_out.total() <= report.entries
    assert all("\n" not in sentence for sentence in report.sentences())


def dictionary_targets(folder: Path) -> list[DictionaryTarget]:
    """A target for every format, of files that bilex itself writes and of some that others do."""
    entries = [
        Entry("dog", "koira", 0.5, 0.9, 10, 20, True, "noun", "accepted", "a.tsv"),
        Entry("dog", "hauva"),
        Entry("ice", "jää", 0.25),
        Entry("go", "mennä;käydä"),
    ]
    made = folder / "made"
    made.mkdir()
    targets = []
    for name in (form.name for form in all_formats() if form.writable):
        suffix = (format_named(name).suffixes or (".csv",))[0]
        path = made / f"{name}{suffix}"
        write(path, Dictionary(entries, ("en", "fi")), name)
        if name == "stardict":
            variants: Sequence[Mapping[str, bytes]] = list(_stardict_variants(made / name))
        elif name == "xlsx":
            variants = [{path.name: _archive(BOOK)}] * 79 + [{path.name: path.read_bytes()}]
        else:
            variants = [{path.name: seed} for seed in (path.read_bytes(), *TABLES.get(name, ()))]
        targets.append(DictionaryTarget(name, name, path.name, variants, folder))
    targets.append(
        DictionaryTarget("wiktextract", "wiktextract", "w.jsonl", [{"w.jsonl": WIKTEXTRACT}], folder)
    )
    packed = {**DICTD, "d.dict.dz": gzip.compress(DICTD["d.dict.dz"], mtime=0)}
    targets.append(DictionaryTarget("dictd", "dictd", "d.index", [DICTD, packed], folder))
    everything = [
        {"sniffed.txt": content}
        for target in targets
        for files in target.variants[:3]
        for content in files.values()
    ]
    targets.append(DictionaryTarget("sniffed", None, "sniffed.txt", everything, folder))
    return targets


def _stardict_variants(stem: Path) -> Iterator[Mapping[str, bytes]]:
    """As bilex writes it; as if another program had; with wide offsets and articles that name their types."""
    facts, index, packed = (
        stem.with_name(stem.name + end).read_bytes() for end in (".ifo", ".idx", ".dict.dz")
    )
    names = ("stardict.ifo", "stardict.idx", "stardict.dict.dz")
    yield dict(zip(names, (facts, index, packed), strict=True))
    yield dict(zip(names, (facts.replace(b"description", b"x"), index, packed), strict=True))
    wide = b"StarDict's dict ifo file\nversion=3.0.0\nidxoffsetbits=64\nwordcount=2\nbookname=x\n"
    articles = b"mkissa\0" + b"W" + struct.pack(">I", 3) + b"abchkoira<br>hauva\0"
    places = b"cat\0" + struct.pack(">QI", 0, 7) + b"dog\0" + struct.pack(">QI", 7, len(articles) - 7)
    yield dict(zip(names, (wide, places, articles), strict=True))


def _archive(parts: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()
