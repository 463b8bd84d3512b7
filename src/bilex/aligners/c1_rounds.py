"""What surrounds the loop of Algorithm 1: where it starts or goes on, what is kept, when it must stop."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from bilex.aligners.base import Pairs
from bilex.aligners.c1_report import Round
from bilex.aligners.c1_settings import JOINED_SEEDS, C1Constants
from bilex.aligners.checkpoint import Checkpoint
from bilex.aligners.contrast import Contrast
from bilex.aligners.induction import augmentation, induce_pairs, mutual_pairs, without_words_of
from bilex.aligners.rejected import without_pairs
from bilex.progress import Progress
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.aligners.c1 import C1, Maps

_SIDES = ("source", "target")
_ANCHORS = "anchors"


class Rounds:
    """The rounds of a C1 fit that are left to do: `for number in rounds`.

    Args:
        c1: The aligner; what happens is kept in its report.
        source: Source vectors.
        target: Target vectors.
        pairs: The usable seed pairs.
        constants: Those of this fit.
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
        constants: C1Constants,
        device: torch.device,
        progress: Progress,
        checkpoint: Path | None,
    ) -> None:
        self._c1, self._words, self._pairs = c1, (source, target), pairs
        self._constants, self._device, self._progress = constants, device, progress
        self._started = time.perf_counter()
        decided_by = np.concatenate([pairs, c1.rejected_])
        self._state = Checkpoint.of_fit(checkpoint, c1.settings(), source, target, decided_by, progress)
        self._done = 0
        self._passes = 1
        self._anchors: Pairs | None = None
        self._losses: list[float] = []
        self._full_searches = 0

    def start(self) -> tuple[Maps | None, Pairs, Pairs]:
        """The maps of a fit that was interrupted, or else None; the seeds in force; the first dictionary.

        The first dictionary is that of the seeds; without seeds it is found in the vectors, and few seeds
        are joined by what is found there. Only then is there a second pass.
        """
        kept = self._state.load()
        if kept is not None:
            source, target = (kept.tensors[side].to(self._device) for side in _SIDES)
            self._done, self._passes = int(kept.state["done"]), int(kept.state["passes"])
            self._progress.say(f"{self._state.folder}: going on after iteration {self._done}.")
            pairs = self._pairs
            if _ANCHORS in kept.tensors:
                pairs = self._anchored(kept.tensors[_ANCHORS].numpy())
            return (source, target), pairs, pairs
        enough = len(self._pairs) >= JOINED_SEEDS
        if enough or (len(self._pairs) and not self._c1.self_learning):
            return None, self._pairs, self._pairs
        from bilex.aligners.seedless import first_dictionary

        found = first_dictionary(self._c1, *self._words, self._pairs, self._constants, self._progress)
        if self._c1.report_.start is not None:
            self._passes = self._constants.passes
        return None, self._pairs, without_pairs(found, self._c1.rejected_)

    def begins_second_pass(self, number: int) -> bool:
        """Whether what the rounds so far have found becomes the seeds of this one and the following."""
        return self._passes > 1 and number == self._constants.iterations

    def second_seeds(self, x: torch.Tensor, y: torch.Tensor) -> Pairs:
        """D_0 of the second pass: the seeds, and the surest pairs that both directions agree on.

        Args:
            x: The source vectors under the maps of the first pass, unit rows.
            y: The target vectors likewise.
        """
        constants = self._constants
        with self._progress.task("choosing pairs for the second pass"):
            induced = induce_pairs(
                x,
                y,
                frequent=constants.frequent,
                keep=constants.frequent,
                k=self._c1.neighbours,
                full_csls=True,
                device=self._device,
            )
        found = without_words_of(mutual_pairs(induced), self._pairs)
        found = without_pairs(found, self._c1.rejected_)[: constants.anchors]
        if not len(found):
            found = without_pairs(augmentation(induced, self._pairs), self._c1.rejected_)
        return self._anchored(np.concatenate([self._pairs, found]))

    def _anchored(self, pairs: Pairs) -> Pairs:
        self._anchors = pairs
        self._c1.report_ = replace(self._c1.report_, anchors=len(pairs))
        return pairs

    @property
    def _total(self) -> int:
        return self._passes * self._constants.iterations

    def __iter__(self) -> Iterator[int]:
        """The numbers of the rounds, from 0; none follows one that broke."""
        for number in range(self._done, self._total):
            if self._c1.report_.stopped is not None:
                return
            self._losses, self._full_searches = [], 0
            yield number

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
        title = f"iteration {number + 1} of {self._total}"
        with self._progress.task(title, self._constants.updates) as task:

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
            self._state.save(kept, done=number + 1, passes=self._passes)

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return round(time.perf_counter() - self._started, 3)
