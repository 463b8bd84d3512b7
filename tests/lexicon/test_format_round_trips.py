"""Every format gives back what was written, or refuses the word by name; nothing in between."""

from __future__ import annotations

import gzip
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bilex import BilexError
from bilex.cli import run
from bilex.lexicon import Entry, Lexicon
from bilex.lexicon.entries import Dictionary
from bilex.lexicon.files import Layout
from bilex.lexicon.formats import (
    DictionaryFormat,
    WriteOptions,
    all_formats,
    format_named,
    read,
    text_of,
    write,
)

WRITTEN_FORMATS = [form.name for form in all_formats() if form.writable]
LANGUAGES = ("en", "fi")
PAIRS = [("dog", "koira"), ("dog", "hauva"), ("ice cream", "jäätelö"), ("to go", "mennä"), ("ÄITI", "שלום")]
SUFFIXES = {name: (format_named(name).suffixes or (".csv",))[0] for name in WRITTEN_FORMATS}
HOSTILE = [
    *("a\tb", "a\nb", "a\r\nb", "a\rb", '"', '"a', "a'b", "<", "<br>", "&", "&amp;", "a&b;", "a  b", "]]>"),
    *("\x00", "\x01a", "a\x1b[31m", "\x7f", "a\x85b", "\u2028", "a\u2028b", "\ufeffa", "a\ufeff", "\ufffe"),
    *(
        "\u202eabc",
        "שלום",
        "مرحبا بالعالم",
        "a,b",
        "a;b",
        "a|b",
        "a=>b",
        "=",
        "=1+1",
        "@",
        "a @ b",
        "#",
        "# a",
    ),
    *("#a", "\\", "\\,", "a\\", "-x", "_x0041_", "%s", "{}", "a/b", "1", "1.5", "0", "no", "true", "😀"),
    *("e\u0301", "x" * 10_000, "ä" * 10_000, " a", "a ", "", "\ud800", "source", "target", "en", "sep=;"),
    *("a\u00a0b", "ﬁ"),
]
characters = st.characters(exclude_categories=("Cs",)) | st.sampled_from(
    "\t\n\r\"'<>&,;=@#\\ \0\x85\u2028\ufeff"
)
words = st.text(characters, min_size=1, max_size=8) | st.sampled_from(HOSTILE)


def given_back(name: str, pairs: list[tuple[str, str]], folder: Path) -> list[tuple[str, str]] | str:
    """The pairs after a round trip, or what the format said against one of them."""
    path = folder / f"d{SUFFIXES[name]}"
    try:
        write(path, Dictionary([Entry(*pair) for pair in pairs], LANGUAGES), name)
    except BilexError as error:
        assert not list(folder.iterdir()), "nothing may be left of a dictionary that was refused"
        return str(error)
    return [(entry.source, entry.target) for entry in read(path, Layout(), name).entries]


def expected(name: str, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What must come back: formats that group translations under their word may change the order."""
    if name == "deepl":
        return [pair for place, pair in enumerate(pairs) if pair[0] not in {a for a, _ in pairs[:place]}]
    return pairs


@pytest.mark.parametrize("name", WRITTEN_FORMATS)
def test_pairs_come_back(name: str, tmp_path: Path) -> None:
    pairs = [(a.replace(" ", "_"), b) for a, b in PAIRS] if name in ("muse", "bicleaner") else PAIRS
    back = given_back(name, pairs, tmp_path)
    assert sorted(back) == sorted(expected(name, pairs))
    if name != "stardict":  # its index is sorted
        assert back == expected(name, pairs)


@pytest.mark.parametrize("name", WRITTEN_FORMATS)
@pytest.mark.parametrize("other", [False, True])
def test_hostile_words_come_back_or_are_refused_by_name(name: str, other: bool, tmp_path: Path) -> None:
    for number, word in enumerate(HOSTILE):
        folder = tmp_path / str(number)
        folder.mkdir()
        pairs = [("b", word), ("c", "d")] if other else [(word, "b"), ("c", "d")]
        back = given_back(name, pairs, folder)
        if isinstance(back, str):
            assert "does not fit into" in back and repr(word)[1:20].rstrip("'") in back, back
            assert "\n" not in back and back.endswith(".")
        else:
            assert sorted(back) == sorted(pairs)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=5), st.sampled_from(WRITTEN_FORMATS))
@example([("source", "target"), ("a", "b")], "tsv")
@example([("english", "finnish"), ("a", "b")], "csv")
@example([("fi", "en")], "tsv")
def test_any_words_come_back_or_are_refused(made: list[tuple[str, str]], name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        back = given_back(name, made, Path(folder))
    if isinstance(back, str):
        assert "does not fit into" in back
    else:
        assert sorted(back) == sorted(expected(name, made))


@pytest.mark.parametrize("name", ["csv", "jsonl", "tbx", "tmx", "tei", "apertium", "xlsx"])
def test_what_is_known_about_a_pair_comes_back(name: str, tmp_path: Path) -> None:
    full = Entry("dog", "koira", 0.5, 0.875, 12, 34, True, "noun", "accepted", 'seeds.tsv; page 3 <x> & "y"')
    path = tmp_path / f"d{SUFFIXES[name]}"
    write(path, Dictionary([full, Entry("cat", "kissa", 0.25)], LANGUAGES), name)
    back = {entry.source: entry for entry in read(path, Layout(), name).entries}
    speech = "n" if name == "apertium" else "noun"
    assert back["dog"] == replace(full, part_of_speech=speech)
    assert back["cat"] == Entry("cat", "kissa", 0.25)


@pytest.mark.parametrize("name", WRITTEN_FORMATS)
def test_units_of_a_model_are_written_with_spaces(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"d{SUFFIXES[name]}"
    write(path, Dictionary([Entry("interne_markt", "mercado_interior")], LANGUAGES, units=True), name)
    (back,) = read(path, Layout(), name).entries
    space = "_" if name in ("muse", "bicleaner") else " "  # whose words may hold no space
    assert (back.source, back.target) == (f"interne{space}markt", f"mercado{space}interior")
    units = Lexicon([(back.source, back.target)]).as_units({"interne_markt": 0}, {"mercado_interior": 0})
    assert units.pairs == [("interne_markt", "mercado_interior")]


@pytest.mark.parametrize("name", ["omegat", "stardict"])
def test_notes_are_written_for_people(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"d{SUFFIXES[name]}"
    entries = [
        Entry("dog", "koira", 0.71, 0.984, part_of_speech="noun"),
        Entry("cat", "kissa", 0.5, known=True),
    ]
    write(path, Dictionary(entries, LANGUAGES), name)
    written = path if name == "omegat" else path.with_suffix(".dict.dz")
    data = written.read_bytes()
    text = (data if name == "omegat" else gzip.decompress(data)).decode("utf-8")
    assert "koira\tnoun; 98% sure" in text and "kissa\tfrom a dictionary" in text and "=" not in text


def test_tsv_never_has_a_header(tmp_path: Path) -> None:
    for pairs in ([("to", "no"), ("a", "b")], [("fi", "en")], [("source", "target"), ("a", "b")]):
        Lexicon(pairs).save(tmp_path / "d.tsv")
        assert len((tmp_path / "d.tsv").read_text().splitlines()) == len(pairs)
        assert sorted(Lexicon.load(tmp_path / "d.tsv").pairs) == sorted(pairs)


def test_tab_separated_text_keeps_score_confidence_and_origin(tmp_path: Path) -> None:
    entries = [Entry("a", "b", 0.5, 0.25, known=True), Entry("c", "d", 0.75)]
    write(tmp_path / "d.tsv", Dictionary(entries))
    assert read(tmp_path / "d.tsv").entries == entries


@pytest.mark.parametrize("name", WRITTEN_FORMATS)
def test_pairs_that_do_not_fit_can_be_left_out_and_are_counted(name: str, tmp_path: Path) -> None:
    dictionary = Dictionary([Entry("a", "b"), Entry(" c", "d"), Entry("e", "f")], LANGUAGES)
    path = tmp_path / f"d{SUFFIXES[name]}"
    report = write(path, dictionary, name, WriteOptions(skip_unfit=True))
    assert report.written == 2 and report.left_out == {"a blank before or after a word": 1}
    assert "1 pairs were left out: 1 with a blank" in report.sentence()
    assert {entry.source for entry in read(path, Layout(), name).entries} == {"a", "e"}
    with pytest.raises(BilexError, match="none of the 1 pairs fits"):
        write(path, Dictionary([Entry(" c", "d")], LANGUAGES), name, WriteOptions(skip_unfit=True))


@pytest.mark.parametrize(
    "name", [name for name in WRITTEN_FORMATS if name not in ("deepl", "muse", "bicleaner")]
)
def test_the_format_is_found_out_from_the_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"d{SUFFIXES[name]}"
    Lexicon(PAIRS).save(path, name, languages=LANGUAGES)
    assert sorted(Lexicon.load(path, lowercase=False, normal_form=None).pairs) == sorted(PAIRS)


def test_the_list_of_formats_is_whole() -> None:
    issue = "tsv csv jsonl muse deepl omegat tbx tmx tei stardict apertium synonyms anki hunalign xlsx"
    assert {*issue.split(), "bicleaner"} == set(WRITTEN_FORMATS)
    assert all(form.description for form in all_formats())
    assert {form.name for form in all_formats() if not form.writable} == {"dictd", "wiktextract"}
    with pytest.raises(BilexError, match=r"not known.*Did you mean 'stardict'"):
        format_named("startdict")
    with pytest.raises(BilexError, match="can be read but not written"):
        Lexicon(PAIRS).save("x.index", "dictd")


@pytest.mark.parametrize("name", ["tmx", "tbx"])
def test_formats_that_mark_languages_ask_for_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(BilexError, match="--languages en,fi"):
        Lexicon(PAIRS).save(tmp_path / f"x.{name}")
    with pytest.raises(BilexError, match="are both 'en'"):
        Lexicon(PAIRS).save(tmp_path / f"x.{name}", languages=("en", "en"))
    with pytest.raises(BilexError, match="are not known"):
        Lexicon(PAIRS).save(tmp_path / f"x.{name}", languages=('e"n\n', "<fi>"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["tsv", "csv"])
def test_formulas_are_defused_where_that_is_asked_for(name: str) -> None:
    dictionary = Dictionary([Entry("=1+1", "+a"), Entry("-b", "@c"), Entry("d", "e=f")])
    text, _ = text_of(dictionary, name, WriteOptions(defuse_formulas=True))
    assert [part for part in ("'=1+1", "'+a", "'-b", "'@c", "e=f") if part not in text] == []
    assert "'e" not in text and "'" not in text_of(dictionary, name)[0]


def test_a_workbook_never_holds_a_formula(tmp_path: Path) -> None:
    import openpyxl

    for defuse in (False, True):
        dictionary = Dictionary([Entry("=1+1", "@b"), Entry("c", "d")])
        write(tmp_path / "d.xlsx", dictionary, options=WriteOptions(defuse_formulas=defuse))
        sheet = openpyxl.load_workbook(tmp_path / "d.xlsx").worksheets[0]
        assert [(cell.value, cell.data_type, bool(cell.quotePrefix)) for cell in sheet[2]] == [
            ("=1+1", "s", defuse),
            ("@b", "s", defuse),
        ]


@pytest.mark.parametrize("name", WRITTEN_FORMATS)
@pytest.mark.parametrize("end", ["\r", "\n", "\x85", "\u2028", "\x0b", "\x1b"])
def test_no_word_ends_a_line_or_hides_a_formula(name: str, end: str, tmp_path: Path) -> None:
    """A carriage return in a word began a row of its own, whose first cell nothing defused."""
    path = tmp_path / f"d{SUFFIXES[name]}"
    dictionary = Dictionary([Entry("dog", f"koira{end}=cmd()"), Entry(f"cat{end}=1", "kissa")], LANGUAGES)
    with pytest.raises(
        BilexError, match=r"does not fit into .* \(a (line end|control character) in a word\)"
    ):
        write(path, dictionary, name)
    options = WriteOptions(skip_unfit=True, defuse_formulas=True)
    report = write(path, Dictionary([*dictionary.entries, Entry("ice", "jää")], LANGUAGES), name, options)
    assert report.written == 1 and report.left_out.total() == 2
    remarks = Entry("dog", "koira", 0.5, 0.5, None, None, True, f"n{end}=1", f"ok{end}=2", f"x{end}=3")
    write(path, Dictionary([remarks], LANGUAGES), name)
    packed = (".dz", ".xlsx", ".gz")
    for file in (one for one in tmp_path.iterdir() if one.suffix not in packed and end != "\n"):
        assert name == "bicleaner" or end.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.csv", 'source,target\r\ndog,"koira\r=cmd()"\r\nice,jää\r\n'),
        ("d.csv", 'source,target\ndog,"koira\n=cmd()"\nice,jää\n'),
        ("d.jsonl", '{"source": "dog", "target": "koira\\r=cmd()"}\n{"source": "ice", "target": "jää"}\n'),
        ("d.tsv", "dog\tkoira\x1b[2J\nice\tjää\n"),
        (
            "d.dix",
            "<dictionary><e><p><l>dog</l><r>koira&#x85;b</r></p></e><e><p><l>ice</l><r>jää</r></p></e></dictionary>",
        ),
        ("d.anki", "#separator:tab\n#html:true\ndog\tkoira&#13;=cmd()\nice\tjää\n"),
    ],
)
def test_words_with_control_characters_are_not_read(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode())
    lexicon = Lexicon.load(tmp_path / name)
    assert list(lexicon.pairs) == [("ice", "jää")]
    assert lexicon.report is not None and "in a word" in " ".join(lexicon.report.sentences())


def test_limits_of_deepl(tmp_path: Path) -> None:
    many = Dictionary([Entry(f"{number:07d}" + "ä" * 500, "x") for number in range(11_000)])
    with pytest.raises(BilexError, match=r"up to 10 MiB, which the first [\d,]+ of 11,000 pairs fill"):
        write(tmp_path / "d.csv", many, "deepl")
    with pytest.raises(BilexError, match="more than 1,024 bytes"):
        write(tmp_path / "d.csv", Dictionary([Entry("ä" * 513, "x")]), "deepl")
    assert not list(tmp_path.iterdir())
    report = write(tmp_path / "d.csv", Dictionary([Entry("a", "b"), Entry("a", "c")], ("en", "fi")), "deepl")
    assert (tmp_path / "d.csv").read_text() == "a,b,EN,FI\n"
    assert report.left_out.total() == 1 and "may be one" in report.sentence()


def test_probabilities_for_bicleaner(tmp_path: Path) -> None:
    """As its reader has it: the second column is translated, the third is the probability of the first."""
    entries = [Entry("dog", "koira", confidence=0.9), Entry("cat", "kissa"), Entry("cat", "kisu")]
    path = tmp_path / "lex.gz"
    write(path, Dictionary([*entries, Entry("dog", "hauva", confidence=0.3)]), "bicleaner")
    lines = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
    assert lines == [
        "koira dog 0.7500000",
        "hauva dog 0.2500000",
        "kissa cat 0.5000000",
        "kisu cat 0.5000000",
    ]
    assert list(Lexicon.load(path).pairs[:2]) == [("dog", "koira"), ("dog", "hauva")]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BilexError, match=r"lex\.gz: the gzip data is cut off or damaged"):
        Lexicon.load(path, "bicleaner")
    path.write_bytes(gzip.compress(b"a b\n"))
    assert list(Lexicon.load(path).pairs) == [("a", "b")], "packed text is read like any other"


@pytest.mark.parametrize("name", ["bicleaner", "stardict", "xlsx"])
def test_a_format_that_is_not_text_cannot_be_printed(name: str) -> None:
    with pytest.raises(BilexError, match="is not text; name a file"):
        text_of(Dictionary([Entry("a", "b")]), name)


def test_stardict_does_not_overwrite_what_others_wrote(tmp_path: Path) -> None:
    (tmp_path / "d.idx").write_text("precious")
    with pytest.raises(BilexError, match=r"d\.idx: is there already"):
        Lexicon(PAIRS).save(tmp_path / "d.ifo")
    assert [path.name for path in tmp_path.iterdir()] == ["d.idx"]
    (tmp_path / "d.idx").unlink()
    Lexicon(PAIRS).save(tmp_path / "d.ifo")
    Lexicon(PAIRS[:1]).save(tmp_path / "d.ifo")
    assert list(Lexicon.load(tmp_path / "d.dict.dz").pairs) == PAIRS[:1]
    with pytest.raises(BilexError, match="ends so"):
        Lexicon(PAIRS).save(tmp_path / "d", "stardict")


# A dictionary format of another distribution: one module, registered by an entry point.


MODULE = """
from bilex.lexicon.entries import Entry
from bilex.lexicon.formats import DictionaryFormat

class Arrows(DictionaryFormat):
    "Arrows between words."

    name, noun, suffixes = "arrows", "a file of arrows", (".arrows",)

    def _parse(self, reading):
        for number, line in enumerate(reading.path.read_text(encoding="utf-8").splitlines(), 1):
            source, _, target = line.partition("->")
            reading.add(number, [Entry(source, target)])

    def _pieces(self, dictionary, options):
        for entry in dictionary.entries:
            yield f"{entry.source}->{entry.target}\\n"
"""


@pytest.mark.filterwarnings("ignore:dictionary format 'broken'")
def test_a_registered_format_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "arrows_format.py").write_text(MODULE, encoding="utf-8")
    facts = tmp_path / "arrows_format-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: arrows-format\nVersion: 1.0\n")
    points = ["arrows = arrows_format:Arrows", "broken = no_such_module:FORMAT", "tsv = arrows_format:Arrows"]
    (facts / "entry_points.txt").write_text("[bilex.formats]\n" + "\n".join(points) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match="'broken' cannot be loaded"):
        Lexicon([("dog", "koira")]).save(tmp_path / "d.arrows")
    assert (tmp_path / "d.arrows").read_text() == "dog->koira\n"
    assert list(Lexicon.load(tmp_path / "d.arrows").pairs) == [("dog", "koira")]
    assert (
        run(["convert", str(tmp_path / "d.arrows"), "-o", str(tmp_path / "d.tsv"), "--kind", "dictionary"])
        == 0
    )
    assert (tmp_path / "d.tsv").read_text() == "dog\tkoira\n", "a format of ours is not replaced"
    named = ["convert", str(tmp_path / "d.arrows"), "-o", str(tmp_path / "e.tsv"), "--from", "arrows"]
    assert run(named) == 0 and (tmp_path / "e.tsv").read_text() == "dog\tkoira\n"
    assert run(["lexicon", str(tmp_path), "--format", "nonsense"]) == 2
    assert "arrows" in capsys.readouterr().err.rpartition("choose one of")[2], (
        "a wrong name lists all formats"
    )
    with pytest.raises(BilexError, match="'broken' cannot be loaded"):
        format_named("broken")
    monkeypatch.undo()
    sys.modules.pop("arrows_format", None)
    assert "arrows" not in {form.name for form in all_formats()}


def test_a_format_that_only_reads_is_not_written(tmp_path: Path) -> None:
    class Read(DictionaryFormat):
        name, noun = "read", "a file to read"

    with pytest.raises(BilexError, match="a file to read can be read but not written"):
        Read().write(tmp_path / "d", Dictionary([Entry("dog", "koira")]), WriteOptions())
    assert not any(tmp_path.iterdir())
