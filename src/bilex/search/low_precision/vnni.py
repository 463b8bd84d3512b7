"""Products of 8-bit keys with 8-bit queries by AVX-512 VNNI, which numba cannot be made to use by itself.

A *tile* holds `LANES` keys: `tiles[t, step, lane]` are four neighbouring coordinates of one key. One
instruction multiplies four bytes of sixteen keys with the same four of a query and adds them up in 32 bits;
four vectors of keys and four queries at a time keep it busy. It wants one side without sign, so 128 is added
to the keys, and 128 times a query's sum is taken off. Sums are exact.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import config
from numba.extending import intrinsic

from bilex.core.compiling import njit, types
from bilex.core.machine import processor

LANES = 64
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


def empty(keys: int, width: int) -> npt.NDArray[np.uint8]:
    """Tiles for so many keys of so many coordinates, in whole cache lines."""
    shape = (-(-keys // LANES), -(-width // _STEP), LANES, _STEP)
    memory = np.zeros(int(np.prod(shape)) + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + memory.size - _CACHE_LINE].reshape(shape)


@njit(nogil=True, cache=True)
def put(low: Any, tiles: Any, first: int) -> None:
    """Write 8-bit keys, one per row, into the tiles, from key `first` on."""
    for i in range(low.shape[0]):
        tile, lane = (first + i) // LANES, (first + i) % LANES
        for d in range(low.shape[1]):
            tiles[tile, d // _STEP, lane, d % _STEP] = np.uint8(np.int16(low[i, d]) + np.int16(_OFFSET))


def padded(low: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """8-bit queries padded to whole groups and steps."""
    count, width = low.shape
    rows = np.zeros((-(-count // _GROUP) * _GROUP, -(-width // _STEP) * _STEP), np.int8)
    rows[:count, :width] = low
    return rows


@njit(nogil=True, cache=True)
def products(tiles: Any, queries: Any, first: int, out: Any) -> None:
    """The products of queries with the keys from `first` on, which begins a tile, as int32.

    Args:
        tiles: All keys.
        queries: As `padded` makes them; may be more rows than `out` has.
        first: The first key.
        out: One query per row.
    """
    count, columns = out.shape
    cells = np.empty((_GROUP, LANES), np.int32)
    offsets = np.zeros(queries.shape[0], np.int32)
    for q in range(queries.shape[0]):
        for d in range(queries.shape[1]):
            offsets[q] -= _OFFSET * np.int32(queries[q, d])
    for at in range(0, columns, LANES):
        tile, lanes = (first + at) // LANES, min(LANES, columns - at)
        for q in range(0, count, _GROUP):
            for g in range(_GROUP):
                for lane in range(LANES):
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
        vectors = LANES // _vector.count
        keys = builder.inttoptr(tile, _vector.as_pointer())
        rows = [
            builder.inttoptr(builder.add(queries, builder.mul(width, _int64(g))), _int32.as_pointer())
            for g in range(_GROUP)
        ]
        sums = builder.inttoptr(cells, _vector.as_pointer())
        places = [builder.gep(sums, [_int64(place)]) for place in range(_GROUP * vectors)]
        before = [builder.load(place, align=4) for place in places]
        entry, loop = builder.block, builder.append_basic_block("steps")
        after = builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        number = builder.phi(_int64)
        totals = [builder.phi(_vector) for _ in places]
        first = builder.mul(number, _int64(vectors))
        loaded = [
            builder.load(builder.gep(keys, [builder.add(first, _int64(v))]), align=1) for v in range(vectors)
        ]
        fours = [_everywhere(builder, builder.load(builder.gep(row, [number]), align=1)) for row in rows]
        added = [
            builder.call(multiply, [total, loaded[place % vectors], fours[place // vectors]])
            for place, total in enumerate(totals)
        ]
        following = builder.add(number, _int64(1))
        number.add_incoming(_int64(0), entry)
        number.add_incoming(following, loop)
        for total, start, new in zip(totals, before, added, strict=True):
            total.add_incoming(start, entry)
            total.add_incoming(new, loop)
        count = builder.udiv(width, _int64(_STEP))
        builder.cbranch(builder.icmp_unsigned("<", following, count), loop, after)
        builder.position_at_end(after)
        for place, new in zip(places, added, strict=True):
            builder.store(new, place, align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.intp, types.uintp), generate


def _everywhere(builder: Any, number: Any) -> Any:
    """A vector that holds one number in every place."""
    nothing = ir.Constant(_vector, ir.Undefined)
    one = builder.insert_element(nothing, number, _int32(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(_vector, [_int32(0)] * _vector.count))
