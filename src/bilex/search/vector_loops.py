"""The two innermost steps of a search, written for vector registers of any processor.

numba turns a comparison into a branch and adds up what is left over of a dot product one number after the
other. Here both are written in LLVM's own vectors of sixteen numbers, which it maps to whatever the processor
has: one AVX-512 register, two of AVX2, four of older ones.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from bilex.core.compiling import types
from bilex.search.int8_tiles import everywhere

GROUP = 64  # columns that are compared together, one bit each
_LANES = 16
_bit, _int16, _int32, _int64 = (ir.IntType(size) for size in (1, 16, 32, 64))
_float = ir.FloatType()
_floats, _integers, _halves = (ir.VectorType(kind, _LANES) for kind in (_float, _int32, _int16))


@intrinsic
def reaching(
    typing: Any,
    block: Any,
    row: Any,
    first: Any,
    scale: Any,
    scales: Any,
    raised: Any,
    bar: Any,
    coarse: Any,
    bars: Any,
) -> Any:
    """Which of `GROUP` scores of a row of a block reach the row's bar or their column's, a bit each.

    A score is its cell times `scale`, for int32 also times its column's of `scales`, plus its column's of
    `raised`. It reaches the row's bar if it is at least `bar`, and its column's if with `coarse` it is at
    least that of `bars`. The block is float32, int32, or uint16 that holds bfloat16, one row after the other.

    Args:
        typing: numba's.
        block: The scores' cells.
        row: The row within the block.
        first: The first column; the arrays of columns begin with that of the block.
        scale: The row's scale.
        scales: The columns' scales.
        raised: What is added to the columns' scores.
        bar: The row's bar.
        coarse: What is added before a score is compared with its column's bar.
        bars: The columns' bars.
    """
    coarse_cells = isinstance(block.dtype, types.Integer) and block.dtype.signed

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block, row, first, scale, _, _, bar, coarse, _ = arguments
        place = _cell(context, builder, signature.args[0], block, row, first)
        of_columns = _columns(context, builder, signature, arguments, (4, 5, 8), first)
        scale, bar, coarse = (everywhere(builder, number, _floats) for number in (scale, bar, coarse))

        def reached(start: int) -> Any:
            factor, added, other_bar = (_load(builder, array, start, _floats) for array in of_columns)
            score = builder.fmul(_numbers(builder, signature.args[0].dtype, place, start), scale)
            if coarse_cells:
                score = builder.fmul(score, factor)
            score = builder.fadd(score, added)
            return builder.or_(
                builder.fcmp_ordered(">=", score, bar),
                builder.fcmp_ordered(">=", builder.fadd(score, coarse), other_bar),
            )

        return _bits(builder, reached)

    number = types.float32
    return (
        types.uint64(block, types.intp, types.intp, number, scales, raised, number, number, bars),
        generate,
    )


@intrinsic
def reaching_lower(
    typing: Any,
    block: Any,
    row: Any,
    first: Any,
    scale: Any,
    bar: Any,
    other_bar: Any,
    penalty: Any,
    scales: Any,
    bars: Any,
    other_bars: Any,
    penalties: Any,
) -> Any:
    """Which of `GROUP` scores of a row of a block reach the lowest of four bars, a bit each.

    A score is its cell times `scale` times its column's of `scales`. The bars are the row's `bar`, its
    `other_bar` plus the column's penalty, the column's of `bars`, and its of `other_bars` plus the row's
    penalty. The block is as in `reaching`.

    Args:
        typing: numba's.
        block: The scores' cells.
        row: The row within the block.
        first: The first column; the arrays of columns begin with that of the block.
        scale: The row's scale.
        bar: The row's bar.
        other_bar: The row's bar for scores less penalties.
        penalty: The row's penalty.
        scales: The columns' scales.
        bars: The columns' bars.
        other_bars: The columns' bars for scores less penalties.
        penalties: The columns' penalties.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block, row, first, *of_row = arguments[:7]
        place = _cell(context, builder, signature.args[0], block, row, first)
        of_columns = _columns(context, builder, signature, arguments, (7, 8, 9, 10), first)
        scale, bar, other_bar, penalty = (everywhere(builder, number, _floats) for number in of_row)

        def reached(start: int) -> Any:
            factor, its_bar, its_other, its_penalty = (
                _load(builder, array, start, _floats) for array in of_columns
            )
            score = builder.fmul(_numbers(builder, signature.args[0].dtype, place, start), scale)
            score = builder.fmul(score, factor)
            of_row = _lower(builder, bar, builder.fadd(other_bar, its_penalty))
            of_column = _lower(builder, its_bar, builder.fadd(its_other, penalty))
            return builder.fcmp_ordered(">=", score, _lower(builder, of_row, of_column))

        return _bits(builder, reached)

    number = types.float32
    row_types, column_types = (number,) * 4, (scales, bars, other_bars, penalties)
    return types.uint64(block, types.intp, types.intp, *row_types, *column_types), generate


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set in a 64-bit word; one must be."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], _bit(1))

    return types.intp(types.uint64), generate


def _bits(builder: Any, reached: Any) -> Any:
    """The outcomes of `reached(first column)`, `_LANES` at a time, as the bits of one word."""
    bits = _int64(0)
    for start in range(0, GROUP, _LANES):
        part = builder.zext(builder.bitcast(reached(start), _int16), _int64)
        bits = builder.or_(bits, builder.shl(part, _int64(start)))
    return bits


def _lower(builder: Any, one: Any, other: Any) -> Any:
    """The lower of two numbers, in each place."""
    return builder.select(builder.fcmp_ordered("<", one, other), one, other)


def _numbers(builder: Any, dtype: Any, place: Any, start: int) -> Any:
    """The numbers in cells of a block."""
    if not isinstance(dtype, types.Integer):
        return _load(builder, place, start, _floats)
    if dtype.signed:
        return builder.sitofp(_load(builder, place, start, _integers), _floats)
    halves = builder.zext(_load(builder, place, start, _halves), _integers)
    sixteen = ir.Constant(_integers, [16] * _LANES)
    return builder.bitcast(builder.shl(halves, sixteen), _floats)


def _cell(context: Any, builder: Any, kind: Any, block: Any, row: Any, column: Any) -> Any:
    """Where a cell of a block lies."""
    cells = _array(context, builder, kind, block)
    columns = cgutils.unpack_tuple(builder, cells.shape)[1]
    return builder.gep(cells.data, [builder.add(builder.mul(row, columns), column)])


def _columns(
    context: Any, builder: Any, signature: Any, arguments: Any, numbers: tuple[int, ...], first: Any
) -> list[Any]:
    """Where the arrays of columns among the arguments have their number of a block's column."""
    return [
        builder.gep(_array(context, builder, signature.args[number], arguments[number]).data, [first])
        for number in numbers
    ]


def _array(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """An array's fields."""
    return context.make_array(kind)(context, builder, value=array)


def _load(builder: Any, place: Any, offset: int, kind: Any) -> Any:
    """A vector of what lies `offset` numbers after a place, at any address that numbers may have."""
    start = builder.bitcast(builder.gep(place, [_int64(offset)]), kind.as_pointer())
    return builder.load(start, align=kind.element.width // 8 if hasattr(kind.element, "width") else 4)
