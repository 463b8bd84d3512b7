"""Training steps that a GPU replays as a whole: they make LNMap's fit 5 to 7 times faster (H200).

A step through a small network is some hundred kernels of a few microseconds each, and Python cannot start
them that fast. A CUDA graph records them once and starts them all with one call. It is bound to one shape and
to fixed places in memory, so that batches are copied to where the recording reads them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch


class ReplayedStep:
    """A step over batches of rows, recorded for each shape of them and replayed from then on.

    The first batch of a shape runs as usual, which loads and chooses the kernels; the second is recorded.
    Dropout draws the same random numbers in either case. The step must not wait for the GPU, and must write
    into memory that stays where it is. If recording fails, `report` gets a sentence, and all batches from
    then on run as usual.
    """

    def __init__(self, step: Callable[[torch.Tensor], torch.Tensor], report: Callable[[str], None]) -> None:
        self._step, self._report = step, report
        self._seen: set[torch.Size] = set()
        self._recordings: dict[torch.Size, tuple[torch.Tensor, Any, torch.Tensor]] = {}
        self._memory: Any = None  # on the GPU; recordings share it, since no two of them run at once
        self._fails = False

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        """Run the step on a batch; its result is valid until the next call."""
        if batch.shape in self._seen and batch.shape not in self._recordings and not self._fails:
            self._record(batch.clone())
        if batch.shape not in self._recordings:
            self._seen.add(batch.shape)
            return self._step(batch)
        own, graph, result = self._recordings[batch.shape]
        own.copy_(batch)
        graph.replay()
        return result

    def _record(self, batch: torch.Tensor) -> None:
        graph: Any = torch.cuda.CUDAGraph()
        gc.collect()
        gc.disable()  # freeing an old recording during a new one would spoil the new one
        try:
            with torch.cuda.graph(graph, pool=self._memory, capture_error_mode="thread_local"):
                result = self._step(batch)
        except RuntimeError as error:
            self._fails = True
            self._recordings.clear()
            # The random generator still waits for the end of the recording; a clone of its state does not.
            generator = torch.cuda.default_generators[torch.cuda.current_device()]
            generator.graphsafe_set_state(generator.clone_state())
            reason = str(error).splitlines()[0]
            self._report(
                f"The GPU could not record a step ({reason}): training continues without, with the same "
                "results, but slower."
            )
        else:
            self._memory = graph.pool()
            self._recordings[batch.shape] = (batch, graph, result)
        finally:
            gc.enable()
