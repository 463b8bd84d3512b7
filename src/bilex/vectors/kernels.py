"""Compiled code that reads decimal numbers in lines of text.

A number is read as an integer mantissa m and a power of ten e. If m <= 2^53 and |e| <= 22, both
m and 10^|e| are exact in float64, so one division or multiplication gives the float64 nearest to
the decimal, the very one Python's `float` gives. Otherwise the product is right to a few units in
the last place of float64; when both ends of that uncertainty round to the same float32 the result
is certain, else (about once in a hundred million numbers) the line is left to Python.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit

FINE, BROKEN, UNSURE, BLANK = 0, 1, 2, 3

_SPACE, _TAB, _NEWLINE, _RETURN = 32, 9, 10, 13
_PLUS, _MINUS, _POINT, _NOUGHT, _NINE, _LETTER_E = 43, 45, 46, 48, 57, 101
_ABSURD_EXPONENT = 100000
_POWERS = np.array([float(f"1e{power}") for power in range(309)])
_EXACT_MANTISSA = np.uint64(1 << 53)
_EXACT_POWER = 22
_LARGEST_POWER = 280
_DIGITS = 19
_MARGIN = 2.0**-49
_TEN = np.uint64(10)
_ZERO = np.uint64(0)


@njit(cache=True, inline="always")
def _scaled(mantissa: np.uint64, power: int, exact: bool) -> tuple[float, bool]:
    """The mantissa times 10^power, and whether its rounding to float32 is certain to be right."""
    if mantissa == _ZERO:
        return 0.0, True
    if power < -_LARGEST_POWER or power > _LARGEST_POWER:
        return 0.0, False
    value = float(mantissa)
    value = value / _POWERS[-power] if power < 0 else value * _POWERS[power]
    if exact and mantissa <= _EXACT_MANTISSA and -_EXACT_POWER <= power <= _EXACT_POWER:
        return value, True
    below, above = value * (1.0 - _MARGIN), value * (1.0 + _MARGIN)
    return value, np.float32(below) == np.float32(above)


@njit(cache=True, inline="always")
def _exponent(data: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """The exponent that starts at `at`, just after the "e", and where it ends, -1 if it is none."""
    minus = at < end and data[at] == _MINUS
    if at < end and (minus or data[at] == _PLUS):
        at += 1
    exponent, first = 0, at
    while at < end and _NINE >= data[at] >= _NOUGHT:
        if exponent < _ABSURD_EXPONENT:
            exponent = exponent * 10 + (int(data[at]) - _NOUGHT)
        at += 1
    return (-exponent if minus else exponent), (at if at > first else -1)


@njit(cache=True, inline="always")
def _number(data: npt.NDArray[np.uint8], at: int, end: int) -> tuple[float, int]:
    """The number that starts at `at`: its value and where it ends, -1 if Python must look at it."""
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    mantissa, power, digits, seen, fraction, exact = _ZERO, 0, 0, 0, False, True
    while at < end:
        byte = data[at]
        if _NINE >= byte >= _NOUGHT:
            seen += 1
            if digits < _DIGITS:
                mantissa = mantissa * _TEN + np.uint64(byte - _NOUGHT)
                digits += mantissa != _ZERO
                power -= fraction
            else:
                exact = exact and byte == _NOUGHT
                power += not fraction
        elif byte == _POINT and not fraction:
            fraction = True
        else:
            break
        at += 1
    if at < end and (data[at] | 32) == _LETTER_E:
        exponent, at = _exponent(data, at + 1, end)
        power += exponent
    if seen == 0 or at < 0 or (at < end and data[at] != _SPACE and data[at] != _TAB):
        return 0.0, -1
    value, certain = _scaled(mantissa, power, exact)
    return (-value if negative else value), (at if certain else -1)


@njit(cache=True)
def _numbers(data: npt.NDArray[np.uint8], at: int, end: int, row: npt.NDArray[np.float32]) -> bool:
    """Fill `row` from the text between `at`, a separator, and `end`; whether it fits exactly."""
    for column in range(len(row)):
        while at < end and (data[at] == _SPACE or data[at] == _TAB):
            at += 1
        if at >= end:
            return False
        value, at = _number(data, at, end)
        if at < 0:
            return False
        row[column] = value
    return at == end


@njit(cache=True)
def _word_end(data: npt.NDArray[np.uint8], start: int, end: int, dim: int) -> int:
    """Where the word ends if the last `dim` fields are numbers; -1 if there are too few fields."""
    at = end
    for _ in range(dim):
        while at > start and data[at - 1] != _SPACE and data[at - 1] != _TAB:
            at -= 1
        while at > start and (data[at - 1] == _SPACE or data[at - 1] == _TAB):
            at -= 1
        if at == start:
            return -1
    return at


@njit(cache=True)
def parse_lines(
    data: npt.NDArray[np.uint8], dim: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    """Parse the bytes of whole lines, each a word and `dim` numbers, from the right.

    Returns one row of numbers for each FINE or UNSURE line; for every line the start and end of its word and
    the end of its numbers in `data`; and its status: FINE, BROKEN (too few fields), UNSURE (Python must parse
    it; its row is undefined), or BLANK.
    """
    count = 0
    for byte in data:
        count += byte == _NEWLINE
    if len(data) and data[-1] != _NEWLINE:
        count += 1
    # A line that fills a row has at least 2 * dim + 1 bytes, so blank lines take no memory.
    rows = np.empty((min(count, len(data) // (2 * dim) + 1), dim), np.float32)
    spans = np.zeros((count, 3), np.int64)
    status = np.empty(count, np.int8)
    start, used = 0, 0
    for line in range(count):
        stop = start
        while stop < len(data) and data[stop] != _NEWLINE:
            stop += 1
        following = stop + 1
        while stop > start and (
            data[stop - 1] == _SPACE or data[stop - 1] == _TAB or data[stop - 1] == _RETURN
        ):
            stop -= 1
        while start < stop and (data[start] == _SPACE or data[start] == _TAB):
            start += 1
        word_end, status[line] = start, BLANK
        if start < stop:
            while word_end < stop and data[word_end] != _SPACE and data[word_end] != _TAB:
                word_end += 1
            fine = _numbers(data, word_end, stop, rows[used])
            if not fine:  # the word may hold blanks
                word_end = _word_end(data, start, stop, dim)
                fine = word_end >= 0 and _numbers(data, word_end, stop, rows[used])
            status[line] = FINE if fine else UNSURE if word_end >= 0 else BROKEN
            used += status[line] != BROKEN
        spans[line] = start, word_end, stop
        start = following
    return rows[:used], spans, status
