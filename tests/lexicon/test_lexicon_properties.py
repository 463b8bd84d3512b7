from __future__ import annotations

import tempfile
import unicodedata
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bilex.core.errors import BilexError
from bilex.lexicon import Lexicon

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
