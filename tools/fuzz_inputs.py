"""Valid inputs of every reader, and the changes that `fuzz_readers.py` makes to them.

An input is laid out as the files that bilex or another program writes, one of them changed. It is read by the
reader of its format, or by the one that its content suggests. The result must keep what is promised: whole
words without blanks around them, vectors that are finite and not zero, a report that adds up.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import lzma
import random
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT
from bilex.core.reading import FileReport
from bilex.corpus.preparing import read_texts
from bilex.corpus.tokens import Tokeniser
from bilex.lexicon import Entry
from bilex.lexicon.entries import Dictionary
from bilex.lexicon.files import Layout
from bilex.lexicon.formats import all_formats, read, write
from bilex.vectors import Subwords, WordVectors
from bilex.vectors.formats import LoadOptions, load
from mutations import LARGEST, mutated, restructured

Files = Mapping[str, bytes]  # by name, the one to open first
Check = Callable[[Path, random.Random], None]  # reads a file, and checks the result
TOKENS = (
    *(b"\t", b"\n", b"\r\n", b"\r", b" ", b";", b",", b"|", b'"', b"'", b"#", b"=>", b" @ ", b"\\", b"\0"),
    *(b"<", b">", b"</", b"/>", b"&", b"&amp;", b"&eacute;", b"&#0;", b"&#x10FFFF;", b"&x;", b"<![CDATA["),
    *(b"<!--", b"<?x?>", b"<e>", b"encoding='utf-7'", b"encoding='utf-16'", b"encoding='x'"),
    *(b"xml:lang='sv'", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xa8"),
    *(b"\xc2\x85", b"\xe2\x80\x8d", b"1. ", b'{"', b'":', b"null", b"[]", b"1e999", b'"\\ud800"', b"NaN"),
    *(b"[" * 50, b"sep=;", b"source\ttarget\n", b"PK\x03\x04", b"\x1f\x8b"),
    *(b"nan", b"inf", b"-inf", b"1e-999", b"-", b".", b"1_0", b"0x1p3", b"999999999999", b"-0"),
    *(b"65537", b"1000000000000 300\n", b"e", b"2 2\n"),
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
TEXTS = (
    b"3 2\nthe 0.1 -0.25\nNew York 1e-05 3\n\xd0\xba\xd0\xbe\xd1\x82 .5 5.\n",
    b"a 1 2 3\nb\t4\t5\t6 \r\nc 7 8 9",
    b"\xef\xbb\xbf2 1\nx 0.123456789012345678901234\ny -1E+3\n",
    b"4 2\na 1 2\nA 3 4\na 5 6\nz 0 0\n",
    b"\n".join(b"w%d " % i + b" ".join(b"%.4f" % (i * j) for j in range(1, 9)) for i in range(12)) + b"\n",
)
_CORPORA: Sequence[Files] = (
    {"corpus.txt": b"The dog's house, l'eau.\nNew York 3.5\n"},
    {"corpus.txt": "狗と猫 ภาษาไทย\n".encode()},
    {"corpus.txt": b"a\r\nb\n\n"},
    {
        "corpus.jsonl": b'{"text": "The dog barks."}\n{"text": ["a b", "c"], "id": 3}\n\n{"other": 1}\n'
        b'{"text": "x y"}\n'
    },
)
OPTIONS = (
    LoadOptions(),
    LoadOptions(limit=1),
    LoadOptions(lowercase=True),
    LoadOptions(encoding_errors="replace"),
    LoadOptions(limit=3, lowercase=True, encoding_errors="ignore"),
)
_PACKINGS: dict[bytes, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": (gzip.decompress, lambda content: gzip.compress(content, 1, mtime=0)),
    b"BZh": (bz2.decompress, lambda content: bz2.compress(content, 1)),
    b"\xfd7zXZ": (lzma.decompress, lambda content: lzma.compress(content, preset=0)),
}


@dataclass
class Target:
    """One reader, whose inputs are laid out in a folder."""

    folder: Path
    variants: Sequence[Files]  # valid inputs
    check: Check
    _there: Files = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self._lay_out(self.variants[0])
        with contextlib.suppress(BilexError):
            self.read(random.Random(0))  # compiles what is compiled

    def make(self, rng: random.Random) -> Files:
        """Lay out an input of which one file is changed."""
        files = dict(rng.choice(self.variants))
        victim = rng.choice(list(files))
        seeds = [variant[victim] for variant in self.variants if victim in variant]
        self._lay_out(files | {victim: _changed(rng, files[victim], seeds)})
        return self._there

    def read(self, rng: random.Random) -> None:
        """Read the input, and check the result."""
        self.check(self.folder / next(iter(self._there)), rng)

    def _lay_out(self, files: Files) -> None:
        for name, content in files.items():
            if self._there.get(name) != content:
                (self.folder / name).unlink(missing_ok=True)  # a mapped file is not written over
                (self.folder / name).write_bytes(content)
        self._there = files


def _changed(rng: random.Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    """A changed file; of what is packed, mostly the content, so that its checksums still fit."""
    if content.startswith(b"PK") and rng.random() < 0.9:
        return _changed_archive(rng, content)
    for start, (unpack, pack) in _PACKINGS.items():
        if content.startswith(start) and rng.random() < 0.5:
            inside = unpack(content)
            return pack(_changed(rng, inside, (inside,)))
    if rng.random() < 0.4:
        return restructured(rng, content)
    content = mutated(rng, (content, *seeds), TOKENS)
    if rng.random() < 0.001:
        at = rng.randrange(len(content) + 1)
        content = content[:at] + rng.choice(RUNS) + content[at:]
    return content[:LARGEST]


def _changed_archive(rng: random.Random, archive: bytes) -> bytes:
    """A zip archive with one of its files changed, doubled or left out."""
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
        parts[victim] = (name, _changed(rng, content, (content,)))
    return _archive(parts, packing)


@functools.lru_cache(maxsize=8)
def _parts(archive: bytes) -> tuple[tuple[str, bytes], ...]:
    """The files of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return tuple((name, opened.read(name)) for name in opened.namelist())


def _archive(parts: Sequence[tuple[str, bytes]], packing: int = zipfile.ZIP_STORED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in parts:
            archive.writestr(zipfile.ZipInfo(name), content, packing)
    return packed.getvalue()


def all_targets(folder: Path) -> dict[str, Target]:
    """The readers by name, each with a folder of its own."""
    made = folder / "made"
    made.mkdir()
    inputs = {**_dictionaries(made), **_vectors(made), "corpus": (_CORPORA, _check_corpus)}
    return {name: Target(folder / name, *parts) for name, parts in inputs.items()}


def _dictionaries(folder: Path) -> dict[str, tuple[Sequence[Files], Check]]:
    """Dictionaries of every format, as bilex writes them and as other programs do."""
    entries = [
        Entry("dog", "koira", 0.5, 0.9, 10, 20, True, "noun", "accepted", "a.tsv"),
        Entry("dog", "hauva"),
        Entry("ice", "jää", 0.25),
        Entry("go", "mennä;käydä"),
    ]
    found: dict[str, Sequence[Files]] = {}
    for form in all_formats():
        path = folder / f"{form.name}{(*form.suffixes, '.csv')[0]}"
        if form.writable:
            write(path, Dictionary(entries, ("en", "fi")), form.name)
            content = path.read_bytes()
            found[form.name] = [{path.name: one} for one in (content, *TABLES.get(form.name, ()))]
    found["stardict"] = list(_stardict_variants(folder / "stardict"))
    found["xlsx"] = [{"xlsx.xlsx": _archive(list(BOOK.items()))}] * 79 + list(found["xlsx"])
    found["wiktextract"] = [{"w.jsonl": WIKTEXTRACT}]
    found["dictd"] = [DICTD, {**DICTD, "d.dict.dz": gzip.compress(DICTD["d.dict.dz"], mtime=0)}]
    everything = [
        {"sniffed.txt": content}
        for variants in found.values()
        for files in variants[:3]
        for content in files.values()
    ]
    targets: dict[str, tuple[Sequence[Files], Check]] = {
        name: (variants, _dictionary_check(name)) for name, variants in found.items()
    }
    return targets | {"sniffed": (everything, _dictionary_check(None))}


def _dictionary_check(form: str | None) -> Check:
    """Reads a dictionary, sometimes without naming its format."""

    def check(path: Path, rng: random.Random) -> None:
        reading = read(path, rng.choice(LAYOUTS), None if rng.random() < 0.2 else form)
        for entry in (*reading.entries, *reading.rejected):
            for word in (entry.source, entry.target):
                assert word and word == word.strip(), word
                word.encode("utf-8")
            assert entry.confidence is None or isinstance(entry.confidence, float)
            entry.note().encode("utf-8")
        report = reading.report
        assert reading.entries or reading.rejected
        assert report.left_out.total() <= report.entries
        assert all("\n" not in sentence for sentence in report.sentences())

    return check


def _stardict_variants(stem: Path) -> Iterator[Files]:
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


def _vectors(folder: Path) -> dict[str, tuple[Sequence[Files], Check]]:
    """Vectors of every format, matrices with word lists beside them."""
    floats = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    subwords = Subwords(floats, 1, 3, (floats[0], None))
    words = WordVectors(["a", "b\u00fc", "c"], floats, ("center", "unit"), subwords)
    words.save(folder / "w.bin")
    word2vec = (folder / "w.bin").read_bytes()
    fasttexts = [_small_fasttext(longest) for longest in (0, 4)]
    matrices = [_npy(array) for array in (floats, floats.astype(np.float16), np.asfortranarray(floats * 2.0))]
    packed = [pack(text) for _, pack in _PACKINGS.values() for text in TEXTS]

    def beside(contents: Sequence[bytes]) -> list[Files]:
        lists = (b"a\nb\nc\n", b"a\r\nA\r\nb")
        return [{"input.npy": content, "input.txt": words} for content in contents for words in lists]

    everything = (*TEXTS, word2vec, *fasttexts, *matrices, gzip.compress(TEXTS[0]))
    single: dict[str, tuple[str, Sequence[bytes]]] = {
        "text": ("text", TEXTS),
        "packed text": ("text", packed),
        "binary": ("binary", (word2vec, word2vec.replace(b"\n", b"", 2))),
        "fasttext": ("fasttext", fasttexts),
    }
    targets: dict[str, tuple[Sequence[Files], Check]] = {
        name: ([{"input": content} for content in contents], _vectors_check(form))
        for name, (form, contents) in single.items()
    }
    targets |= {
        "npy": (beside(matrices), _vectors_check("npy")),
        "sniffed vectors": (beside(everything), _vectors_check(None)),
    }
    for dtype in ("int8", "float32"):
        words.save(folder / dtype, format="safetensors", dtype=dtype)
        files = {file.name: file.read_bytes() for file in sorted((folder / dtype).iterdir())}
        targets[f"{dtype} folder"] = [files], _vectors_check(None, is_folder=True)
    return targets


def _vectors_check(form: str | None, *, is_folder: bool = False) -> Check:
    """Reads vectors; those of a folder may be mapped, and are checked when they are used."""

    def check(path: Path, rng: random.Random) -> None:
        vectors = load(path.parent if is_folder else path, rng.choice(OPTIONS), form)
        if vectors.subwords is not None:
            with contextlib.suppress(KeyError):
                vectors.subwords.vector("unknown")
        report = vectors.report
        assert report is not None
        assert len(vectors) == report.kept == len(set(vectors.index_to_key)) > 0
        assert vectors.vectors.dtype == np.float32
        left_out = report.left_out.total() + report.markers + report.merged
        assert report.entries == report.kept + left_out
        report.sentences()
        if not is_folder:
            rows = np.asarray(vectors.vectors)
            assert np.isfinite(rows).all() and rows.any(axis=1).all()

    return check


@functools.cache
def _tokenisers() -> list[Tokeniser]:
    return [Tokeniser("fr"), Tokeniser("en"), Tokeniser(tokenised=True)]


def _check_corpus(path: Path, rng: random.Random) -> None:
    """Reads a text and divides it into words."""
    report, tokeniser = FileReport(str(path)), rng.choice(_tokenisers())
    with SILENT.task("reading") as task:
        for line in read_texts(path, rng.choice((None, None, None, "id")), report, task):
            assert all(token and token == token.strip() for token in tokeniser.tokens(line)), line
    assert all("\n" not in sentence for sentence in report.sentences())


def _small_fasttext(longest: int) -> bytes:
    """A whole .bin model of three words and five buckets."""
    settings = struct.pack("<12id", 2, 5, 5, 1, 5, 1, 1, 2, 5, 2, longest, 100, 1e-4)
    dictionary = struct.pack("<iiiqq", 3, 3, 0, 10, -1)
    for word in (b"</s>", b"cat", "кот".encode()):
        dictionary += word + b"\0" + struct.pack("<qb", 3, 0)
    rows = 8 if longest else 3
    matrix = struct.pack("<?qq", False, rows, 2) + np.arange(1, 2 * rows + 1, dtype="<f4").tobytes()
    return struct.pack("<ii", 793712314, 12) + settings + dictionary + matrix


def _npy(array: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
