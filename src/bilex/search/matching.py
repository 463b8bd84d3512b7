"""Best partners under CSLS when random masking hides some of the candidates, both ways from one product.

VecMap's self-learning wants, some hundred times, each frequent word's best partner while most scores count
as zero at random. `bilex.search.plain.match` says what is computed. On a CPU the mask is a hash of a score's
place, computed only for the few scores that could win. CSLS's terms are known only after the product, so
each line of the score matrix (a row or a column) keeps a few candidates by the terms of the call before;
a line for which these do not decide the partner is computed again as a whole.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bilex.core.compiling import njit
from bilex.core.device import resolve_device, with_less_memory
from bilex.search.cpu import COLUMNS, as_tensor, flagged, float32_dot, new_flags, push, row_blocks
from bilex.search.low_precision import operands
from bilex.search.low_precision.operands import multiply
from bilex.search.plain import Floats
from bilex.search.search import AnyRows, placed
from bilex.vectors.stored import slices

Given = tuple[Floats, npt.NDArray[Any], Floats, Floats]  # the first four fields of `_Lines`
_FEWEST_ROWS = 256
_CANDIDATES = 8
_MARGIN = 0.04  # by which a call starts under the thresholds of the one before


class Matches(NamedTuple):
    """Partners of both directions, and how similar the two sides are."""

    forward: torch.Tensor  # for each source row its best target row, on the matcher's device
    backward: torch.Tensor  # for each target row its best source row
    objective: float  # the mean, over both directions, of each row's highest similarity (nothing hidden)


class StochasticMatcher:
    """Finds partners between sets of rows, call after call; CSLS's terms have k neighbours.

    The result depends on the random seed and on the number of calls before, never on what these saw; `calls`
    is how many calls of an earlier matcher this one continues from.
    """

    def __init__(
        self, k: int = 10, seed: int = 0, device: str | torch.device = "auto", calls: int = 0
    ) -> None:
        self.k, self.device, self._cpu = k, resolve_device(device), CpuMatcher(k)
        self._memory = 2 << 30  # bytes of scores that a GPU holds at a time
        self._random = np.random.default_rng(seed)
        for _ in range(calls):
            self._masks()

    def __call__(self, source: AnyRows, target: AnyRows, keep: float) -> Matches:
        """Match two sets of rows by CSLS, each score kept with probability `keep`.

        A query x scores each y by x·y − r(y)/2: half of CSLS without the term r(x), which all its scores
        have in common. A score that is not kept counts as zero, so it can still win over negative ones. While
        masking is random (keep < 1), rows are rounded to a lower precision where that is multiplied faster,
        which moves a cosine by about 0.0006, far less than randomness does. With keep = 1 all is float32.
        """
        x, y = placed(source, self.device), placed(target, self.device)
        masks = self._masks()
        if self.device.type == "cpu":
            return Matches(*self._cpu(x.contiguous(), y.contiguous(), keep, masks))
        from bilex.search.gpu import match

        def in_memory(memory: int) -> Matches:
            self._memory = memory
            return Matches(*match(x, y, self.k, keep, masks[0], memory))

        return with_less_memory(self._memory, 4 * _FEWEST_ROWS * len(y), in_memory)

    def _masks(self) -> tuple[int, int]:
        """The random keys of the next call, for each direction."""
        return int(self._random.integers(2**63)), int(self._random.integers(2**63))


class _Lines(NamedTuple):
    """One language in one call: each of its rows is a line (a row or a column) of the score matrix."""

    rows: Floats  # the true rows
    low: npt.NDArray[Any]  # the rows as they are multiplied; times `scale` they are close to the true ones
    scale: Floats  # one factor per row
    error: Floats  # how far a product of each row may be off, if exact scores are wanted
    penalty: Floats  # half of CSLS's term of each row, by the call before
    best: Floats  # a heap of the highest scores of each line
    key: npt.NDArray[np.int32]  # where they are
    threshold: Floats  # the lowest score of each heap
    value: Floats  # the highest kept scores less the penalty of where they are, best first
    score: Floats  # the same scores without penalty
    place: npt.NDArray[np.int32]  # where they are; −1 for none


class _Start(NamedTuple):
    """What one call leaves to the next, per row of a language.

    It decides how long a call takes, never what it finds.
    """

    penalty: Floats  # half of CSLS's term, which orders candidates
    threshold: Floats  # where the heap starts, less a margin
    value: Floats  # where the candidates start, less a margin


class CpuMatcher:
    """The CPU side of `StochasticMatcher`."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.starts: list[_Start] = []

    def __call__(
        self, x: torch.Tensor, y: torch.Tensor, keep: float, masks: tuple[int, int]
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        """Forward partners, backward partners and the objective."""
        rows, int8 = (x.numpy(), y.numpy()), operands.precision("matching") == "int8"
        low = [operands.operand(side, int8=int8, rotate=False) for side in rows]
        rescored = keep >= 1 and int8
        zeros = [np.zeros(len(side), np.float32) for side in rows]
        errors = operands.quantization_error(low[0], low[1]) if rescored else zeros
        given = [
            (side, each.rows, each.scale, error) for side, each, error in zip(rows, low, errors, strict=True)
        ]
        mask = np.array([*masks, round(keep * 2**32)], np.uint64)
        if [len(start.penalty) for start in self.starts] != [len(x), len(y)]:
            lowest = np.float32(-np.inf)
            self.starts = [_Start(zero, zero + lowest, zero + lowest) for zero in zeros]
            self._pass(given, rescored, mask)
            self.starts = [start._replace(value=start.value + lowest) for start in self.starts]
        before = self.starts
        sides = self._pass(given, rescored, mask)
        partners = []
        for number, side in enumerate(sides):
            penalty = self.starts[1 - number].penalty
            risen = np.float32(max(0.0, float((before[1 - number].penalty - penalty).max())) + 1e-6)
            partner, decided = np.empty(len(side.rows), np.int64), np.empty(len(side.rows), np.bool_)
            _choose(side, risen, penalty, mask[number], mask[2], partner, decided)
            for lines, scores in _whole(side, sides[1 - number], np.flatnonzero(~decided), rescored):
                _choose_whole(scores, lines, penalty, mask[number], mask[2], partner)
            partners.append(torch.from_numpy(partner))
        objective = sum(float(side.best.max(axis=1).mean(dtype=np.float64)) for side in sides) / 2
        return partners[0], partners[1], objective

    def _pass(self, given: list[Given], rescored: bool, mask: Any) -> list[_Lines]:
        """Find the best scores and the candidates of every line by one product, and the next starts."""
        sides = []
        for start, other, own in zip(self.starts, self.starts[::-1], given, strict=True):
            best = np.repeat(start.threshold[:, None], min(self.k, len(other.threshold)), axis=1)
            heap = best, np.zeros(best.shape, np.int32), start.threshold.copy()
            values = np.repeat(start.value[:, None], _CANDIDATES, axis=1)
            candidates = values, np.zeros_like(values), np.full_like(values, -1, np.int32)
            sides.append(_Lines(*own, start.penalty, *heap, *candidates))
        x, y = sides
        locks = [threading.Lock() for _ in range(0, len(y.rows), COLUMNS)]

        def visit(block: npt.NDArray[np.generic], row: int, column: int) -> None:
            with locks[column // COLUMNS]:
                _collect(block, row, column, x, y, rescored, mask)

        row_blocks(x.low, y.low, visit)
        for number, side in enumerate(sides):  # complete the heaps of lines that started too high
            short, k = np.flatnonzero(side.threshold <= self.starts[number].threshold), side.best.shape[1]
            for lines, scores in _whole(side, sides[1 - number], short, rescored):
                side.best[lines] = np.partition(scores, -k, axis=1)[:, -k:]
        margin, self.starts = np.float32(_MARGIN), []
        for side in sides:
            penalty = (side.best.mean(axis=1, dtype=np.float64) / 2).astype(np.float32)
            self.starts.append(_Start(penalty, side.best.min(axis=1) - margin, side.value[:, -1] - margin))
        return sides


def _whole(
    side: _Lines, other: _Lines, lines: npt.NDArray[np.intp], rescored: bool
) -> Iterator[tuple[npt.NDArray[np.intp], Floats]]:
    """All scores of some lines, a few lines at a time."""
    for some in (lines[block] for block in slices(len(lines), _FEWEST_ROWS)):
        if rescored:
            yield some, multiply(as_tensor(side.rows[some]), as_tensor(other.rows)).numpy()
        else:
            cells = multiply(as_tensor(side.low[some]), as_tensor(other.low)).numpy()
            yield some, cells.astype(np.float32) * (side.scale[some][:, None] * other.scale)


@njit(nogil=True, cache=True, inline="always")
def _kept(key: Any, query: int, candidate: int, limit: Any) -> Any:
    """Whether the random mask keeps a score: a hash of its place (SplitMix64) against keep·2³²."""
    mixed = np.uint64(key) ^ ((np.uint64(query) << np.uint64(32)) | np.uint64(candidate))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)) < np.uint64(limit)


@njit(nogil=True, cache=True)
def _collect(
    block: Any, first_row: int, first_column: int, x: Any, y: Any, rescored: bool, mask: Any
) -> None:
    """Take the scores of a block into the heaps and candidates of their row and their column."""
    width, least = block.shape[1], x.value.shape[1] - 1
    at = slice(first_column, first_column + width)
    scales, errors, penalties = y.scale[at], y.error[at], y.penalty[at]
    thresholds, values = y.threshold[at], y.value[at, least].copy()
    flags, hits = new_flags(width)
    for r in range(block.shape[0]):
        row = first_row + r
        scale, penalty = x.scale[row], x.penalty[row]
        _flag(
            block[r], scale, scales, x.error[row], errors, x.threshold[row], x.value[row, least], penalty,
            thresholds, values, penalties, flags,
        )  # fmt: skip
        for h in range(flagged(flags, hits)):
            c = hits[h]
            column = first_column + c
            if rescored:
                score = float32_dot(x.rows, row, y.rows, column)
            else:
                score = np.float32(block[r, c]) * (scale * scales[c])
            if score > x.threshold[row]:
                push(x.best, x.key, x.threshold, row, column, score)
            if score > thresholds[c]:
                push(y.best, y.key, y.threshold, column, row, score)
            value = score - penalties[c]
            if value > x.value[row, least] and _kept(mask[0], row, column, mask[2]):
                _insert(x, row, value, score, column)
            value = score - penalty
            if value > values[c] and _kept(mask[1], column, row, mask[2]):
                _insert(y, column, value, score, row)
                values[c] = y.value[column, least]


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def _flag(
    cells: Any, scale: Any, scales: Any, error: Any, errors: Any, threshold: Any, value: Any, penalty: Any,
    thresholds: Any, values: Any, penalties: Any, flags: Any,
) -> None:  # fmt: skip
    """Say which scores of a row may enter a heap or be a candidate; compiled to vectors."""
    for c in range(cells.shape[0]):
        score = np.float32(cells[c]) * (scale * scales[c]) + (error + errors[c])
        of_row = min(threshold, value + penalties[c])
        of_column = min(thresholds[c], values[c] + penalty)
        flags[c] = np.uint8(score >= min(of_row, of_column))


@njit(nogil=True, cache=True)
def _insert(lines: Any, line: int, value: Any, score: Any, place: int) -> None:
    """Put a candidate among those of a line, which fall by value; the worst one is dropped."""
    values, scores, places = lines.value[line], lines.score[line], lines.place[line]
    at = values.shape[0] - 1
    while at > 0 and values[at - 1] < value:
        values[at], scores[at], places[at] = values[at - 1], scores[at - 1], places[at - 1]
        at -= 1
    values[at], scores[at], places[at] = value, score, place


@njit(nogil=True, cache=True)
def _choose(lines: Any, risen: Any, penalty: Any, key: Any, limit: Any, partner: Any, decided: Any) -> None:
    """Choose the best candidate of each line by the new penalties, and say where no other score can win.

    `risen` is the most that a score less its penalty can have risen with the new penalties.
    """
    for line in range(lines.value.shape[0]):
        best, found = np.float32(-np.inf), penalty.shape[0]
        for c in range(lines.value.shape[1]):
            place = lines.place[line, c]
            if place >= 0:
                value = lines.score[line, c] - penalty[place]
                if value > best or (value == best and place < found):
                    best, found = value, place
        worst = lines.value[line, -1]
        decided[line] = worst == -np.inf or best > worst + risen
        partner[line] = found if best >= 0 else _first_hidden(key, line, penalty.shape[0], limit, found)


@njit(nogil=True, cache=True)
def _choose_whole(scores: Any, lines: Any, penalty: Any, key: Any, limit: Any, partner: Any) -> None:
    """Choose the partners of some lines from all of their scores."""
    for r in range(scores.shape[0]):
        line = lines[r]
        best, found = np.float32(-np.inf), scores.shape[1]
        for other in range(scores.shape[1]):
            value = scores[r, other] - penalty[other]
            if value > best and _kept(key, line, other, limit):
                best, found = value, other
        partner[line] = found if best >= 0 else _first_hidden(key, line, scores.shape[1], limit, found)


@njit(nogil=True, cache=True)
def _first_hidden(key: Any, line: int, others: int, limit: Any, otherwise: int) -> Any:
    """The first hidden candidate, whose score of zero wins over negative ones; `otherwise` if none is."""
    for other in range(others):
        if not _kept(key, line, other, limit):
            return other
    return otherwise
