"""What surrounds the loop of Algorithm 1: where it starts or goes on, what is kept, when it must stop."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from bilex.aligners.anchors import surest_pairs
from bilex.aligners.base import Pairs
from bilex.aligners.c1_report import Round
from bilex.aligners.c1_settings import JOINED_SEEDS, C1Constants, Pass
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.contrast import Contrast
from bilex.aligners.induction import without_words_of
from bilex.aligners.rejected import without_pairs
from bilex.aligners.unit_rows import UnitRows
from bilex.core.progress import Progress
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.aligners.c1 import C1, Maps

_SIDES = ("source", "target")
_ANCHORS = "anchors"


class Rounds:
    """The rounds of a C1 fit that are left to do: `for number, constants in rounds`.

    Args:
        c1: The aligner; what happens is kept in its report.
        source: Source vectors.
        target: Target vectors.
        pairs: The usable seed pairs.
        schedule: The passes; where no start is found beside few seeds, only the first is made.
        device: Where the maps are.
        progress: Receives how far the work is.
        checkpoint: A folder where the last finished round is kept; None keeps nothing.
    """

    def __init__(
        self,
        c1: C1,
        source: WordVectors,
        target: WordVectors,
        pairs: Pairs,
        schedule: Sequence[Pass],
        device: torch.device,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        self._c1, self._words, self._pairs = c1, (source, target), pairs
        self._schedule, self._device, self._progress = list(schedule), device, progress
        if any(part.words is not None and (pairs >= part.words).any() for part in schedule):
            self._schedule = [part._replace(words=None) for part in schedule]  # every seed is seen
        self._started = time.perf_counter()
        decided_by = np.concatenate([pairs, c1.rejected_])
        self._state = Checkpoint.of_fit(checkpoint, c1.settings(), source, target, decided_by, progress)
        self._done = 0
        self._anchors: Pairs | None = None
        self._losses: list[float] = []
        self._full_searches = 0

    def start(self) -> tuple[Maps | None, Pairs, Pairs]:
        """The maps of a fit that was interrupted, or else None; the seeds in force; the first dictionary.

        The first dictionary is that of the seeds; without seeds it is found in the vectors, and few seeds
        are joined by what is found there. Only then is there more than one pass.
        """
        kept = self._state.load()
        if kept is not None:
            source, target = (kept.tensors[side].to(self._device) for side in _SIDES)
            self._done = int(kept.state["done"])
            if int(kept.state["passes"]) == 1:
                self._in_one_pass()
            self._progress.say(f"{self._state.folder}: going on after iteration {self._done}.")
            pairs = self._pairs
            if _ANCHORS in kept.tensors:
                pairs = self._anchored(kept.tensors[_ANCHORS].numpy())
            return (source, target), pairs, pairs
        enough = len(self._pairs) >= JOINED_SEEDS
        found = self._pairs
        if not enough and (self._c1.self_learning or not len(self._pairs)):
            from bilex.aligners.seedless import first_dictionary

            first = self._schedule[0]
            x, y = (side.head(first.words) for side in self._words)
            found = first_dictionary(self._c1, x, y, self._pairs, first.constants, self._progress)
        if self._c1.report_.start is None:
            self._in_one_pass()
        return None, self._pairs, without_pairs(found, self._c1.rejected_)

    def _in_one_pass(self) -> None:
        """Make the first pass alone, of all words."""
        self._schedule = [Pass(0, self._schedule[0].constants)]

    def seen(self, number: int, x: UnitRows, y: UnitRows) -> tuple[UnitRows, UnitRows]:
        """The words of both languages that a round sees.

        Args:
            number: The round.
            x: All source words.
            y: All target words.
        """
        words = self._pass_of(number).words
        return x.head(words), y.head(words)

    def _pass_of(self, number: int) -> Pass:
        return self._schedule[sum(first <= number for first in self._firsts) - 1]

    def begins_pass(self, number: int) -> bool:
        """Whether what the rounds so far have found becomes the seeds of this one and the following."""
        return number in self._firsts[1:]

    def found_seeds(self, number: int, x: torch.Tensor, y: torch.Tensor) -> Pairs:
        """D_0 of a further pass: the seeds, and the surest of the pairs that the last one has found.

        Args:
            number: Its first round.
            x: All source vectors under the maps of the pass before, unit rows.
            y: All target vectors likewise.
        """
        anchors, _, words = self._pass_of(number)
        with self._progress.task("choosing pairs for another pass"):
            found = surest_pairs(x, y, words=words, k=self._c1.neighbours, device=self._device)
        found = without_pairs(without_words_of(found, self._pairs), self._c1.rejected_)
        return self._anchored(np.concatenate([self._pairs, found[:anchors]]))

    def _anchored(self, pairs: Pairs) -> Pairs:
        self._anchors = pairs
        self._c1.report_ = replace(self._c1.report_, anchors=len(pairs))
        return pairs

    @property
    def _constants(self) -> list[C1Constants]:
        """Those of every round."""
        return [part.constants for part in self._schedule for _ in range(part.constants.iterations)]

    @property
    def _firsts(self) -> list[int]:
        """The first round of every pass."""
        lengths = [part.constants.iterations for part in self._schedule]
        return [sum(lengths[:place]) for place in range(len(lengths))]

    def __iter__(self) -> Iterator[tuple[int, C1Constants]]:
        """The rounds by number, from 0, each with its constants; none follows one that broke."""
        for number, constants in list(enumerate(self._constants))[self._done :]:
            if self._c1.report_.stopped is not None:
                return
            self._losses, self._full_searches = [], 0
            yield number, constants

    @contextlib.contextmanager
    def watched(self, number: int, contrast: Contrast) -> Iterator[Callable[[int, float], bool]]:
        """Watch the updates of a round.

        Args:
            number: The round.
            contrast: Its objective.

        Yields:
            A function of an update's number and loss that returns whether the fit may go on; it may not after
            a loss that is not finite.
        """
        pairs = len(contrast.rows[0])
        title = f"iteration {number + 1} of {len(self._constants)}"
        with self._progress.task(title, self._constants[number].updates) as task:

            def healthy(update: int, loss: float) -> bool:
                if not math.isfinite(loss):
                    self._stop(
                        f"the fit broke at update {update + 1} of iteration {number + 1} (loss {loss})"
                    )
                    return False
                self._losses.append(round(loss, 6))
                task.advance(loss=f"{loss:.4f}", pairs=pairs)
                return True

            yield healthy
        self._full_searches = contrast.searched

    def _stop(self, sentence: str) -> None:
        self._progress.say(f"{sentence}; the maps before it are kept; try a lower learning_rate.")
        self._c1.report_ = replace(self._c1.report_, stopped=sentence)

    def finish(self, number: int, maps: Maps, dictionary: int, contrasted: int) -> None:
        """Keep what a round came to.

        Args:
            number: The round.
            maps: Both maps after it.
            dictionary: The size of its dictionary.
            contrasted: How many pairs of it were contrasted.
        """
        done = Round(
            dictionary=dictionary,
            contrasted=contrasted,
            loss=tuple(self._losses),
            full_searches=self._full_searches,
        )
        report = self._c1.report_ = replace(self._c1.report_, history=(*self._c1.report_.history, done))
        if report.stopped is None:
            kept = dict(zip(_SIDES, maps, strict=True))
            if self._anchors is not None:
                kept[_ANCHORS] = torch.from_numpy(self._anchors)
            self._state.save(kept, done=number + 1, passes=len(self._schedule))

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return round(time.perf_counter() - self._started, 3)
