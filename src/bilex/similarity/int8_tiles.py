"""Products of 8-bit keys with 8-bit queries by the processor's own instruction for them (AVX-512 VNNI).

A *tile* holds `LANES` keys, four coordinates after the other: `tiles[t, step, lane]` are four neighbouring
coordinates of one key. One instruction multiplies four such bytes of sixteen keys with the same four of a
query and adds them up in 32 bits without loss; four vectors of keys and four queries at a time keep it
busy. It wants one side without sign, so 128 is added to the keys, and 128 times a query's sum is taken off.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import config
from numba.extending import intrinsic

from bilex.compiling import njit, types
from bilex.machine import processor

LANES = 64
STEP = 4  # coordinates that one instruction multiplies
_GROUP = 4  # queries that are multiplied together
_IN_VECTOR = 16
_VECTORS = LANES // _IN_VECTOR
_OFFSET = 128
_CACHE_LINE = 64
_int32, _int64 = ir.IntType(32), ir.IntType(64)
_vector = ir.VectorType(_int32, _IN_VECTOR)
_INSTRUCTION = "llvm.x86.avx512.vpdpbusd.512"


def usable() -> bool:
    """Whether this processor has the instruction, and the compiler may use it."""
    if "avx512_vnni" not in processor().features or config.CPU_NAME or config.CPU_FEATURES:
        return False
    return bool(config.ENABLE_AVX and llvmlite.binding.get_host_cpu_features().get("avx512vnni"))


def empty(keys: int, width: int) -> npt.NDArray[np.uint8]:
    """Tiles for so many keys of so many coordinates, all zero, in whole cache lines."""
    shape = (-(-keys // LANES), -(-width // STEP), LANES, STEP)
    memory = np.zeros(int(np.prod(shape)) + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + memory.size - _CACHE_LINE].reshape(shape)


def filled_up(low: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """8-bit queries filled up with zeros to whole groups and steps."""
    count, width = low.shape
    filled = np.zeros((-(-count // _GROUP) * _GROUP, -(-width // STEP) * STEP), np.int8)
    filled[:count, :width] = low
    return filled


@njit(nogil=True, cache=True)
def put(low: Any, tiles: Any, first: int) -> None:
    """Write 8-bit keys, one a row, into the tiles, from key `first` on."""
    for i in range(low.shape[0]):
        tile, lane = (first + i) // LANES, (first + i) % LANES
        for d in range(low.shape[1]):
            tiles[tile, d // STEP, lane, d % STEP] = np.uint8(np.int16(low[i, d]) + np.int16(_OFFSET))


@njit(nogil=True, cache=True)
def products(tiles: Any, queries: Any, scale: Any, first: int, out: Any) -> None:
    """The products of queries with keys, each times the key's scale.

    Args:
        tiles: All keys.
        queries: As `filled_up` makes them; may be more rows than `out` has.
        scale: One factor a key.
        first: The tile of the first column.
        out: Float32, one query a row; as many columns as keys are wanted.
    """
    count, columns = out.shape
    cells = np.empty((_GROUP, LANES), np.int32)
    taken_off = np.zeros(queries.shape[0], np.int32)
    for q in range(queries.shape[0]):
        for d in range(queries.shape[1]):
            taken_off[q] += _OFFSET * np.int32(queries[q, d])
    for at in range(0, columns, LANES):
        tile = first + at // LANES
        factors = scale[tile * LANES : tile * LANES + LANES]
        for q in range(0, count, _GROUP):
            for g in range(_GROUP):
                for lane in range(LANES):
                    cells[g, lane] = -taken_off[q + g]
            _add_products(
                tiles[tile].ctypes.data, queries[q].ctypes.data, queries.shape[1], cells.ctypes.data
            )
            for g in range(min(_GROUP, count - q)):
                if columns - at >= LANES:
                    _scale(cells[g], factors, out[q + g, at : at + LANES], LANES)
                else:
                    _scale(cells[g], factors, out[q + g, at:], columns - at)


@njit(nogil=True, cache=True, inline="always")
def _scale(cells: Any, factors: Any, out: Any, count: int) -> None:
    """Sums as float32 products; compiled once more for whole tiles, whose number of lanes is a constant."""
    for lane in range(count):
        out[lane] = np.float32(cells[lane]) * factors[lane]


@intrinsic
def _add_products(typing: Any, tile: Any, queries: Any, width: Any, cells: Any) -> Any:
    """Add the products of a tile with a group of queries to int32 cells; all but the width are addresses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        multiply = _declared(builder.module)
        tile, queries, width, cells = arguments
        key_vectors = builder.inttoptr(tile, _vector.as_pointer())
        rows = [
            builder.inttoptr(builder.add(queries, builder.mul(width, _int64(g))), _int32.as_pointer())
            for g in range(_GROUP)
        ]
        sums = builder.inttoptr(cells, _vector.as_pointer())
        places = [builder.gep(sums, [_int64(place)]) for place in range(_GROUP * _VECTORS)]
        before = [builder.load(place, align=4) for place in places]
        entry, loop = builder.block, builder.append_basic_block("steps")
        after = builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(_int64)
        totals = [builder.phi(_vector) for _ in places]
        first = builder.mul(step, _int64(_VECTORS))
        keys = [
            builder.load(builder.gep(key_vectors, [builder.add(first, _int64(v))]), align=1)
            for v in range(_VECTORS)
        ]
        added: list[Any] = []
        for row in rows:
            four = _everywhere(builder, builder.load(builder.gep(row, [step]), align=1))
            added += [
                builder.call(multiply, [totals[len(added) + v], keys[v], four]) for v in range(_VECTORS)
            ]
        following = builder.add(step, _int64(1))
        step.add_incoming(_int64(0), entry)
        step.add_incoming(following, loop)
        for total, start, new in zip(totals, before, added, strict=True):
            total.add_incoming(start, entry)
            total.add_incoming(new, loop)
        steps = builder.udiv(width, _int64(STEP))
        builder.cbranch(builder.icmp_unsigned("<", following, steps), loop, after)
        builder.position_at_end(after)
        for place, new in zip(places, added, strict=True):
            builder.store(new, place, align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.intp, types.uintp), generate


def _declared(module: Any) -> Any:
    """The instruction as a function of a module."""
    kind = ir.FunctionType(_vector, [_vector, _vector, _vector])
    known = module.globals.get(_INSTRUCTION)
    return known if known is not None else ir.Function(module, kind, _INSTRUCTION)


def _everywhere(builder: Any, number: Any) -> Any:
    """A vector that holds one number in every place."""
    nothing = ir.Constant(_vector, ir.Undefined)
    one = builder.insert_element(nothing, number, _int32(0))
    places = ir.Constant(_vector, [_int32(0)] * _IN_VECTOR)
    return builder.shuffle_vector(one, nothing, places)
