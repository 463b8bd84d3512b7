"""fastText's hashing of character n-grams, in machine code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit

_OFFSET = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
_OPEN, _CLOSE = 60, 62


@njit(nogil=True, cache=True, inline="always")
def _mixed(so_far: np.uint32, byte: np.uint8) -> np.uint32:
    """One step of FNV-1a; the outer conversion keeps the product at 32 bits."""
    return np.uint32(np.uint32(so_far ^ np.uint32(np.int8(byte))) * _PRIME)


@njit(nogil=True, cache=True)
def ngram_buckets(
    word: npt.NDArray[np.uint8], shortest: int, longest: int, buckets: int
) -> npt.NDArray[np.int64]:
    """The hash buckets of the character n-grams of "<word>", in fastText's order.

    Characters are those of UTF-8: a byte 10xxxxxx continues the one before. The marks alone are no
    n-gram. The hash is FNV-1a over the bytes taken as signed, as fastText does by its `int8_t`.

    Args:
        word: The UTF-8 bytes of the word.
        shortest: The fewest characters.
        longest: The most; 0 for no n-grams.
        buckets: How many buckets there are; 0 for no n-grams.
    """
    marked = np.empty(len(word) + 2, np.uint8)
    marked[0], marked[-1] = _OPEN, _CLOSE
    marked[1:-1] = word
    found = np.empty(len(marked) * max(longest, 0), np.int64)
    count = 0
    if buckets <= 0:
        return found[:0]
    for start in range(len(marked)):
        if marked[start] & 0xC0 == 0x80:
            continue
        at, characters, mixed = start, 1, _OFFSET
        while at < len(marked) and characters <= longest:
            mixed = _mixed(mixed, marked[at])
            at += 1
            while at < len(marked) and marked[at] & 0xC0 == 0x80:
                mixed = _mixed(mixed, marked[at])
                at += 1
            alone = characters == 1 and (start == 0 or at == len(marked))
            if characters >= shortest and not alone:
                found[count] = np.int64(mixed) % buckets
                count += 1
            characters += 1
    return found[:count]


@njit(nogil=True, cache=True)
def mean_rows(
    letters: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
    plain: npt.NDArray[np.bool_],
    first: int,
    matrix: npt.NDArray[np.float32],
    words: int,
    buckets: int,
    shortest: int,
    longest: int,
) -> npt.NDArray[np.float32]:
    """The vectors of consecutive words: each the mean of its own row and its n-grams' rows.

    Args:
        letters: The UTF-8 bytes of the words, one after the other.
        ends: Where each word ends in `letters`.
        plain: Whether a word has no n-grams whatever its letters.
        first: The row of the first word in `matrix`.
        matrix: The rows of all words, then those of the buckets.
        words: How many rows are words.
        buckets: How many rows are buckets.
        shortest: The fewest characters of an n-gram.
        longest: The most.
    """
    means = np.empty((len(ends), matrix.shape[1]), np.float32)
    start = 0
    for index in range(len(ends)):
        total = matrix[first + index].astype(np.float32)
        count = 1
        if not plain[index]:
            for bucket in ngram_buckets(letters[start : ends[index]], shortest, longest, buckets):
                total += matrix[words + bucket]
                count += 1
        means[index] = total / np.float32(count)
        start = ends[index]
    return means
