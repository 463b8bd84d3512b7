"""What the writers write, read by programs of others; skipped, with a word on it, where one is absent."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bilex.lexicon import Entry, Lexicon
from bilex.lexicon.entries import Dictionary
from bilex.lexicon.formats import write

ENTRIES = [
    Entry("dog", "koira", 0.5, 0.875, 1, 2, True, "noun", "accepted", "a.tsv"),
    Entry("dog", "hauva", 0.25, 0.5, 1, 30),
    Entry("ice cream", 'jäätelö <x> & "y"'),
    Entry("שלום", "rauha"),
    Entry("Zebra", "seepra"),
    Entry("apple", "omena"),
]
PAIRS = sorted((entry.source, entry.target) for entry in ENTRIES)
SCHEMAS = Path(__file__).parent / "schemas"


@pytest.fixture
def written(tmp_path: Path):
    def make(name: str, suffix: str) -> Path:
        path = tmp_path / f"d{suffix}"
        write(path, Dictionary(ENTRIES, ("en", "fi")), name)
        return path

    return make


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: the files for it are NOT checked")
    return found


def output(*command: object, given: str = "") -> str:
    done = subprocess.run(
        [str(part) for part in command], input=given, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("name", "suffix"), [("tmx", ".tmx"), ("tbx", ".tbx"), ("omegat", ".utf8")])
def test_translate_toolkit_reads_them(written, name: str, suffix: str) -> None:
    pytest.importorskip("translate", reason="translate-toolkit is not installed: TMX, TBX are NOT checked")
    from translate.storage import omegat, tbx, tmx

    kinds = {"tmx": tmx.tmxfile, "tbx": tbx.tbxfile, "omegat": omegat.OmegaTFile}
    with written(name, suffix).open("rb") as file:
        units = kinds[name].parsefile(file).units
    assert sorted((str(unit.source), str(unit.target)) for unit in units) == PAIRS
    if name == "omegat":
        first = next(unit for unit in units if str(unit.target) == "koira")
        assert "from a dictionary" in first.getnotes() and "confidence=" not in first.getnotes()


@pytest.mark.parametrize(
    ("name", "suffix", "form"), [("stardict", ".ifo", "Stardict"), ("tei", ".tei", "FreeDict")]
)
def test_pyglossary_reads_them(written, name: str, suffix: str, form: str) -> None:
    pytest.importorskip("pyglossary", reason="pyglossary is not installed: StarDict, TEI are NOT checked")
    from pyglossary.glossary_v2 import Glossary

    Glossary.init()
    glossary = Glossary()
    assert glossary.directRead(str(written(name, suffix)), format=form)
    found: dict[str, str] = {}
    for entry in glossary:
        found[entry.s_word] = found.get(entry.s_word, "") + entry.defi
    assert set(found) >= {"dog", "ice cream", "Zebra", "apple", "שלום"}
    assert "koira" in found["dog"] and "hauva" in found["dog"] and "seepra" in found["Zebra"]


def test_openpyxl_reads_the_workbook(written) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: XLSX is NOT checked")
    sheet = openpyxl.load_workbook(written("xlsx", ".xlsx")).worksheets[0]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert rows[0][:5] == ["source", "target", "score", "confidence", "known"]
    assert sorted((row[0], row[1]) for row in rows[1:]) == PAIRS and rows[1][4] == "known"


def test_pandas_reads_the_tables(written) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: CSV is NOT checked by it")
    table = pandas.read_csv(written("csv", ".csv"), keep_default_na=False)
    assert sorted(zip(table["source"], table["target"], strict=True)) == PAIRS
    assert table["part_of_speech"].iloc[0] == "noun"


def test_apertium_compiles_the_dictionary_and_translates_by_it(written) -> None:
    path = written("apertium", ".dix")
    binary = path.with_suffix(".bin")
    output(program("lt-comp"), "lr", path, binary)
    assert output(program("lt-proc"), "-b", binary, given="^dog<n><sg>$").startswith(
        "^dog<n><sg>/koira<n><sg>"
    )
    assert "/seepra<n>" in output(program("lt-proc"), "-b", binary, given="^Zebra<n>$")
    output(program("apertium-validate-dictionary"), path)


def test_sdcv_finds_words_in_the_stardict_files(written) -> None:
    path = written("stardict", ".ifo")
    for word, translation in (("dog", "koira"), ("שלום", "rauha"), ("Zebra", "seepra"), ("apple", "omena")):
        shown = output(program("sdcv"), "-n", "--utf8-output", "--exact-search", "-2", path.parent, word)
        assert translation in shown, shown


def test_dictzip_unpacks_the_articles(written) -> None:
    packed = written("stardict", ".ifo").with_name("d.dict.dz")
    assert "koira" in output(program("dictzip"), "-d", "-c", packed)
    assert "koira" in output(program("dictzip"), "-d", "-c", "-s", 0, "-e", 100, packed)


@pytest.mark.parametrize(("name", "suffix"), [("tmx", ".tmx"), ("tbx", ".tbx"), ("tei", ".tei")])
def test_xml_is_valid_by_its_schema(written, name: str, suffix: str) -> None:
    output(
        program("xmllint"), "--noout", "--nonet", "--relaxng", SCHEMAS / f"{name}.rng", written(name, suffix)
    )


def test_hunalign_takes_the_dictionary(written, tmp_path: Path) -> None:
    hunalign = program("hunalign")
    (tmp_path / "en").write_text("apple\nZebra\n", encoding="utf-8")
    (tmp_path / "fi").write_text("omena\nseepra\n", encoding="utf-8")
    aligned = output(hunalign, "-text", written("hunalign", ".dic"), tmp_path / "en", tmp_path / "fi")
    assert "apple\tomena" in aligned


def test_stardict_files_of_pyglossary_are_read(tmp_path: Path) -> None:
    pytest.importorskip("pyglossary", reason="pyglossary is not installed: its StarDict files are NOT read")
    from pyglossary.glossary_v2 import Glossary

    Glossary.init()
    glossary = Glossary(info={"title": "en-fi"})
    for word, article in (("dog", "koira, hauva"), ("cat", "<b>kissa</b>"), ("Äiti", "1. mother\n2. mum")):
        glossary.addEntry(glossary.newEntry([word], article, defiFormat="h" if "<" in article else "m"))
    assert glossary.write(str(tmp_path / "g.ifo"), format="Stardict", dictzip=False)
    assert sorted(Lexicon.load(tmp_path / "g.ifo", lowercase=False).pairs) == [
        ("cat", "kissa"),
        ("dog", "hauva"),
        ("dog", "koira"),
        ("Äiti", "mother"),
        ("Äiti", "mum"),
    ]


def test_files_of_translate_toolkit_are_read(tmp_path: Path) -> None:
    pytest.importorskip("translate", reason="translate-toolkit is not installed: its files are NOT read")
    from translate.storage import tbx, tmx

    memory = tmx.tmxfile()
    memory.addtranslation("ice cream", "en", "jäätelö & <x>", "fi")
    memory.savefile(str(tmp_path / "m.tmx"))
    assert list(Lexicon.load(tmp_path / "m.tmx").pairs) == [("ice cream", "jäätelö & <x>")]
    terms = tbx.tbxfile(sourcelanguage="en", targetlanguage="fi")
    terms.addsourceunit("dog").settarget("koira", "fi")
    terms.savefile(str(tmp_path / "t.tbx"))
    assert list(Lexicon.load(tmp_path / "t.tbx", languages=("en", "fi")).pairs) == [("dog", "koira")]


def test_anki_imports_the_notes(written, tmp_path: Path) -> None:
    pytest.importorskip(
        "anki", reason="anki (extra oracles) is not installed: the notes for it are NOT imported"
    )
    from anki.collection import Collection, ImportCsvRequest

    path = str(written("anki", ".anki"))
    collection = Collection(str(tmp_path / "c.anki2"))
    metadata = collection.get_csv_metadata(path=path, delimiter=None)
    collection.import_csv(ImportCsvRequest(path=path, metadata=metadata))
    notes = [collection.get_note(number) for number in collection.find_notes("")]
    collection.close()
    assert sorted(note.fields for note in notes) == sorted(
        [
            ["dog", "koira<br>hauva"],
            ["ice cream", "jäätelö &lt;x&gt; &amp; &quot;y&quot;"],
            ["שלום", "rauha"],
            ["Zebra", "seepra"],
            ["apple", "omena"],
        ]
    )
    assert sorted(tag for note in notes for tag in note.tags) == ["bilex::found"]
