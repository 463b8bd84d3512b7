"""Vectors in text files, and the kernel that reads their numbers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilex import BilexError
from bilex.vectors import WordVectors, word2vec
from bilex.vectors.kernels import BLANK, BROKEN, FINE, UNSURE, parse_lines


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(content: bytes, **options: Any) -> WordVectors:
    Path("x.vec").write_bytes(content)
    return WordVectors.load("x.vec", format="text", **({"lowercase": False} | options))


def test_with_and_without_header() -> None:
    lines = b"a 1 2\nb 3 4\n"
    for content in (
        lines,
        b"2 2\n" + lines,
        b"\xef\xbb\xbf2 2\n" + lines,
        lines[:-1],
        lines.replace(b"\n", b"\r\n"),
    ):
        vectors = read(content)
        assert vectors.index_to_key == ["a", "b"]
        assert vectors.vectors.tolist() == [[1, 2], [3, 4]]
        assert vectors.vectors.dtype == np.float32
        assert vectors.report is not None
        assert vectors.report.sentences() == []


def test_first_line_of_two_integers_is_a_word_if_the_rest_has_one_dimension() -> None:
    vectors = read(b"5 3\n6 2\n7 1\n")
    assert vectors.index_to_key == ["5", "6", "7"]
    assert vectors.vectors.ravel().tolist() == [3, 2, 1]


def test_header_that_lies_about_the_dimension_is_reported_and_the_lines_believed() -> None:
    vectors = read(b"2 5\na 1 2 3\nb 4 5 6\n")
    assert vectors.dim == 3
    assert vectors.report.sentences() == [
        "x.vec: the header announces 5 numbers per word but the lines have 3, which was used."
    ]


@pytest.mark.parametrize("announced", [1, 3, 10**12])
def test_header_that_lies_about_the_count_is_reported(announced: int) -> None:
    vectors = read(f"{announced} 2\na 1 2\nb 3 4\n".encode())
    assert len(vectors) == 2
    assert vectors.report.sentences() == [
        f"x.vec: the header announces {announced:,} words but 2 lines follow."
    ]


def test_header_is_not_doubted_for_a_limit() -> None:
    vectors = read(b"3 1\na 1\nb 2\nc 3\n", limit=2)
    assert vectors.index_to_key == ["a", "b"]
    assert vectors.report.sentences() == []


def test_header_is_believed_when_many_words_end_in_numbers() -> None:
    vectors = read(b"3 2\npage 1 1 2\npage 2 3 4\nx 5 6\n")
    assert vectors.index_to_key == ["page 1", "page 2", "x"]


def test_broken_lines_are_counted_with_their_numbers() -> None:
    content = b"4 2\na 1 2\nb 1\n\nc x 2\nd 3 4\n \te 5 6\nf 7 8 \n"
    vectors = read(content)
    assert vectors.index_to_key == ["a", "d", "e", "f"]
    report = vectors.report
    assert (report.entries, report.kept, report.left_out["broken"], report.places["broken"]) == (
        6,
        4,
        2,
        [3, 5],
    )
    assert "x.vec: 2 of 6 lines left out (line 3, 5): broken." in report.sentences()


def test_only_the_first_twenty_broken_lines_are_named() -> None:
    vectors = read(b"".join(b"w%d 1 2\nbad\n" % i for i in range(30)))
    assert vectors.report.left_out["broken"] == 30
    assert vectors.report.places["broken"] == list(range(2, 42, 2))
    assert ", ...)" in vectors.report.sentences()[0]


def test_duplicates_nan_infinity_and_zero_are_left_out_and_reported() -> None:
    content = b"a 1 2\na 9 9\nn nan 1\ni 1 inf\nh 1 1e39\nz 0 -0\nn 5 6\nm 1 -Infinity\n"
    vectors = read(content)
    assert vectors.index_to_key == ["a", "n"]
    assert vectors["a"].tolist() == [1, 2]
    assert vectors["n"].tolist() == [5, 6]
    report = vectors.report
    assert report.places["the word is repeated"] == [2]
    assert report.places["NaN or infinity"] == [3, 4, 5, 8]
    assert report.places["only zeros"] == [6]
    assert report.sentences() == [
        "x.vec: 4 of 8 lines left out (line 3, 4, 5, 8): NaN or infinity.",
        "x.vec: 1 of 8 lines left out (line 2): the word is repeated.",
        "x.vec: 1 of 8 lines left out (line 6): only zeros.",
    ]


def test_lower_casing_keeps_the_first_and_tells_merged_from_repeated() -> None:
    vectors = read(b"The 1\nthe 2\nTHE 3\nThe 4\nCat 5\n", lowercase=True)
    assert vectors.index_to_key == ["the", "cat"]
    assert vectors.vectors.ravel().tolist() == [1, 5]
    assert vectors.report.merged == 2
    assert vectors.report.places["the word is repeated"] == [4]


def test_limit_counts_entries_that_are_whole_and_reads_no_further() -> None:
    vectors = read(b"a 1 2\nbad\nb 3 4\n\xff 5 6\nbad\n", limit=2)
    assert vectors.index_to_key == ["a", "b"]
    assert vectors.report.places["broken"] == [2]
    vectors = read(b"a 1 2\nb 3 4\n" + b"bad\n" * 3, limit=2)  # as many as are whole
    assert vectors.index_to_key == ["a", "b"]
    assert vectors.report is not None
    assert not vectors.report.left_out


def test_words_that_are_not_utf8() -> None:
    content = b"a 1 2\nb\xff 3 4\n\xfe 5 6\n"
    with pytest.raises(BilexError, match=r"^x\.vec: the word in line 2 is not UTF-8; .*replace"):
        read(content)
    assert read(content, encoding_errors="replace").index_to_key == ["a", "b\ufffd", "\ufffd"]
    ignored = read(content, encoding_errors="ignore")
    assert ignored.index_to_key == ["a", "b"]
    assert ignored.report.places["broken"] == [3]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello\nworld\n", "line 1 and those after it are not a word followed by numbers"),
        (b"100 300\n", "ends after its header and holds no vectors"),
        (b"a 1 2\nb\nc\nd\n", r"3 of 4 lines do not hold a word and 2 numbers, the first is line 2"),
        (b"a 0 0\nb nan 1\n", "holds no usable vector"),
    ],
)
def test_hopeless_files(content: bytes, says: str) -> None:
    with pytest.raises(BilexError, match=says):
        read(content)


def test_a_line_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "_BLOCK", 1000)
    monkeypatch.setattr(word2vec, "_LONGEST_LINE", 5000)
    with pytest.raises(BilexError, match="a line of more than"):
        read(b"a 1 2\n" + b"x" * 20_000)


def test_blocks_and_threads_give_what_one_block_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((500, 7)).astype(np.float32)
    lines = [f"word{i} " + " ".join(f"{x:.9g}" for x in row) for i, row in enumerate(matrix)]
    lines[100], lines[350] = "broken", "word3 " + " ".join(["1"] * 7)
    content = ("500 7\n" + "\n".join(lines) + "\n").encode()
    whole = read(content)
    for block in (200, 1000, 5000):
        monkeypatch.setattr(word2vec, "_BLOCK", block)
        cut = read(content)
        assert cut.index_to_key == whole.index_to_key
        np.testing.assert_array_equal(cut.vectors, whole.vectors)
        assert cut.report == whole.report
    assert whole.report.places["broken"] == [102]
    assert whole.report.places["the word is repeated"] == [352]
    np.testing.assert_array_equal(whole["word499"], matrix[499])


def test_the_matrix_owns_no_more_memory_than_its_rows() -> None:
    vectors = read(b"1000000 2\n" + b"".join(b"w%d 1 2\n" % i for i in range(10)))
    assert vectors.vectors.base is None
    assert vectors.vectors.nbytes == 10 * 2 * 4


def parse(text: bytes, dim: int) -> Any:
    return parse_lines(np.frombuffer(text, np.uint8), dim)


def python_float32(text: str) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float64(float(text)).astype(np.float32)


def assert_same_bits(numbers: list[str]) -> int:
    """Every number the kernel is sure of has the bits of Python's; returns how many it left to Python."""
    rows, _, status = parse("".join(f"w {number}\n" for number in numbers).encode(), 1)
    assert len(status) == len(numbers)
    expected = np.array([python_float32(number) for number in numbers], np.float32)
    sure = status == FINE
    np.testing.assert_array_equal(rows[sure, 0].view(np.uint32), expected[sure].view(np.uint32))
    return int((~sure).sum())


def test_usual_numbers_are_never_left_to_python() -> None:
    rng = random.Random(3)
    numbers = [f"{rng.uniform(-1, 1):.{rng.randrange(1, 9)}f}" for _ in range(5000)]
    numbers += [f"{rng.gauss(0, 1):.{rng.randrange(9)}e}" for _ in range(5000)]
    numbers += [f"{rng.gauss(0, 1):.17g}" for _ in range(5000)]
    numbers += ["0", "-0", "0.0", "-0.0", ".5", "5.", "+3", "1e-05", "1E+5", "00012.500", "0e999"]
    assert assert_same_bits(numbers) == 0


def test_numbers_half_way_between_two_float32() -> None:
    rng = random.Random(4)
    numbers = []
    for _ in range(3000):
        low = np.float32(rng.gauss(0, 1))
        middle = (float(low) + float(np.nextafter(low, np.float32(np.inf)))) / 2
        for value in (middle, np.nextafter(middle, -9.0), np.nextafter(middle, 9.0)):
            numbers.append(f"{value:.{rng.randrange(8, 30)}e}")
    assert_same_bits(numbers)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.from_regex(r"[-+]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][-+]?[0-9]{1,3})?", fullmatch=True), min_size=1
    )
)
def test_any_decimal_has_the_bits_of_pythons(numbers: list[str]) -> None:
    assert_same_bits(numbers)


@pytest.mark.parametrize(
    ("line", "status", "word"),
    [
        (b"a 1 2", FINE, b"a"),
        (b"a\t1\t2 \r", FINE, b"a"),
        (b"New York 1 2", FINE, b"New York"),
        (b"page 7 1 2", FINE, b"page 7"),
        (b"  a  1   2", FINE, b"a"),
        (b"1 2 3", FINE, b"1"),
        (b"\xc2\xa0 1 2", FINE, b"\xc2\xa0"),
        (b"a nan 2", UNSURE, b"a"),
        (b"a 1 2x", UNSURE, b"a"),
        (b"a 1 1_0", UNSURE, b"a"),
        (b"a 1 1e", UNSURE, b"a"),
        (b"a 1 .", UNSURE, b"a"),
        (b"a 1 -", UNSURE, b"a"),
        (b"1 2", BROKEN, None),
        (b"a", BROKEN, None),
        (b" \t\r", BLANK, None),
    ],
)
def test_lines_are_parsed_from_the_right(line: bytes, status: int, word: bytes | None) -> None:
    for text in (line, line + b"\n"):
        rows, spans, found = parse(text, 2)
        assert found.tolist() == [status]
        if word is not None:
            assert text[spans[0, 0] : spans[0, 1]] == word
        assert len(rows) == (status in (FINE, UNSURE))


def test_blank_lines_ask_for_no_rows() -> None:
    # A row for each of these lines would take a terabyte.
    rows, _, status = parse(b"\n" * 4_000_000, 65536)
    assert len(status) == 4_000_000
    assert rows.shape == (0, 65536)
