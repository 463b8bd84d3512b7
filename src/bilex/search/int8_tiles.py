"""Products of 8-bit keys with 8-bit queries by the processor's own instructions for them.

A *tile* holds `LANES` keys, four coordinates after the other: `tiles[t, step, lane]` are four neighbouring
coordinates of one key. There are two kinds, told apart by the type of their numbers:

* AVX-512 VNNI (uint8 tiles, int8 queries): one instruction multiplies four bytes of sixteen keys with the
  same four of a query and adds them up in 32 bits. Four vectors of keys and four queries at a time keep it
  busy. It wants one side without sign, so 128 is added to the keys, and 128 times a query's sum is taken off.
* AVX2 (int8 tiles, uint8 queries): an instruction adds up two products in 16 bits, which holds two such
  sums of numbers within ±63; another adds up neighbours in 32 bits. Eight vectors of keys and one query at a
  time fit its sixteen registers. Here 64 is added to the queries, and 64 times a key's sum is taken off.

Sums are exact with either.
"""

from __future__ import annotations

from typing import Any, Literal

import llvmlite.binding
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import config
from numba.extending import intrinsic

from bilex.core.compiling import njit, overload, types
from bilex.core.machine import processor

Kind = Literal["vnni", "avx2"]
Numbers = npt.NDArray[Any]
Sums = npt.NDArray[np.int32]

LANES = 64
LARGEST: dict[Kind, int] = {"vnni": 127, "avx2": 63}
"""The largest size of a number whose products each kind adds up without loss."""

_STEP = 4  # coordinates of a key that lie side by side
_OFFSET: dict[Kind, int] = {"vnni": 128, "avx2": 64}
_COORDINATES: dict[Kind, int] = {"vnni": _STEP, "avx2": 2 * _STEP}  # that are multiplied at a time
_VNNI_OFFSET = _OFFSET["vnni"]
_GROUP: dict[Kind, int] = {"vnni": 4, "avx2": 1}  # queries that are multiplied together
_CACHE_LINE = 64
# The processor that numba is told to compile for when AVX2 is imitated (docs/explanation/machines.md).
_IMITATED = "haswell"
_int8, _int16, _int32, _int64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))


def kind() -> Kind | None:
    """Which instructions this processor has and the compiler may use; None if neither."""
    features, free = processor().features, config.CPU_NAME is None and config.CPU_FEATURES is None
    if not config.ENABLE_AVX:
        return None
    compiled = llvmlite.binding.get_host_cpu_features()
    if "avx512_vnni" in features and free and compiled.get("avx512vnni"):
        return "vnni"
    imitated = config.CPU_NAME == _IMITATED and not config.CPU_FEATURES
    if "avx2" in features and (free or imitated) and compiled.get("avx2"):
        return "avx2"
    return None


def empty(keys: int, width: int, kind: Kind = "vnni") -> Numbers:
    """Tiles for so many keys of so many coordinates, all zero, in whole cache lines."""
    steps = -(-width // _COORDINATES[kind]) * _COORDINATES[kind] // _STEP
    shape = (-(-keys // LANES), steps, LANES, _STEP)
    memory = np.zeros(int(np.prod(shape)) + _CACHE_LINE, np.uint8 if kind == "vnni" else np.int8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + memory.size - _CACHE_LINE].reshape(shape)


def filled_up(low: npt.NDArray[np.int8], kind: Kind = "vnni") -> Numbers:
    """8-bit queries filled up to whole groups and steps, as they are multiplied."""
    count, width = low.shape
    group, step = _GROUP[kind], _COORDINATES[kind]
    filled = np.zeros((-(-count // group) * group, -(-width // step) * step), np.int8)
    filled[:count, :width] = low
    return (filled + np.int8(_OFFSET[kind])).view(np.uint8) if kind == "avx2" else filled


def taken_off(low: npt.NDArray[np.int8], kind: Kind, side: Literal["keys", "queries"]) -> Sums:
    """What is taken off the sums of each row of a side, for as many rows as whole tiles have."""
    sums = np.zeros(-(-len(low) // LANES) * LANES, np.int32)
    if side == ("keys" if kind == "avx2" else "queries"):
        sums[: len(low)] = _OFFSET[kind] * low.sum(axis=1, dtype=np.int32)
    return sums


@njit(nogil=True, cache=True)
def put(low: Any, tiles: Any, first: int) -> None:
    """Write 8-bit keys, one per row, into the tiles, from key `first` on."""
    for i in range(low.shape[0]):
        tile, lane = (first + i) // LANES, (first + i) % LANES
        for d in range(low.shape[1]):
            tiles[tile, d // _STEP, lane, d % _STEP] = _stored(tiles, low[i, d])


def _stored(tiles: Any, number: Any) -> Any:
    """A key's number as it stands in tiles."""
    raise NotImplementedError


@overload(_stored, inline="always", strict=False)
def _stored_overload(tiles: Any, number: Any) -> Any:
    if tiles.dtype.signed:
        return lambda tiles, number: number
    offset = np.int16(_OFFSET["vnni"])
    return lambda tiles, number: np.uint8(np.int16(number) + offset)


def group_size(tiles: Any) -> int:
    """How many queries `add_products` multiplies together; a constant where it is compiled."""
    raise NotImplementedError


@overload(group_size, inline="always", strict=False)
def _group_size_overload(tiles: Any) -> Any:
    size = _GROUP["avx2" if tiles.dtype.signed else "vnni"]
    return lambda tiles: size


@njit(nogil=True, cache=True)
def products(tiles: Any, queries: Any, scale: Any, first: int, out: Any) -> None:
    """The products of queries with keys in tiles of VNNI, each times the key's scale.

    Args:
        tiles: All keys.
        queries: As `filled_up` makes them; may be more rows than `out` has.
        scale: One factor a key.
        first: The tile of the first column.
        out: Float32, one query a row; as many columns as keys are wanted.
    """
    count, columns = out.shape
    group = group_size(tiles)
    cells = np.empty((group, LANES), np.int32)
    sums = np.zeros(queries.shape[0], np.int32)
    for q in range(queries.shape[0]):
        for d in range(queries.shape[1]):
            sums[q] += _VNNI_OFFSET * np.int32(queries[q, d])
    for at in range(0, columns, LANES):
        tile = first + at // LANES
        factors = scale[tile * LANES : tile * LANES + LANES]
        for q in range(0, count, group):
            for g in range(group):
                for lane in range(LANES):
                    cells[g, lane] = -sums[q + g]
            add_products(tiles, tile, queries, q, cells, 0)
            for g in range(min(group, count - q)):
                if columns - at >= LANES:
                    _scale(cells[g], factors, out[q + g, at : at + LANES], LANES)
                else:
                    _scale(cells[g], factors, out[q + g, at:], columns - at)


@njit(nogil=True, cache=True)
def add_all(tiles: Any, queries: Any, cells: Any) -> None:
    """Add the products of all tiles with all queries to int32 cells, a tile after the other."""
    for tile in range(tiles.shape[0]):
        for query in range(0, queries.shape[0], group_size(tiles)):
            add_products(tiles, tile, queries, query, cells[tile], query)


def all_products(tiles: Numbers, queries: Numbers, of_queries: Sums, of_keys: Sums) -> Sums:
    """The products of all queries with all keys in tiles, one query a row, filled up as both are.

    Args:
        tiles: The keys.
        queries: As `filled_up` makes them.
        of_queries: What is taken off the sums of each query, for at least as many.
        of_keys: What is taken off the sums of each key.
    """
    cells = np.zeros((len(tiles), len(queries), LANES), np.int32)
    add_all(tiles, queries, cells)
    sums: Sums = cells.transpose(1, 0, 2).reshape(len(queries), -1)
    sums -= of_queries[: len(queries), None]
    sums -= of_keys
    return sums


@njit(nogil=True, cache=True, inline="always")
def _scale(cells: Any, factors: Any, out: Any, count: int) -> None:
    """Sums as float32 products; compiled once more for whole tiles, whose number of lanes is a constant."""
    for lane in range(count):
        out[lane] = np.float32(cells[lane]) * factors[lane]


@njit(nogil=True, cache=True, inline="always")
def add_products(tiles: Any, tile: int, queries: Any, query: int, cells: Any, row: int) -> None:
    """Add the products of a tile with a group of queries, from `query` on, to int32 cells from `row` on."""
    _add(
        tiles,
        tiles[tile].ctypes.data,
        queries[query].ctypes.data,
        queries.shape[1],
        cells[row].ctypes.data,
    )


@intrinsic
def _add(typing: Any, tiles: Any, tile: Any, queries: Any, width: Any, cells: Any) -> Any:
    """See `add_products`; all but the tiles, whose type says the kind, and the width are addresses."""
    generate = _generate_avx2 if tiles.dtype.signed else _generate_vnni
    return types.void(tiles, types.uintp, types.uintp, types.intp, types.uintp), generate


def _generate_vnni(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Four queries with four vectors of sixteen keys, four coordinates at a time."""
    vector = ir.VectorType(_int32, 16)
    multiply = _declared(builder, "llvm.x86.avx512.vpdpbusd.512", vector, [vector] * 3)

    def step(keys: list[Any], fours: list[Any], totals: list[Any]) -> list[Any]:
        places = [(query, v) for query in range(_GROUP["vnni"]) for v in range(len(keys))]
        return [
            builder.call(multiply, [total, keys[v], everywhere(builder, fours[query], vector)])
            for total, (query, v) in zip(totals, places, strict=True)
        ]

    return _steps(context, builder, arguments, vector, "vnni", step)


def _generate_avx2(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """One query with eight vectors of eight keys, twice four coordinates at a time."""
    vector, bytes_, shorts = (
        ir.VectorType(number, 256 // number.width) for number in (_int32, _int8, _int16)
    )
    multiply = _declared(builder, "llvm.x86.avx2.pmadd.ub.sw", shorts, [bytes_] * 2)
    widen = _declared(builder, "llvm.x86.avx2.pmadd.wd", vector, [shorts] * 2)
    ones = ir.Constant(shorts, [_int16(1)] * shorts.count)

    def step(keys: list[Any], fours: list[Any], totals: list[Any]) -> list[Any]:
        query = [builder.bitcast(everywhere(builder, four, vector), bytes_) for four in fours]
        halves = keys[: len(totals)], keys[len(totals) :]
        added = []
        for total, *pair in zip(totals, *halves, strict=True):
            sums = [
                builder.call(multiply, [four, builder.bitcast(key, bytes_)])
                for four, key in zip(query, pair, strict=True)
            ]
            added.append(builder.add(total, builder.call(widen, [builder.add(*sums), ones])))
        return added

    return _steps(context, builder, arguments, vector, "avx2", step)


def _steps(context: Any, builder: Any, arguments: Any, vector: Any, kind: Kind, step: Any) -> Any:
    """A loop over coordinates that keeps all sums in registers; `step` makes new sums of the old ones."""
    _, tile, queries, width, cells = arguments
    group, fours_a_step = _GROUP[kind], _COORDINATES[kind] // _STEP
    vectors = LANES // vector.count
    key_vectors = builder.inttoptr(tile, vector.as_pointer())
    rows = [
        builder.inttoptr(builder.add(queries, builder.mul(width, _int64(g))), _int32.as_pointer())
        for g in range(group)
    ]
    sums = builder.inttoptr(cells, vector.as_pointer())
    places = [builder.gep(sums, [_int64(place)]) for place in range(group * vectors)]
    before = [builder.load(place, align=4) for place in places]
    entry, loop = builder.block, builder.append_basic_block("steps")
    after = builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    number = builder.phi(_int64)
    totals = [builder.phi(vector) for _ in places]
    first = builder.mul(number, _int64(fours_a_step))
    keys = [
        builder.load(
            builder.gep(key_vectors, [builder.add(builder.mul(first, _int64(vectors)), _int64(v))]), align=1
        )
        for v in range(fours_a_step * vectors)
    ]
    fours = [
        builder.load(builder.gep(row, [builder.add(first, _int64(four))]), align=1)
        for row in rows
        for four in range(fours_a_step)
    ]
    added = step(keys, fours, totals)
    following = builder.add(number, _int64(1))
    number.add_incoming(_int64(0), entry)
    number.add_incoming(following, loop)
    for total, start, new in zip(totals, before, added, strict=True):
        total.add_incoming(start, entry)
        total.add_incoming(new, loop)
    count = builder.udiv(width, _int64(_COORDINATES[kind]))
    builder.cbranch(builder.icmp_unsigned("<", following, count), loop, after)
    builder.position_at_end(after)
    for place, new in zip(places, added, strict=True):
        builder.store(new, place, align=4)
    return context.get_dummy_value()


def _declared(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """An instruction as a function of the module that is being built."""
    known = builder.module.globals.get(name)
    return (
        known if known is not None else ir.Function(builder.module, ir.FunctionType(result, arguments), name)
    )


def everywhere(builder: Any, number: Any, vector: Any) -> Any:
    """A vector that holds one number in every place."""
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, number, _int32(0))
    places = ir.Constant(ir.VectorType(_int32, vector.count), [_int32(0)] * vector.count)
    return builder.shuffle_vector(one, nothing, places)
