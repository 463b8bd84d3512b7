"""Compiled loops behind `bilex.search.stochastic`: one look at each score, then only at candidates.

For each source row and each target row (a *line* of the score matrix, either way) there is a list of
candidates: the scores that reach one of the line's two bars, one for plain scores (they make the means of
CSLS) and one for scores less the penalty of the other side (among them is the partner); of the latter only
those that random masking keeps. `collect` fills the lists of both sides from a block of scores; the others
read them. A cell of a block is a float32, the upper
16 bits of one (bfloat16, seen as uint16), or an int32; its score is the cell times a factor of its row and
one of its column. Every function releases the GIL.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.core.compiling import njit, overload, types
from bilex.search.int8_tiles import LANES, add_products, group_size
from bilex.search.vector_loops import GROUP, lowest_bit, reaching_lower

Floats = npt.NDArray[np.float32]

LOWEST = np.float32(-1e30)
_STEP = np.float32(0.02)  # how far a bar moves where e times as many candidates came as were wanted
_AT_ONCE = 64  # rows whose products with a tile are looked at together
# No reordering: a score must be the same number wherever it is computed.
_compiled = njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
# Without memory of its own, so that no references to arrays are counted: threads would share the counters.
_lean = njit(nogil=True, cache=True, fastmath={"nnan", "nsz"}, _nrt=False)


class Lists(NamedTuple):
    """The lines of one side and their candidates.

    Attributes:
        plain_bar: A score that reaches it is a candidate.
        csls_bar: So is a score that is kept and reaches it with the other side's penalty taken off.
        penalty: What is taken off this side's scores where the other side compares them.
        met: Candidates met; of those beyond the room of a list only the number is known.
        place: The candidates' places on the other side.
        score: Their scores.
    """

    plain_bar: Floats
    csls_bar: Floats
    penalty: Floats
    met: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    score: Floats


def _number(cell: Any) -> Any:
    """The number in a cell of a block."""
    raise NotImplementedError


@overload(_number, inline="always", strict=False)
def _number_overload(cell: Any) -> Any:
    if isinstance(cell, types.Integer) and not cell.signed:
        return lambda cell: np.uint32(np.uint32(cell) << np.uint32(16)).view(np.float32)
    return lambda cell: np.float32(cell)  # noqa: PLW0108 (compiled from its text)


@njit(nogil=True, cache=True, inline="always")
def _kept(key: Any, query: int, candidate: int, limit: Any) -> Any:
    """Whether the random mask keeps a score: a hash of its place, mixed twice, against keep·2³²."""
    mixed = np.uint64(key) ^ ((np.uint64(query) << np.uint64(32)) | np.uint64(candidate))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)) < np.uint64(limit)


@_lean
def _reaching(
    block: Any,
    row: int,
    start: int,
    own_scale: Any,
    own_plain: Any,
    own_csls: Any,
    own_penalty: Any,
    scale: Any,
    plain_bar: Any,
    csls_bar: Any,
    penalty: Any,
) -> Any:
    """What `reaching_lower` says, of fewer than `GROUP` scores: all columns from `start` on."""
    bits = np.uint64(0)
    for place in range(start, scale.shape[0]):
        score = _number(block[row, place]) * own_scale * scale[place]
        of_row = min(own_plain, own_csls + penalty[place])
        of_column = min(plain_bar[place], csls_bar[place] + own_penalty)
        if score >= min(of_row, of_column):
            bits |= np.uint64(1) << np.uint64(place - start)
    return bits


@_lean
def collect(
    block: Any,
    height: int,
    width: int,
    first_row: int,
    first_column: int,
    row_scale: Any,
    column_scale: Any,
    rows: Lists,
    columns: Lists,
    mask: Any,
) -> None:
    """Append the scores of a block that reach a bar to the lists of their row and of their column.

    Args:
        block: Cells, of which those that follow may be more than are wanted.
        height: Rows that are wanted.
        width: Columns that are wanted.
        first_row: The source row of the block's first row.
        first_column: The target row of its first column.
        row_scale: Factors of all source rows.
        column_scale: Factors of all target rows.
        rows: Lists of the source rows.
        columns: Lists of the target rows.
        mask: Where the random numbers of rows and of columns start; the probability of being kept, times 2³².
    """
    row_key, column_key, limit = mask
    end, room = first_column + width, rows.place.shape[1]
    scale, penalty = column_scale[first_column:end], columns.penalty[first_column:end]
    plain_bar, csls_bar = columns.plain_bar[first_column:end], columns.csls_bar[first_column:end]
    row_plain, row_csls, row_penalty = rows.plain_bar, rows.csls_bar, rows.penalty
    row_met, row_place, row_score = rows.met, rows.place, rows.score
    column_met, column_place, column_score = columns.met, columns.place, columns.score
    column_room = column_place.shape[1]
    for row in range(height):
        line = first_row + row
        own_scale, own_plain = row_scale[line], row_plain[line]
        own_csls, own_penalty = row_csls[line], row_penalty[line]
        for start in range(0, width, GROUP):
            if start + GROUP <= width:
                bits = reaching_lower(
                    block,
                    row,
                    start,
                    own_scale,
                    own_plain,
                    own_csls,
                    own_penalty,
                    scale,
                    plain_bar,
                    csls_bar,
                    penalty,
                )
            else:
                bits = _reaching(
                    block,
                    row,
                    start,
                    own_scale,
                    own_plain,
                    own_csls,
                    own_penalty,
                    scale,
                    plain_bar,
                    csls_bar,
                    penalty,
                )
            while bits != 0:
                place = start + lowest_bit(bits)
                bits &= bits - np.uint64(1)
                other, score = first_column + place, _number(block[row, place]) * own_scale * scale[place]
                if score >= own_plain or (
                    score >= own_csls + penalty[place] and _kept(row_key, line, other, limit)
                ):
                    met = row_met[line]
                    if met < room:
                        row_place[line, met], row_score[line, met] = other, score
                    row_met[line] = met + 1
                if score >= plain_bar[place] or (
                    score >= csls_bar[place] + own_penalty and _kept(column_key, other, line, limit)
                ):
                    met = column_met[other]
                    if met < column_room:
                        column_place[other, met], column_score[other, met] = line, score
                    column_met[other] = met + 1


@_compiled
def collect_products(
    tiles: Any,
    queries: Any,
    of_queries: Any,
    of_keys: Any,
    strip: Any,
    row_scale: Any,
    column_scale: Any,
    rows: Lists,
    columns: Lists,
    mask: Any,
) -> None:
    """Multiply 8-bit rows with tiles of keys, and append the products as `collect` does.

    The products of some rows with a tile stay in the nearest cache until they have been looked at.

    Args:
        tiles: All target rows.
        queries: All source rows, as `int8_tiles.filled_up` makes them.
        of_queries: What is taken off the sums of each source row.
        of_keys: What is taken off the sums of each target row.
        strip: First and last source row, first and last tile; the last ones are not included.
        row_scale: Factors of all source rows.
        column_scale: Factors of all target rows.
        rows: Lists of the source rows.
        columns: Lists of the target rows.
        mask: As for `collect`.
    """
    first_row, last_row, first_tile, last_tile = strip
    group = group_size(tiles)
    block = np.empty((_AT_ONCE, LANES), np.int32)
    for tile in range(first_tile, last_tile):
        first, width = tile * LANES, min(LANES, columns.met.shape[0] - tile * LANES)
        of_lanes = of_keys[first : first + LANES]
        for start in range(first_row, last_row, _AT_ONCE):
            count = min(_AT_ONCE, last_row - start)
            for row in range(-(-count // group) * group):
                taken_off = of_queries[start + row]
                for lane in range(LANES):
                    block[row, lane] = -(taken_off + of_lanes[lane])
            for row in range(0, count, group):
                add_products(tiles, tile, queries, start + row, block, row)
            collect(block, count, width, start, first, row_scale, column_scale, rows, columns, mask)


@njit(nogil=True, cache=True, fastmath=True)
def rescore(lists: Lists, first: int, last: int, own: Any, other: Any) -> None:
    """Give the candidates of some lines their float32 scores."""
    met, place, score = lists.met, lists.place, lists.score
    for line in range(first, last):
        for number in range(min(met[line], place.shape[1])):
            partner = place[line, number]
            total = np.float32(0)
            for d in range(own.shape[1]):
                total += own[line, d] * other[partner, d]
            score[line, number] = total


@_compiled
def _insert(best: Any, score: Any) -> None:
    """Put `score` into a rising list in place of its smallest member."""
    place = 0
    while place + 1 < best.shape[0] and best[place + 1] < score:
        best[place] = best[place + 1]
        place += 1
    best[place] = score


@_compiled
def rank(lists: Lists, first: int, last: int, error: Any, highest: Any, sure: Any) -> None:
    """Find the k highest scores of some lines, in rising order, where the candidates settle them.

    Args:
        lists: Lists of the side.
        first: First line.
        last: Last line, not included.
        error: By how much a score that is no candidate may lie above its bar, per line.
        highest: Where the scores go, k a line.
        sure: Where it is said whether they are the line's highest.
    """
    met, score, bar, room = lists.met, lists.score, lists.plain_bar, lists.place.shape[1]
    for line in range(first, last):
        best = highest[line]
        best[:] = LOWEST
        for number in range(min(met[line], room)):
            if score[line, number] > best[0]:
                _insert(best, score[line, number])
        sure[line] = met[line] <= room and best[0] >= bar[line] + error[line]


@_compiled
def choose(
    lists: Lists,
    first: int,
    last: int,
    error: Any,
    penalty: Any,
    key: Any,
    limit: Any,
    wanted: float,
    partner: Any,
    reach: Any,
    sure: Any,
) -> None:
    """Find the best kept candidate of some lines by score − penalty; the first of equal ones.

    Args:
        lists: Lists of the side.
        first: First line.
        last: Last line, not included.
        error: By how much a score less its penalty may lie above its bar without being a candidate.
        penalty: Of the other side.
        key: Where the random numbers start.
        limit: The probability of being kept, times 2³².
        wanted: How many kept candidates should reach `reach`, on average; 0 if the best alone should.
        partner: Where the best go.
        reach: Per line, about what score less penalty the wanted ones have; it is moved towards that.
        sure: Where it is said whether `partner` is right.
    """
    met, place, score, bar = lists.met, lists.place, lists.score, lists.csls_bar
    room, others = place.shape[1], penalty.shape[0]
    for line in range(first, last):
        best, found, reached, level = LOWEST, others, 0, reach[line]
        for number in range(min(met[line], room)):
            other = place[line, number]
            less = score[line, number] - penalty[other]
            if less >= min(best, level) and _kept(key, line, other, limit):
                reached += less >= level
                if less > best or (less == best and other < found):
                    best, found = less, other
        move = _STEP * np.float32(math.log((reached + 1) / (wanted + 1)))
        reach[line] = level + move if wanted > 0 else best
        sure[line] = met[line] <= room and best >= bar[line] + error[line]
        if sure[line]:
            partner[line] = found if best >= 0 else _first_hidden(key, line, others, limit, found)


@njit(nogil=True, cache=True, inline="always")
def _first_hidden(key: Any, line: int, others: int, limit: Any, otherwise: int) -> Any:
    """The first hidden candidate, whose score of zero wins over negative ones; `otherwise` if none is."""
    for other in range(others):
        if not _kept(key, line, other, limit):
            return other
    return otherwise


@_compiled
def rank_whole(block: Any, lines: Any, own_scale: Any, other_scale: Any, highest: Any) -> None:
    """Find the k highest scores of lines of which a block holds all scores, in rising order.

    Args:
        block: Cells, one row per line.
        lines: Which lines.
        own_scale: Factors of the side.
        other_scale: Factors of the other side.
        highest: Where the scores go, k for each line of the side.
    """
    for row in range(block.shape[0]):
        best, scale = highest[lines[row]], own_scale[lines[row]]
        best[:] = LOWEST
        for other in range(block.shape[1]):
            score = _number(block[row, other]) * scale * other_scale[other]
            if score > best[0]:
                _insert(best, score)


@_compiled
def choose_whole(
    block: Any,
    lines: Any,
    own_scale: Any,
    other_scale: Any,
    penalty: Any,
    key: Any,
    limit: Any,
    wanted: int,
    partner: Any,
    reach: Any,
) -> None:
    """Find the partners of lines of which a block holds all scores; see `rank_whole` and `choose`."""
    others = block.shape[1]
    highest = np.empty(min(wanted, others), np.float32)
    for row in range(block.shape[0]):
        line = lines[row]
        best, found = LOWEST, others
        highest[:] = LOWEST
        for other in range(others):
            score = _number(block[row, other]) * own_scale[line] * other_scale[other] - penalty[other]
            if score > highest[0]:
                _insert(highest, score)
            if score > best and _kept(key, line, other, limit):
                best, found = score, other
        reach[line] = highest[0]
        partner[line] = found if best >= 0 else _first_hidden(key, line, others, limit, found)


@_compiled
def add_rows(pairs: Any, rows: Any, sums: Any) -> None:
    """Add, for each pair (a, b), row b to sum a, one pair after the other."""
    for number in range(pairs.shape[0]):
        onto, row = pairs[number]
        for d in range(rows.shape[1]):
            sums[onto, d] += rows[row, d]
