"""Passes through the encoder that a GPU replays as a whole.

A pass forward and backward through a small encoder is some thousand kernels of a few microseconds each, and
Python cannot hand them over that fast: the GPU waits most of the time. A CUDA graph records the kernels once
and starts them all with one call. It is bound to one shape and to fixed places in memory, so that batches
are padded to few shapes (`Batches.lay_out`) and copied to where the recording reads them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from bilex.encoders.batches import Batch

Pass = Callable[[Batch], torch.Tensor]
Recording = tuple[Batch, Callable[[], None], torch.Tensor]


class ReplayedPass:
    """A pass over batches, recorded for each shape and replayed from then on.

    The first batch of a shape runs as usual, which loads and chooses the kernels; the second is recorded.
    Dropout draws from torch's own generator in either case, the same numbers.

    Args:
        work: The pass. It must not wait for the GPU, and must write into memory that stays where it is.
        tell: Called with a sentence if recording fails; from then on every batch runs as usual.
    """

    def __init__(self, work: Pass, tell: Callable[[str], None]) -> None:
        self._work = work
        self._tell = tell
        self._seen: set[tuple[torch.Size, ...]] = set()
        self._recordings: dict[tuple[torch.Size, ...], Recording] = {}
        self._memory: Any = None
        self._able = True
        self.replayed = 0
        """How many batches were replayed."""

    def __call__(self, batch: Batch) -> torch.Tensor:
        """Do the pass over a batch; the number that it yields is good until the next call."""
        if batch.shape not in self._recordings and not self._record(batch):
            return self._work(batch)
        own, replay, result = self._recordings[batch.shape]
        own.copy_(batch)
        replay()
        self.replayed += 1
        return result

    def _record(self, batch: Batch) -> bool:
        """Record the pass for the shape of a batch; False if that is not done (yet)."""
        if not self._able or batch.shape not in self._seen:
            self._seen.add(batch.shape)
            return False
        own = batch.clone()
        try:
            if self._memory is None:
                self._memory = new_memory()
            replay, result = record(lambda: self._work(own), self._memory)
        except RuntimeError as error:
            self._able = False
            self._recordings.clear()
            self._tell(
                f"The GPU could not record a step ({str(error).splitlines()[0]}): tuning goes on without, "
                "with the same results, but slower."
            )
            return False
        self._recordings[batch.shape] = (own, replay, result)
        return True


@contextlib.contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """Work in a stream of its own on a GPU: what is recorded must not touch the default stream."""
    if device.type != "cuda":
        yield
        return
    outside = torch.cuda.current_stream(device)
    stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(outside)
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        outside.wait_stream(stream)


def new_memory() -> Any:
    """GPU memory that all recordings share: no two of them run at once."""
    return torch.cuda.graph_pool_handle()


def record(work: Callable[[], torch.Tensor], memory: Any) -> tuple[Callable[[], None], torch.Tensor]:
    """Record what `work` makes the GPU do, without doing it.

    Returns:
        A function that does it, and the tensor where the result will be.
    """
    graph: Any = torch.cuda.CUDAGraph()
    stream = torch.cuda.current_stream()
    with torch.cuda.graph(graph, pool=memory, stream=stream, capture_error_mode="thread_local"):
        result = work()
    return graph.replay, result
