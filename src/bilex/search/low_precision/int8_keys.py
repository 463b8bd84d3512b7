"""Products of 8-bit keys that stay with a few 8-bit queries, summed exactly; what a server needs.

AVX-512 VNNI multiplies where it is there, which numba cannot be made to use by itself. A *tile* then holds
`_LANES` keys: `tiles[t, step, lane]` are four neighbouring coordinates of one key. One instruction multiplies
four bytes of sixteen keys with the same four of a query and adds them up in 32 bits; four vectors of keys and
four queries at a time keep it busy. It wants one side without sign, so 128 is added to the keys, and 128
times a query's sum is taken off.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, config
from numba.extending import intrinsic

from bilex.core.compiling import njit, types
from bilex.core.machine import processor

_LANES = 64
_STEP = 4  # coordinates of a key that lie side by side
_GROUP = 4  # queries that are multiplied together
_OFFSET = 128
_CACHE_LINE = 64
_int32, _int64 = ir.IntType(32), ir.IntType(64)
_vector = ir.VectorType(_int32, 16)


def available() -> bool:
    """Whether the processor has the instruction and the compiler may use it."""
    free = config.ENABLE_AVX and config.CPU_NAME is None and config.CPU_FEATURES is None
    has = "avx512_vnni" in processor().features
    return bool(free and has and llvmlite.binding.get_host_cpu_features().get("avx512vnni"))


class Int8Keys:
    """8-bit keys, stored as the loop that multiplies them needs them; see `bilex.search.cpu.ServedKeys`."""

    def __init__(self, count: int, width: int, instruction: bool | None = None) -> None:
        self._vnni = available() if instruction is None else instruction
        self._rows: npt.NDArray[Any] = np.zeros((0 if self._vnni else count, width), np.int8)
        if self._vnni:
            shape = (-(-count // _LANES), -(-width // _STEP), _LANES, _STEP)
            memory = np.zeros(int(np.prod(shape)) + _CACHE_LINE, np.uint8)
            start = -memory.ctypes.data % _CACHE_LINE
            self._rows = memory[start : start + memory.size - _CACHE_LINE].reshape(shape)

    def put(self, low: npt.NDArray[np.int8], first: int) -> None:
        """Write keys, from key `first` on."""
        if self._vnni:
            _put(low, self._rows, first)
        else:
            self._rows[first : first + len(low)] = low

    def products(self, queries: npt.NDArray[np.int8], first: int, out: npt.NDArray[np.int32]) -> None:
        """The products of queries with the keys from `first` on, a multiple of 64; one query per row."""
        if self._vnni:
            count, width = queries.shape
            padded = np.zeros((-(-count // _GROUP) * _GROUP, -(-width // _STEP) * _STEP), np.int8)
            padded[:count, :width] = queries
            _products(self._rows, padded, first, out)
        else:
            _by_loop(self._rows, queries, first, out)


@njit(nogil=True, cache=True)
def _by_loop(keys: Any, queries: Any, first: int, out: Any) -> None:
    for c in range(out.shape[1]):
        key = keys[first + c]
        for q in range(out.shape[0]):
            query, total = queries[q], np.int32(0)
            for d in range(key.shape[0]):
                total = np.int32(total + np.int32(key[d]) * np.int32(query[d]))
            out[q, c] = total


@njit(nogil=True, cache=True)
def _put(low: Any, tiles: Any, first: int) -> None:
    for i in range(low.shape[0]):
        tile, lane = (first + i) // _LANES, (first + i) % _LANES
        for d in range(low.shape[1]):
            tiles[tile, d // _STEP, lane, d % _STEP] = np.uint8(np.int16(low[i, d]) + np.int16(_OFFSET))


@njit(nogil=True, cache=True)
def _products(tiles: Any, queries: Any, first: int, out: Any) -> None:
    count, columns = out.shape
    cells = np.empty((_GROUP, _LANES), np.int32)
    offsets = np.zeros(queries.shape[0], np.int32)
    for q in range(queries.shape[0]):
        for d in range(queries.shape[1]):
            offsets[q] -= _OFFSET * np.int32(queries[q, d])
    for at in range(0, columns, _LANES):
        tile, lanes = (first + at) // _LANES, min(_LANES, columns - at)
        for q in range(0, count, _GROUP):
            for g in range(_GROUP):
                for lane in range(_LANES):
                    cells[g, lane] = offsets[q + g]
            _add(tiles[tile].ctypes.data, queries[q].ctypes.data, queries.shape[1], cells.ctypes.data)
            for g in range(min(_GROUP, count - q)):
                for lane in range(lanes):
                    out[q + g, at + lane] = cells[g, lane]


@intrinsic
def _add(typing: Any, tile: Any, queries: Any, width: Any, cells: Any) -> Any:
    """Add the products of a tile with a group of queries to int32 cells; all but the width are addresses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, queries, width, cells = arguments
        name = "llvm.x86.avx512.vpdpbusd.512"
        known = builder.module.globals.get(name)
        kind = ir.FunctionType(_vector, [_vector] * 3)
        multiply = known if known is not None else ir.Function(builder.module, kind, name)
        vectors = _LANES // _vector.count
        keys, sums = (builder.inttoptr(address, _vector.as_pointer()) for address in (tile, cells))
        rows = [
            builder.inttoptr(builder.add(queries, builder.mul(width, _int64(g))), _int32.as_pointer())
            for g in range(_GROUP)
        ]
        places = [builder.gep(sums, [_int64(place)]) for place in range(_GROUP * vectors)]
        totals = [cgutils.alloca_once_value(builder, builder.load(place, align=4)) for place in places]
        with cgutils.for_range(builder, builder.udiv(width, _int64(_STEP))) as step:
            first = builder.mul(step.index, _int64(vectors))
            at = [builder.gep(keys, [builder.add(first, _int64(v))]) for v in range(vectors)]
            loaded = [builder.load(place, align=1) for place in at]
            fours = [builder.load(builder.gep(row, [step.index]), align=1) for row in rows]
            repeated = [_everywhere(builder, four) for four in fours]
            for place, total in enumerate(totals):
                operands = builder.load(total), loaded[place % vectors], repeated[place // vectors]
                builder.store(builder.call(multiply, operands), total)
        for place, total in zip(places, totals, strict=True):
            builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.intp, types.uintp), generate


def _everywhere(builder: Any, number: Any) -> Any:
    """A vector that holds one number in every place."""
    nothing = ir.Constant(_vector, ir.Undefined)
    one = builder.insert_element(nothing, number, _int32(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(_vector, [_int32(0)] * _vector.count))
