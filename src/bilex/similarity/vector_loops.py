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

from bilex.compiling import types
from bilex.int8_tiles import everywhere

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
    integer = isinstance(block.dtype, types.Integer)
    coarse_cells = integer and block.dtype.signed

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block, row, first, scale, _, _, bar, coarse, _ = arguments
        cells = _array(context, builder, signature.args[0], block)
        columns = cgutils.unpack_tuple(builder, cells.shape)[1]
        place = builder.gep(cells.data, [builder.add(builder.mul(row, columns), first)])
        of_columns = [
            builder.gep(_array(context, builder, signature.args[number], arguments[number]).data, [first])
            for number in (4, 5, 8)
        ]
        scale, bar, coarse = (everywhere(builder, number, _floats) for number in (scale, bar, coarse))
        bits = _int64(0)
        for start in range(0, GROUP, _LANES):
            if integer and not coarse_cells:
                halves = builder.zext(_load(builder, place, start, _halves), _integers)
                sixteen = ir.Constant(_integers, [16] * _LANES)
                score = builder.bitcast(builder.shl(halves, sixteen), _floats)
            elif integer:
                score = builder.sitofp(_load(builder, place, start, _integers), _floats)
            else:
                score = _load(builder, place, start, _floats)
            factor, added, other_bar = (_load(builder, array, start, _floats) for array in of_columns)
            score = builder.fmul(score, scale)
            if coarse_cells:
                score = builder.fmul(score, factor)
            score = builder.fadd(score, added)
            reached = builder.or_(
                builder.fcmp_ordered(">=", score, bar),
                builder.fcmp_ordered(">=", builder.fadd(score, coarse), other_bar),
            )
            part = builder.zext(builder.bitcast(reached, _int16), _int64)
            bits = builder.or_(bits, builder.shl(part, _int64(start)))
        return bits

    number = types.float32
    return (
        types.uint64(block, types.intp, types.intp, number, scales, raised, number, number, bars),
        generate,
    )


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set in a 64-bit word; one must be."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], _bit(1))

    return types.intp(types.uint64), generate


def _array(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """An array's fields."""
    return context.make_array(kind)(context, builder, value=array)


def _load(builder: Any, place: Any, offset: int, kind: Any) -> Any:
    """A vector of what lies `offset` numbers after a place, at any address that numbers may have."""
    start = builder.bitcast(builder.gep(place, [_int64(offset)]), kind.as_pointer())
    return builder.load(start, align=kind.element.width // 8 if hasattr(kind.element, "width") else 4)
