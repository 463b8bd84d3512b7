"""Compiled loops over what stands between the products of a small network: dropout and PReLU."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit

Array = npt.NDArray[Any]

_WHOLE = 2**32
_STRIDE, _FIRST, _SECOND = (np.uint32(number) for number in (0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35))
_THIRTEEN, _SIXTEEN = np.uint32(13), np.uint32(16)


def draw_kept(kept: Array, key: int, share: float, scale: Any) -> None:
    """Fill an array with what dropout multiplies by: 0 for a share of the numbers, else `scale`.

    The random number of a place is a hash of the place and the key, so that the loop has no state to carry.

    Args:
        kept: The array.
        key: Another one, another draw.
        share: The share that is dropped, below 1.
        scale: What is kept is multiplied by it; of the array's kind.
    """
    _draw(kept.reshape(-1), np.uint32(key), np.uint32(round(share * _WHOLE)), scale)


def prelu(rows: Array, kept: Array, slope: Any, result: Array) -> None:
    """PReLU, then dropout.

    Args:
        rows: The rows.
        kept: What dropout multiplies by.
        slope: What numbers below 0 are multiplied by; of the rows' kind.
        result: Receives the outcome.
    """
    _prelu(rows.reshape(-1), kept.reshape(-1), slope, result.reshape(-1))


def prelu_gradient(gradient: Array, rows: Array, kept: Array, slope: Any) -> float:
    """Turn the gradient by the result of `prelu` into that by its rows; the gradient by the slope.

    Args:
        gradient: The gradient by the result; it is overwritten.
        rows: What `prelu` was given.
        kept: Likewise.
        slope: Likewise.
    """
    return float(_prelu_gradient(gradient.reshape(-1), rows.reshape(-1), kept.reshape(-1), slope))


@njit(cache=True, nogil=True)
def _draw(kept: Array, key: Any, limit: Any, scale: Any) -> None:
    nothing = scale - scale
    for place in range(kept.size):
        bits = np.uint32(np.uint32(np.uint32(place) * _STRIDE) + key)
        bits = np.uint32(np.uint32(bits ^ (bits >> _SIXTEEN)) * _FIRST)
        bits = np.uint32(np.uint32(bits ^ (bits >> _THIRTEEN)) * _SECOND)
        bits = np.uint32(bits ^ (bits >> _SIXTEEN))
        kept[place] = scale if bits >= limit else nothing


@njit(cache=True, nogil=True)
def _prelu(rows: Array, kept: Array, slope: Any, result: Array) -> None:
    for place in range(rows.size):
        number = rows[place]
        result[place] = kept[place] * (number if number >= 0 else slope * number)


@njit(cache=True, nogil=True, fastmath={"reassoc"})  # sums in vector registers
def _prelu_gradient(gradient: Array, rows: Array, kept: Array, slope: Any) -> Any:
    nothing = slope - slope
    total = nothing
    for place in range(gradient.size):
        number = rows[place]
        behind = gradient[place] * kept[place]
        total += behind * (nothing if number >= 0 else number)
        gradient[place] = behind if number >= 0 else behind * slope
    return total
