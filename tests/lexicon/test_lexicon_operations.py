"""Operations on lexicons, by examples and by properties."""

from __future__ import annotations

import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bilex import BilexError
from bilex.lexicon import Lexicon
from bilex.lexicon.statistics import band_of

PAIRS = [("dog", "koira"), ("cat", "kissa"), ("cat", "katti"), ("dog", "koira"), ("moon", "kuu")]
ENGLISH = {"dog": 0, "cat": 1}
FINNISH = {"kissa": 0, "koira": 1, "kuu": 2}


def test_golds_and_index() -> None:
    lexicon = Lexicon(PAIRS)
    assert lexicon.translations() == {"dog": ("koira",), "cat": ("kissa", "katti"), "moon": ("kuu",)}
    assert lexicon.index(ENGLISH, FINNISH).tolist() == [[0, 1], [1, 0], [0, 1]]
    assert lexicon.index({}, FINNISH).shape == (0, 2)
    assert lexicon.index({}, FINNISH).dtype == np.int64
    assert list(lexicon.covered(ENGLISH, FINNISH).pairs) == [PAIRS[0], PAIRS[1], PAIRS[3]]


def test_coverage_counts_pairs_and_names_missing_words() -> None:
    coverage = Lexicon(PAIRS).coverage(ENGLISH, FINNISH)
    assert (coverage.pairs, coverage.covered, coverage.fraction) == (5, 3, 0.6)
    assert (coverage.source_words, coverage.source_missing) == (3, ("moon",))
    assert (coverage.target_words, coverage.target_missing) == (4, ("katti",))
    assert coverage.sentence() == "3 of 5 pairs have both words in the vectors"
    assert coverage.advice() == "" and not coverage.is_low


def test_advice_on_swapped_columns() -> None:
    coverage = Lexicon(PAIRS).swapped().coverage(ENGLISH, FINNISH)
    assert coverage.covered == 0 and coverage.is_low
    assert coverage.advice().startswith(" 3 pairs would be covered if you swap source and target")


def test_advice_on_case_and_normal_form(tmp_path: Path) -> None:
    path = tmp_path / "german.tsv"
    path.write_text("Hund\tdog\nKatze\tcat\nBär\tbear\nrot\tred\n", encoding="utf-8")
    german = {"Hund": 0, "Katze": 1, "Bär": 2, "rot": 3}
    english = {"dog": 0, "cat": 1, "bear": 2, "red": 3}
    lowered = Lexicon.load(path).coverage(german, english)
    assert lowered.covered == 1
    assert lowered.advice() == " 4 pairs would be covered if you keep the dictionary's upper case."
    kept = Lexicon.load(path, lowercase=False).coverage({w.lower(): i for w, i in german.items()}, english)
    assert kept.advice() == " 4 pairs would be covered if you read the dictionary lower-cased."
    decomposed = Lexicon([("bär", "bear")]).coverage({"ba\u0308r": 0}, english)
    assert decomposed.advice() == " 1 pairs would be covered if you read the dictionary in Unicode form NFD."


def test_advice_needs_a_clear_gain() -> None:
    pairs = [(f"a{i}", f"b{i}") for i in range(100)]
    known = {word: 0 for i in range(100) for word in (f"a{i}", f"b{i}") if i < 50}
    both_ways = Lexicon([*pairs, ("only", "Swapped")])
    coverage = both_ways.coverage(known | {"Swapped": 1}, known | {"only": 1})
    assert coverage.covered == 50 and max(coverage.alternatives.values()) == 51 and coverage.advice() == ""


def test_advice_on_a_dictionary_much_larger_than_the_vocabularies() -> None:
    pairs = [(f"a{i}", f"b{i}") for i in range(5000)]
    a, b = ({f"{letter}{i}": i for i in range(200)} for letter in "ab")
    turned = Lexicon(pairs).coverage(b, a)
    assert turned.covered == 0
    assert turned.advice().startswith(" 200 pairs would be covered if you swap source and target")
    half = {f"a{i}": i for i in range(100)} | b
    assert Lexicon(pairs).coverage(half, half).advice() == ""


def test_original_spelling_survives_cutting(tmp_path: Path) -> None:
    path = tmp_path / "german.tsv"
    path.write_text("Hund\tdog\nKatze\tcat\nrot\tred\n", encoding="utf-8")
    cut = Lexicon.load(path).head(2).swapped()
    assert list(cut.spelt) == [("dog", "Hund"), ("cat", "Katze")]
    assert "upper case" in cut.coverage({"dog": 0, "cat": 1}, {"Hund": 0, "Katze": 1}).advice()


def test_head_and_swapped() -> None:
    lexicon = Lexicon(PAIRS, "pets")
    assert list(lexicon.head(2).pairs) == PAIRS[:2] and lexicon.head(None) is lexicon
    assert len(lexicon.head(99)) == 5 and len(lexicon.head(-1)) == 0
    assert lexicon.swapped().pairs[0] == ("koira", "dog") and lexicon.swapped().swapped().pairs == PAIRS


def test_leaks_by_pair_word_and_direction() -> None:
    test = Lexicon([("a", "x"), ("a", "x"), ("a", "y"), ("b", "z"), ("c", "w"), ("p", "q")])
    train = Lexicon([("a", "x"), ("k", "z"), ("w", "c")])
    leaks = test.leaks(train)
    assert (leaks.test_pairs, leaks.test_sources) == (5, 4)
    assert leaks.pairs == (("a", "x"),) and leaks.reversed_pairs == (("c", "w"),)
    assert leaks.sources == ("a",) and leaks.targets == ("x", "z") and leaks.touched == 3
    assert leaks and not Lexicon([("q", "r")]).leaks(train)
    assert leaks.sentence().startswith("1 of 5 test pairs (20.0%) are also in the training dictionary")
    assert not Lexicon([]).leaks(train) and "0 of 0" in Lexicon([]).leaks(train).sentence()


def test_without() -> None:
    test = Lexicon([("a", "x"), ("a", "y"), ("b", "x"), ("c", "z")])
    train = Lexicon([("a", "x")])
    assert list(test.without(train).pairs) == [("a", "y"), ("b", "x"), ("c", "z")]
    assert list(test.without(train, by="source").pairs) == [("b", "x"), ("c", "z")]
    assert list(test.without(train, by="word").pairs) == [("c", "z")]


def test_split_refuses_more_than_there_is() -> None:
    for wanted in (4, -1, 1.5, -0.5):
        with pytest.raises(BilexError, match=r"pets: .* cannot be held out of 3"):
            Lexicon(PAIRS, "pets").split(wanted)


def test_split_depends_on_the_seed_alone() -> None:
    lexicon = Lexicon([(f"a{i}", f"b{i}") for i in range(50)])
    assert lexicon.split(0.5, seed=1) == Lexicon(list(lexicon.pairs)).split(0.5, seed=1)
    assert lexicon.split(0.5, seed=1) != lexicon.split(0.5, seed=2)


def test_ranks_against_a_vocabulary() -> None:
    vocabulary = {f"w{i}": i for i in range(60_000)}
    lexicon = Lexicon(
        [("w0", "t"), ("w999", "t"), ("w1000", "t"), ("w59999", "t"), ("w0", "t"), ("none", "t")]
    )
    source, target = lexicon.ranks(vocabulary, {})
    assert (source.words, source.missing, source.lowest, source.highest) == (4, 1, 1, 60_000)
    assert source.median == pytest.approx((1000 + 1001) / 2)
    assert list(source.bands.values()) == [2, 1, 0, 0, 1]
    assert (target.words, target.missing, target.median) == (0, 1, None)


@pytest.mark.parametrize(
    ("row", "band"),
    [(0, "1-1000"), (999, "1-1000"), (1000, "1001-5000"), (49_999, "20001-50000"), (50_000, "50001+")],
)
def test_bands(row: int, band: str) -> None:
    assert band_of(row) == band


def test_write_formats(tmp_path: Path) -> None:
    lexicon = Lexicon([("dog", "koira"), ('a "b"', "c,d")])
    for name, content in {
        "a.tsv": 'dog\tkoira\na "b"\tc,d\n',
        "a.csv": 'source,target\ndog,koira\n"a ""b""","c,d"\n',
        "a.jsonl": '{"source": "dog", "target": "koira"}\n{"source": "a \\"b\\"", "target": "c,d"}\n',
    }.items():
        lexicon.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().decode() == content
    lexicon.save(tmp_path / "b.txt", format="csv")
    assert (tmp_path / "b.txt").read_bytes() == (tmp_path / "a.csv").read_bytes()
    with pytest.raises(BilexError, match="format 'xml' is not known"):
        lexicon.save(tmp_path / "c.txt", format="xml")  # type: ignore[arg-type]


@pytest.mark.parametrize("pair", [("a\tb", "c"), ("a", "b\nc"), ("# a", "b")])
def test_tsv_refuses_what_it_cannot_hold_and_leaves_the_old_file(
    tmp_path: Path, pair: tuple[str, str]
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("old\tvanha\n", encoding="utf-8")
    with pytest.raises(BilexError, match="does not fit into a TSV file"):
        Lexicon([("dog", "koira"), pair]).save(path)
    assert path.read_text(encoding="utf-8") == "old\tvanha\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a.tsv"]


letters = st.characters(exclude_categories=("Cs", "Cc", "Z"), exclude_characters="\ufeff")
words = st.text(letters, min_size=1, max_size=6).map(lambda word: unicodedata.normalize("NFC", word))
pairs = st.lists(st.tuples(words, words), min_size=1, max_size=20)
few = st.sampled_from("abcde")
small = st.lists(st.tuples(few, few), max_size=15)


def read_back(content: bytes, name: str, lowercase: bool = False) -> Lexicon:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return Lexicon.load(path, lowercase=lowercase)


@settings(max_examples=80, deadline=None)
@given(pairs, st.sampled_from(["tsv", "csv", "jsonl"]))
def test_what_is_written_is_read_back(made: list[tuple[str, str]], form: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{form}"
        Lexicon(made).save(path)
        back = Lexicon.load(path, lowercase=False)
    assert list(back.pairs) == made
    assert back.report is not None and back.report.left_out.total() == 0


@settings(max_examples=50, deadline=None)
@given(pairs, st.booleans(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_line_ends_and_byte_order_mark_do_not_matter(
    made: list[tuple[str, str]], mark: bool, end: str
) -> None:
    text = end.join(f"{a}\t{b}" for a, b in made)
    assert list(read_back(("\ufeff" * mark + text).encode(), "a.txt").pairs) == made


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["a.txt", "a.csv", "a.jsonl"]), st.booleans())
@example(b'"', "a.csv", True)
@example(b"a,b\0\n", "a.csv", True)
def test_any_bytes_give_pairs_or_one_sentence(content: bytes, name: str, lowercase: bool) -> None:
    try:
        lexicon = read_back(content, name, lowercase)
    except BilexError as error:
        assert "\n" not in str(error).replace("\\n", "") and str(error).endswith(".")
        return
    report = lexicon.report
    assert report is not None and len(lexicon) + report.left_out.total() == report.entries
    assert len(lexicon) >= report.left_out.total()
    assert all(source and target for source, target in lexicon.pairs)


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["a.txt", "a.csv", "a.jsonl"]))
def test_any_text_is_accounted_for(content: str, name: str) -> None:
    try:
        encoded = content.encode()
        lexicon = read_back(encoded, name)
    except (BilexError, UnicodeEncodeError):
        return
    assert lexicon.report is not None
    assert len(lexicon) + lexicon.report.left_out.total() == lexicon.report.entries


@given(small, st.floats(0, 1), st.integers(0, 5))
def test_halves_of_a_split_share_no_word(made: list[tuple[str, str]], fraction: float, seed: int) -> None:
    lexicon = Lexicon(made)
    train, held_out = lexicon.split(fraction, seed)
    sources = {a for a, _ in made}
    assert len({a for a, _ in held_out.pairs}) == round(fraction * len(sources))
    assert not {a for a, _ in train.pairs} & {a for a, _ in held_out.pairs}
    assert not {b for _, b in train.pairs} & {b for _, b in held_out.pairs}
    drawn = {a for a, _ in held_out.pairs}
    assert list(held_out.pairs) == [pair for pair in made if pair[0] in drawn]
    targets = {b for _, b in held_out.pairs}
    assert list(train.pairs) == [p for p in made if p[0] not in drawn and p[1] not in targets]


@given(small, small)
def test_leaks_and_without_agree(test: list[tuple[str, str]], train: list[tuple[str, str]]) -> None:
    leaks = Lexicon(test).leaks(Lexicon(train))
    assert set(leaks.pairs) == set(test) & set(train)
    left = Lexicon(test).without(Lexicon(train))
    assert set(left.pairs) == set(test) - set(train)
    assert not left.leaks(Lexicon(train))
    clean = Lexicon(test).without(Lexicon(train), by="word")
    assert clean.leaks(Lexicon(train)).touched == 0


@given(small, st.sets(few), st.sets(few))
def test_coverage_counts_what_index_finds(
    made: list[tuple[str, str]], source: set[str], target: set[str]
) -> None:
    ours = {word: row for row, word in enumerate(sorted(source))}
    theirs = {word: row for row, word in enumerate(sorted(target))}
    lexicon = Lexicon(made)
    coverage = lexicon.coverage(ours, theirs)
    index = lexicon.index(ours, theirs)
    assert coverage.covered == len(index) == len(lexicon.covered(ours, theirs))
    names = {v: k for k, v in ours.items()}, {v: k for k, v in theirs.items()}
    assert [(names[0][a], names[1][b]) for a, b in index] == [
        p for p in made if p[0] in source and p[1] in target
    ]
    assert coverage.covered <= coverage.pairs == len(made)
