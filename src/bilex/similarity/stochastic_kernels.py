"""Compiled loops behind `bilex.similarity.stochastic`: one look at each score, then only at candidates.

For each source row and each target row (a *line* of the score matrix, either way) there is a list of
candidates: the scores that reach one of the line's two bars, one for plain scores (they make the means of
CSLS) and one for scores less the penalty of the other side (among them is the partner). `collect` fills the
lists of both sides from a block of scores; the others read them. A cell of a block is a float32, the upper
16 bits of one (bfloat16, seen as uint16), or an int32; its score is the cell times a factor of its row and
one of its column. Every function releases the GIL.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bilex.compiling import njit, overload, types
from bilex.int8_tiles import LANES, add_products, group_size
from bilex.similarity.kernels import kth_largest
from bilex.similarity.vector_loops import lowest_bit

Floats = npt.NDArray[np.float32]

LOWEST = np.float32(-1e30)
_CHUNK = 32  # comparisons that one word holds, a bit each
_AT_ONCE = 64  # rows whose products with a tile are looked at together
# No reordering: a score must be the same number wherever it is computed.
_compiled = njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})


class Lists(NamedTuple):
    """The lines of one side and their candidates.

    Attributes:
        plain_bar: A score that reaches it is a candidate.
        csls_bar: So is a score that reaches it with the other side's penalty taken off.
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
def _append(lists: Any, line: int, place: int, score: Any) -> None:
    met = lists.met[line]
    if met < lists.place.shape[1]:
        lists.place[line, met] = place
        lists.score[line, met] = score
    lists.met[line] = met + 1


@_compiled
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
    """
    end = first_column + width
    scale, penalty = column_scale[first_column:end], columns.penalty[first_column:end]
    plain_bar, csls_bar = columns.plain_bar[first_column:end], columns.csls_bar[first_column:end]
    for row in range(height):
        line, cells = first_row + row, block[row]
        own = row_scale[line], rows.plain_bar[line], rows.csls_bar[line], rows.penalty[line]
        for start in range(0, width, _CHUNK):
            if start + _CHUNK <= width:
                bits = _reaching(cells, start, _CHUNK, own, scale, penalty, plain_bar, csls_bar)
            else:
                bits = _reaching(cells, start, width - start, own, scale, penalty, plain_bar, csls_bar)
            while bits != 0:
                place = start + lowest_bit(np.uint64(bits))
                bits = np.uint32(bits & (bits - np.uint32(1)))
                score = _number(cells[place]) * own[0] * scale[place]
                if score >= min(own[1], own[2] + penalty[place]):
                    _append(rows, line, first_column + place, score)
                if score >= min(plain_bar[place], csls_bar[place] + own[3]):
                    _append(columns, first_column + place, line, score)


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
    """
    first_row, last_row, first_tile, last_tile = strip
    group = group_size(tiles)
    block = np.empty((_AT_ONCE, LANES), np.int32)
    for tile in range(first_tile, last_tile):
        first, width = tile * LANES, min(LANES, columns.met.shape[0] - tile * LANES)
        for start in range(first_row, last_row, _AT_ONCE):
            count = min(_AT_ONCE, last_row - start)
            for row in range(-(-count // group) * group):
                taken_off = of_queries[start + row]
                for lane in range(LANES):
                    block[row, lane] = -(taken_off + of_keys[first + lane])
            for row in range(0, count, group):
                add_products(tiles, tile, queries, start + row, block, row)
            collect(block, count, width, start, first, row_scale, column_scale, rows, columns)


@njit(nogil=True, cache=True, inline="always")
def _reaching(
    cells: Any, start: int, count: int, own: Any, scale: Any, penalty: Any, plain_bar: Any, csls_bar: Any
) -> Any:
    """A bit for each of at most `_CHUNK` scores: whether it reaches a bar of its row or of its column."""
    own_scale, own_plain, own_csls, own_penalty = own
    first, bits = np.uint64(start), np.uint32(0)
    for lane in range(count):
        place = first + np.uint64(lane)  # without sign, or vector instructions could not be used
        score = _number(cells[place]) * own_scale * scale[place]
        of_row = min(own_plain, own_csls + penalty[place])
        of_column = min(plain_bar[place], csls_bar[place] + own_penalty)
        reaches = np.uint32(score >= min(of_row, of_column))
        bits |= np.uint32(reaches << np.uint32(lane))
    return bits


@njit(nogil=True, cache=True, fastmath=True)
def rescore(lists: Lists, first: int, last: int, own: Any, other: Any) -> None:
    """Give the candidates of some lines their float32 scores."""
    for line in range(first, last):
        for place in range(min(lists.met[line], lists.place.shape[1])):
            partner = lists.place[line, place]
            total = np.float32(0)
            for d in range(own.shape[1]):
                total += own[line, d] * other[partner, d]
            lists.score[line, place] = total


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
    room = lists.place.shape[1]
    for line in range(first, last):
        best = highest[line]
        best[:] = LOWEST
        for place in range(min(lists.met[line], room)):
            if lists.score[line, place] > best[0]:
                _insert(best, lists.score[line, place])
        sure[line] = lists.met[line] <= room and best[0] >= lists.plain_bar[line] + error[line]


@njit(nogil=True, cache=True, inline="always")
def _kept(key: Any, query: int, candidate: int, limit: Any) -> Any:
    """Whether the random mask keeps a score: a hash of its place, mixed twice, against keep·2³²."""
    mixed = np.uint64(key) ^ ((np.uint64(query) << np.uint64(32)) | np.uint64(candidate))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)) < np.uint64(limit)


@_compiled
def choose(
    lists: Lists,
    first: int,
    last: int,
    error: Any,
    penalty: Any,
    key: Any,
    limit: Any,
    wanted: int,
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
        wanted: How many candidates the next round should look at.
        partner: Where the best go.
        reach: Where the score less penalty of the last of the wanted ones goes, per line.
        sure: Where it is said whether `partner` is right.
    """
    room, others = lists.place.shape[1], penalty.shape[0]
    scores = np.empty(room, np.float32)
    for line in range(first, last):
        best, found = LOWEST, others
        met = min(lists.met[line], room)
        for place in range(met):
            other = lists.place[line, place]
            score = lists.score[line, place] - penalty[other]
            scores[place] = score
            if (score > best or (score == best and other < found)) and _kept(key, line, other, limit):
                best, found = score, other
        reach[line] = kth_largest(scores, met, min(wanted, met)) if met else LOWEST
        sure[line] = lists.met[line] <= room and best >= lists.csls_bar[line] + error[line]
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
        block: Cells, one row a line.
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
