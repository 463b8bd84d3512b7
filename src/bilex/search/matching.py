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
from bilex.search.cpu import as_tensor, row_blocks
from bilex.search.heaps import COLUMNS, Heaps, flagged, float32_dot, new_flags, push
from bilex.search.low_precision import operands
from bilex.search.search import AnyRows, placed

Floats = npt.NDArray[np.float32]
_FEWEST_ROWS = 256
_CANDIDATES = 8
_BLOCK_MEMORY = 1 << 26
_MARGIN = 0.04  # by which a call starts under the thresholds of the one before
_MOST_UNDECIDED = 0.05  # with a larger share of undecided lines a second pass is cheaper


class Matches(NamedTuple):
    """Partners of both directions, and how similar the two sides are.

    Attributes:
        forward: For each source row its best target row, on the matcher's device.
        backward: For each target row its best source row.
        objective: The mean, over both directions, of each row's highest similarity (nothing hidden).
    """

    forward: torch.Tensor
    backward: torch.Tensor
    objective: float


class StochasticMatcher:
    """Finds partners again and again between sets of rows.

    What is found depends on the random seed and on how many calls there were before, never on what these saw.

    Args:
        k: Neighbours in CSLS's terms.
        seed: Random seed.
        device: "auto", "cpu" or "cuda".
        memory: Bytes of scores that a GPU holds at a time; scores that do not fit are computed twice.
        calls: How many calls of an earlier matcher this one continues from.
    """

    def __init__(
        self,
        k: int = 10,
        seed: int = 0,
        device: str | torch.device = "auto",
        memory: int = 2 << 30,
        calls: int = 0,
    ) -> None:
        self.k = k
        self.device = resolve_device(device)
        self._memory = memory
        self._random = np.random.default_rng(seed)
        for _ in range(calls):
            self._masks()
        self._cpu = CpuMatcher(k)

    def __call__(self, source: AnyRows, target: AnyRows, keep: float) -> Matches:
        """Match two sets of rows by CSLS, each score kept with probability `keep`.

        A query x scores each y by x·y − r(y)/2: half of CSLS without the term r(x), which all its scores
        have in common. A score that is not kept counts as zero, so it can still win over negative ones. While
        masking is random (keep < 1), rows are rounded to a lower precision where that is multiplied faster,
        which moves a cosine by about 0.0006, far less than randomness does. With keep = 1 all is float32.

        Args:
            source: Source rows, at least one.
            target: Target rows, at least one.
            keep: From 0 to 1; with 1 nothing is random.
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


class _Candidates(NamedTuple):
    """The best kept partners of each line by the penalties of the call before, best first; −1 for none."""

    value: Floats
    score: Floats
    place: npt.NDArray[np.int32]


class _Side:
    """One language in one call: its rows, and what was found for each of its lines."""

    def __init__(self, rows: Floats, low: operands.Operand, keep: float) -> None:
        self.rows, self.low = rows, low
        self.error = np.zeros(len(rows), np.float32)
        self.multiplied = low.rows if keep < 1 else rows
        self.scale: Floats = low.scale if keep < 1 else np.ones(len(rows), np.float32)
        self.partner = np.empty(len(rows), np.int64)

    def open(self, others: int, k: int, start: tuple[Floats, Floats] | None) -> None:
        """Empty heaps and candidates; scores must exceed `start` to enter them."""
        self.heaps = Heaps.empty(len(self.rows), min(k, others))
        shape = len(self.rows), _CANDIDATES
        lowest = np.full(shape, -np.inf, np.float32)
        self.candidates = _Candidates(lowest, np.empty(shape, np.float32), np.full(shape, -1, np.int32))
        if start is not None:
            self.heaps.threshold[:] = start[0]
            self.heaps.score[:] = start[0][:, None]
            self.candidates.value[:] = start[1][:, None]


class CpuMatcher:
    """The CPU side of `StochasticMatcher`.

    The penalties of one call order the candidates of the next, and its thresholds, less a margin, are where
    the next one starts. That decides how long a call takes, never what it finds.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.penalties: list[Floats] = []
        self.starts: list[tuple[Floats, Floats]] = []

    def __call__(
        self, x: torch.Tensor, y: torch.Tensor, keep: float, masks: tuple[int, int]
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        """Forward partners, backward partners and the objective."""
        int8 = operands.matches_in_int8()
        sides = [
            _Side(rows, operands.operand(rows, int8=int8, rotate=False), keep)
            for rows in (x.numpy(), y.numpy())
        ]
        rescored = keep >= 1 and int8
        if rescored:
            sides[0].error, sides[1].error = operands.quantization_error(sides[0].low, sides[1].low)
        mask = np.array([*masks, round(keep * 2**32)], np.uint64)
        known = [len(penalty) for penalty in self.penalties] == [len(x), len(y)]
        if not known:
            self.penalties = [np.zeros(len(rows), np.float32) for rows in (x, y)]
        most = _MOST_UNDECIDED * (len(x) + len(y))
        for starts in ([self.starts] if known else []) + [None, None]:
            before = self.penalties
            self._pass(sides, starts, rescored, mask)
            short = [np.flatnonzero(side.heaps.score[:, 0] == -np.inf) for side in sides]
            if starts is not None:
                pairs = zip(sides, starts, strict=True)
                short = [np.flatnonzero(side.heaps.threshold <= start[0]) for side, start in pairs]
            few = sum(map(len, short)) <= most
            if few:
                self._fill(sides, short)
            best = [np.sort(side.heaps.score, axis=1).astype(np.float64) for side in sides]
            self.penalties = [np.maximum(each.mean(axis=1) / 2, -1e9).astype(np.float32) for each in best]
            undecided = [self._choose(sides, number, before, mask) for number in (0, 1)]
            if few and sum(map(len, undecided)) <= most:
                break
        for number, lines in enumerate(undecided):
            side, penalty = sides[number], self.penalties[1 - number]
            for some, scores in _whole(side, sides[1 - number], lines):
                _choose_whole(scores, some, penalty, mask[number], mask[2], side.partner)
        margin = np.float32(_MARGIN)
        self.starts = [
            (side.heaps.threshold - margin, side.candidates.value[:, -1] - margin) for side in sides
        ]
        objective = float(best[0][:, -1].mean() + best[1][:, -1].mean()) / 2
        return torch.from_numpy(sides[0].partner), torch.from_numpy(sides[1].partner), objective

    def _pass(
        self, sides: list[_Side], starts: list[tuple[Floats, Floats]] | None, rescored: bool, mask: Any
    ) -> None:
        """Find the k best scores and the candidates of every line, from one product."""
        x, y = sides
        x.open(len(y.rows), self.k, starts[0] if starts else None)
        y.open(len(x.rows), self.k, starts[1] if starts else None)
        locks = [threading.Lock() for _ in range(0, len(y.rows), COLUMNS)]
        given = x.low.scale, y.low.scale, x.error, y.error, *self.penalties
        found = x.heaps, y.heaps, x.candidates, y.candidates

        def visit(block: npt.NDArray[np.generic], row: int, column: int) -> None:
            with locks[column // COLUMNS]:
                _collect(block, row, column, *given, *found, x.rows, y.rows, rescored, mask)

        row_blocks(x.low.rows, y.low.rows, _BLOCK_MEMORY, visit)

    def _fill(self, sides: list[_Side], short: list[npt.NDArray[np.intp]]) -> None:
        """Complete the heaps of lines that started too high."""
        for number, lines in enumerate(short):
            heaps = sides[number].heaps
            k = heaps.score.shape[1]
            for some, scores in _whole(sides[number], sides[1 - number], lines):
                heaps.score[some] = np.partition(scores, -k, axis=1)[:, -k:]
            heaps.threshold[lines] = heaps.score[lines].min(axis=1, initial=np.inf)

    def _choose(
        self, sides: list[_Side], number: int, before: list[Floats], mask: Any
    ) -> npt.NDArray[np.intp]:
        """Choose the partners of a side's lines among the candidates; the lines that these do not decide."""
        side, penalty = sides[number], self.penalties[1 - number]
        risen = np.float32(max(0.0, float((before[1 - number] - penalty).max())) + 1e-6)
        decided = np.empty(len(side.rows), np.bool_)
        _choose(*side.candidates, risen, penalty, mask[number], mask[2], side.partner, decided)
        return np.flatnonzero(~decided)


def _whole(
    side: _Side, other: _Side, lines: npt.NDArray[np.intp]
) -> Iterator[tuple[npt.NDArray[np.intp], Floats]]:
    """All scores of some lines, a few lines at a time."""
    for start in range(0, len(lines), _FEWEST_ROWS):
        some = lines[start : start + _FEWEST_ROWS]
        cells = operands.multiply(*map(as_tensor, (side.multiplied[some], other.multiplied))).numpy()
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
    block: Any,
    first_row: int,
    first_column: int,
    row_scale: Any,
    column_scale: Any,
    row_error: Any,
    column_error: Any,
    row_penalty: Any,
    column_penalty: Any,
    row_heaps: Any,
    column_heaps: Any,
    row_candidates: Any,
    column_candidates: Any,
    source: Any,
    target: Any,
    rescored: bool,
    mask: Any,
) -> None:
    """Take the scores of a block into the heaps and candidates of their row and their column."""
    width = block.shape[1]
    last = first_column + width
    scales, errors = column_scale[first_column:last], column_error[first_column:last]
    penalties = column_penalty[first_column:last]
    row_best, row_place, row_threshold = row_heaps.score, row_heaps.key, row_heaps.threshold
    column_best, column_place, column_threshold = column_heaps.score, column_heaps.key, column_heaps.threshold
    row_value, row_score, row_partner = row_candidates.value, row_candidates.score, row_candidates.place
    column_value, column_score = column_candidates.value, column_candidates.score
    column_partner = column_candidates.place
    thresholds, least = column_threshold[first_column:last], row_value.shape[1] - 1
    values = np.empty(width, np.float32)
    for c in range(width):
        values[c] = column_value[first_column + c, least]
    flags, hits = new_flags(width)
    for r in range(block.shape[0]):
        row = first_row + r
        scale, penalty, error = row_scale[row], row_penalty[row], row_error[row]
        _flag(
            block, r, scale, scales, error, errors, row_threshold[row], row_value[row, least], penalty,
            thresholds, values, penalties, flags,
        )  # fmt: skip
        for h in range(flagged(flags, hits)):
            c = hits[h]
            column = first_column + c
            if rescored:
                score = float32_dot(source, row, target, column)
            else:
                score = np.float32(block[r, c]) * (scale * scales[c])
            if score > row_threshold[row]:
                push(row_best, row_place, row_threshold, row, column, score)
            if score > thresholds[c]:
                push(column_best, column_place, column_threshold, column, row, score)
            value = score - penalties[c]
            if value > row_value[row, least] and _kept(mask[0], row, column, mask[2]):
                _insert(row_value, row_score, row_partner, row, value, score, column)
            value = score - penalty
            if value > values[c] and _kept(mask[1], column, row, mask[2]):
                _insert(column_value, column_score, column_partner, column, value, score, row)
                values[c] = column_value[column, least]


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def _flag(
    block: Any,
    row: int,
    scale: Any,
    scales: Any,
    error: Any,
    errors: Any,
    threshold: Any,
    value: Any,
    penalty: Any,
    thresholds: Any,
    values: Any,
    penalties: Any,
    flags: Any,
) -> None:
    """Say which scores of a row may enter a heap or be a candidate; compiled to vectors."""
    for c in range(block.shape[1]):
        score = np.float32(block[row, c]) * (scale * scales[c]) + (error + errors[c])
        of_row = min(threshold, value + penalties[c])
        of_column = min(thresholds[c], values[c] + penalty)
        flags[c] = np.uint8(score >= min(of_row, of_column))


@njit(nogil=True, cache=True)
def _insert(values: Any, scores: Any, places: Any, line: int, value: Any, score: Any, place: int) -> None:
    """Put a candidate among those of a line, which fall by value; the worst one is dropped."""
    at = values.shape[1] - 1
    while at > 0 and values[line, at - 1] < value:
        values[line, at], scores[line, at] = values[line, at - 1], scores[line, at - 1]
        places[line, at] = places[line, at - 1]
        at -= 1
    values[line, at], scores[line, at], places[line, at] = value, score, place


@njit(nogil=True, cache=True)
def _choose(
    values: Any,
    scores: Any,
    places: Any,
    risen: Any,
    penalty: Any,
    key: Any,
    limit: Any,
    partner: Any,
    decided: Any,
) -> None:
    """Choose each line's best candidate by the new penalties, and say where no other score can win.

    `risen` is the most that a score less its penalty can have risen with the new penalties.
    """
    for line in range(values.shape[0]):
        best, found = np.float32(-np.inf), penalty.shape[0]
        for c in range(values.shape[1]):
            place = places[line, c]
            if place >= 0:
                value = scores[line, c] - penalty[place]
                if value > best or (value == best and place < found):
                    best, found = value, place
        worst = values[line, values.shape[1] - 1]
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
