from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilex.vectors.kernels import BLANK, BROKEN, FINE, UNSURE, parse_lines


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
