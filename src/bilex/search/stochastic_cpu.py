"""The CPU side of `bilex.search.stochastic`: one fast product, and a short list of candidates per line.

Rounds resemble each other, so the last round tells how high a score must be to matter in this one. The
product goes block by block through the cache, and only the scores over these bars are kept; what is
computed from them is certain where enough of them came and the best lies over the bar. The few lines for
which it is not (in the first round: all) are multiplied again and read whole. The bars therefore decide
how long a round takes and never what it finds.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bilex.search import arithmetic, int8_tiles
from bilex.search import stochastic_kernels as kernels
from bilex.search.arithmetic import cells, multiply
from bilex.search.cpu import as_numpy
from bilex.search.proposals import slack
from bilex.search.stochastic_rows import Lines, RoundedRows

Floats = npt.NDArray[np.float32]
Collect = Callable[[int, int, int, threading.Lock], None]
"""Fills lists from a block: its first row, its first column, its width, the lock of its columns' lists."""

_ROWS, _COLUMNS = 512, 1024
"""A block, at most: its scores stay in the cache until they have been looked at."""

_ROOM = 256
"""Candidates a line has room for."""

_UNLUCKY = 0.002
"""The share of lines of which random masking may hide every candidate that was wanted."""


class _Side:
    """The lines of one language: their candidates, and what the last round says about the next."""

    def __init__(self, lines: int, others: int, k: int) -> None:
        self.highest = np.full((lines, min(k, others)), kernels.LOWEST, np.float32)
        self.reach = np.full(lines, kernels.LOWEST, np.float32)
        self.partner = np.zeros(lines, np.int64)
        self.sure = np.zeros(lines, np.bool_)
        self.error = np.zeros(lines, np.float32)
        room = min(_ROOM, others)
        self.lists = kernels.Lists(
            plain_bar=np.full(lines, np.inf, np.float32),
            csls_bar=np.full(lines, np.inf, np.float32),
            penalty=np.zeros(lines, np.float32),
            met=np.zeros(lines, np.int32),
            place=np.empty((lines, room), np.int32),
            score=np.empty((lines, room), np.float32),
        )
        self.plain_margin, self.csls_margin = 0.02, 0.03

    def __len__(self) -> int:
        return len(self.partner)

    def open(self, error: npt.NDArray[np.floating] | float) -> None:
        """Set the bars from the last round, and forget its candidates."""
        self.error[:] = error
        self.lists.plain_bar[:] = self.highest[:, 0] - self.plain_margin - self.error
        self.lists.csls_bar[:] = self.reach - self.csls_margin - self.error
        self.lists.met[:] = 0

    def missed(self) -> float:
        """The share of lines whose bars were too high."""
        return float((~self.sure & (self.lists.met <= self.lists.place.shape[1])).mean())


class CpuMatcher:
    """Matches two sets of rows again and again; see `StochasticMatcher`.

    Args:
        k: Neighbours in CSLS's terms.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.sides: tuple[_Side, _Side] | None = None
        self._target: RoundedRows | None = None

    def __call__(
        self, x: torch.Tensor, y: torch.Tensor, keep: float, keys: tuple[int, int]
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        """Forward partners, backward partners and the objective.

        Args:
            x: Source rows.
            y: Target rows.
            keep: The probability that a score is kept; with 1, scores are those of float32.
            keys: Where the random numbers start, for the forward and for the backward direction.
        """
        shape = len(x), len(y)
        known = self.sides is not None and (len(self.sides[0]), len(self.sides[1])) == shape
        if self.sides is None or not known:
            self.sides = _Side(*shape, self.k), _Side(*shape[::-1], self.k)
        dtype = arithmetic.fastest("matching")
        if self._target is None or not self._target.are(y, dtype):
            self._target = RoundedRows(y, dtype)
        return _Round(RoundedRows(x, dtype), self._target, keep, keys, self.sides).run(known)


def _adapted(margin: float, missed: float) -> float:
    """A margin that leaves about two lines in a thousand to be read whole."""
    factor = 1.25 if missed > 0.004 else 0.95 if missed < 0.001 else 1.0
    return min(max(margin * factor, 1e-4), 1.0)


def _width(columns: int, threads: int) -> int:
    """Columns of a block: whole tiles, and so few that threads seldom wait for each other's blocks."""
    wanted = min(_COLUMNS, -(-columns // (2 * threads)))
    return -(-wanted // int8_tiles.LANES) * int8_tiles.LANES


class _Round:
    """One matching."""

    def __init__(
        self, x: RoundedRows, y: RoundedRows, keep: float, keys: tuple[int, int], sides: tuple[_Side, _Side]
    ) -> None:
        self.rounded = x, y
        self.rows, self.low = (x.rows, y.rows), (x.low, y.low)
        self.sides, self.keep = sides, keep
        self.keys = np.array(keys, np.uint64)
        self.limit = np.uint64(round(keep * 2**32))
        self.exact = keep >= 1
        self.threads = torch.get_num_threads()

    def run(self, known: bool) -> tuple[torch.Tensor, torch.Tensor, float]:
        """See `CpuMatcher`; `known` says whether there is a last round to go by."""
        try:
            with ThreadPoolExecutor(self.threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                self.map = pool.map
                self._collect(known)
                before = [side.lists.penalty.copy() for side in self.sides]
                for number, side in enumerate(self.sides):
                    self._rank(number)
                    side.lists.penalty[:] = side.highest.mean(axis=1) / 2
                for number, side in enumerate(self.sides):
                    risen = np.max(before[1 - number] - self.sides[1 - number].lists.penalty)
                    self._choose(number, side.error + risen)
        finally:
            torch.set_num_threads(self.threads)
        best = [side.highest[:, -1].mean(dtype=np.float64) for side in self.sides]
        forward, backward = (torch.from_numpy(side.partner.copy()) for side in self.sides)
        return forward, backward, float(best[0] + best[1]) / 2

    def _collect(self, known: bool) -> None:
        """Fill the lists of both sides."""
        errors: list[npt.NDArray[np.floating] | float] = [0.0, 0.0]
        if self.exact:
            own, other = self.low
            errors = [slack(own, other) / 2, slack(other, own) / 2]
        for side, error in zip(self.sides, errors, strict=True):
            side.open(error)
        if not known:
            for side in self.sides:
                side.lists.plain_bar[:] = np.inf
                side.lists.csls_bar[:] = np.inf
            return
        collect = self._blocks() if self.rounded[0].kind is None else self._tiles()
        starts = range(0, len(self.rows[0]), _ROWS)
        width = _width(len(self.rows[1]), self.threads)
        blocks = range(0, len(self.rows[1]), width)
        locks = [threading.Lock() for _ in blocks]

        def strip(number: int) -> None:
            for turn in range(len(blocks)):
                block = (turn + number * len(blocks) // self.threads) % len(blocks)
                collect(starts[number], blocks[block], width, locks[block])

        list(self.map(strip, range(len(starts))))
        if self.exact:
            for number in (0, 1):
                self._rescore(number)

    def _blocks(self) -> Collect:
        """Products in whatever precision torch multiplies, a block at a time."""
        (x, y), lists, mask = self.low, [side.lists for side in self.sides], self._mask()
        local = threading.local()

        def collect(first_row: int, first_column: int, width: int, lock: threading.Lock) -> None:
            rows, columns = x.rows[first_row : first_row + _ROWS], y.rows[first_column : first_column + width]
            if not hasattr(local, "cells"):
                local.cells = torch.empty(_ROWS * width, dtype=cells(x.rows.dtype))
            block = local.cells[: len(rows) * len(columns)].view(len(rows), len(columns))
            scores = as_numpy(multiply(rows, columns, block))
            with lock:
                kernels.collect(
                    scores, *scores.shape, first_row, first_column, x.scale, y.scale, *lists, mask
                )

        return collect

    def _tiles(self) -> Collect:
        """8-bit products that are looked at as they come out."""
        (x, y), lists, mask = self.low, [side.lists for side in self.sides], self._mask()
        (queries, of_queries), (tiles, of_keys) = self.rounded[0].queries, self.rounded[1].tiles
        given = tiles, queries, of_queries, of_keys

        def collect(first_row: int, first_column: int, width: int, lock: threading.Lock) -> None:
            last_row = min(first_row + _ROWS, len(x.scale))
            last_tile = min(-(-(first_column + width) // int8_tiles.LANES), len(tiles))
            strip = first_row, last_row, first_column // int8_tiles.LANES, last_tile
            with lock:
                kernels.collect_products(*given, strip, x.scale, y.scale, *lists, mask)

        return collect

    def _mask(self) -> tuple[np.uint64, np.uint64, np.uint64]:
        """Where the random numbers of rows and of columns start, and what decides over them."""
        return self.keys[0], self.keys[1], self.limit

    def _rescore(self, number: int) -> None:
        """Give the candidates of a side their float32 scores."""
        side, own, other = self.sides[number], self.rows[number].numpy(), self.rows[1 - number].numpy()
        self._share(len(side), lambda a, b: kernels.rescore(side.lists, a, b, own, other))

    def _share(self, lines: int, work: Callable[[int, int], None]) -> None:
        """Let the threads call `work(first line, last line)` for all lines."""
        step = max(1, min(1024, -(-lines // self.threads)))
        list(self.map(lambda first: work(first, min(first + step, lines)), range(0, lines, step)))

    def _rank(self, number: int) -> None:
        """The k highest scores of each line of a side."""
        side = self.sides[number]
        self._share(
            len(side), lambda a, b: kernels.rank(side.lists, a, b, side.error, side.highest, side.sure)
        )
        side.plain_margin = _adapted(side.plain_margin, side.missed())
        self._whole(number, lambda cells, *at: kernels.rank_whole(cells, *at, side.highest))

    def _choose(self, number: int, error: Floats) -> None:
        """The partner of each line of a side."""
        side, penalty = self.sides[number], self.sides[1 - number].lists.penalty
        wanted = 1
        if not self.exact:
            lucky = math.ceil(math.log(_UNLUCKY) / math.log1p(-max(self.keep, 1e-3)))
            wanted = min(lucky, _ROOM // 2)
        kept = 0.0 if self.exact else self.keep * wanted
        random, found = (self.keys[number], self.limit), (side.partner, side.reach)
        self._share(
            len(side),
            lambda a, b: kernels.choose(side.lists, a, b, error, penalty, *random, kept, *found, side.sure),
        )
        side.csls_margin = _adapted(side.csls_margin, side.missed())
        self._whole(
            number, lambda cells, *at: kernels.choose_whole(cells, *at, penalty, *random, wanted, *found)
        )

    def _whole(self, number: int, read: Callable[..., None]) -> None:
        """Call `read(cells, lines, own scales, other scales)` with all scores of the lines not sure."""
        lines = np.flatnonzero(~self.sides[number].sure)
        own, other = (self.low[side] for side in (number, 1 - number))
        scales = own.scale, other.scale
        if self.exact:
            scales = np.ones(len(own.scale), np.float32), np.ones(len(other.scale), np.float32)

        step = max(1, min(_ROWS, -(-len(lines) // self.threads)))

        def part(first: int) -> None:
            some = lines[first : first + step]
            read(self._scores(number, some), some, *scales)

        list(self.map(part, range(0, len(lines), step)))

    def _scores(self, number: int, lines: Lines) -> npt.NDArray[Any]:
        """The cells of all scores of some lines of a side, one line per row; exact rounds have float32."""
        if self.exact or self.rounded[0].kind is None:
            rows, others = (
                self.rows[side] if self.exact else self.low[side].rows for side in (number, 1 - number)
            )
            out = torch.empty(len(lines), len(others), dtype=cells(others.dtype))
            return as_numpy(multiply(rows[lines], others, out))
        x, y = self.rounded
        queries, of_queries = x.queries if number else x.some_queries(lines)
        tiles, of_keys = y.some_tiles(lines) if number else y.tiles
        sums = int8_tiles.all_products(tiles, queries, of_queries, of_keys)[: len(x.rows), : len(y.rows)]
        return np.ascontiguousarray(sums.T[: len(lines)] if number else sums[: len(lines)])
