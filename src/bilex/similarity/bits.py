"""A comparison a bit: what loops without branches leave behind, and loops over few hits go through.

A loop that sets bits is compiled into vector instructions; one that asks each score is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bilex.compiling import njit

CHUNK = 32
"""Comparisons that one word holds."""

# The place of a word's only bit, by de Bruijn's sequence: _PLACE[(bit * _SEQUENCE mod 2**32) >> 27].
_SEQUENCE = np.uint32(0x077CB531)
_PLACE = np.zeros(CHUNK, np.int64)
for _bit in range(CHUNK):
    _PLACE[((int(_SEQUENCE) << _bit) & 0xFFFFFFFF) >> 27] = _bit


@njit(nogil=True, cache=True, inline="always")
def without_lowest(bits: Any) -> Any:
    """A word, not 0, without its lowest bit."""
    return np.uint32(bits & (bits - np.uint32(1)))


@njit(nogil=True, cache=True, inline="always")
def lowest_place(bits: Any) -> Any:
    """The place of the lowest bit of a word that is not 0."""
    lowest = np.uint32(bits & (~bits + np.uint32(1)))
    return _PLACE[np.uint32(lowest * _SEQUENCE) >> np.uint32(27)]
