"""Training steps that a GPU replays as a whole.

A step forward and backward through a small network is a hundred to some thousand kernels of a few
microseconds each, and Python cannot hand them over that fast: the GPU waits most of the time. A CUDA graph
records the kernels once and starts them all with one call. It is bound to one shape and to fixed places in
memory, so that batches come in few shapes and are copied to where the recording reads them.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, Protocol, Self, TypeVar

import torch


class Copied(Protocol):
    """What a batch must be able to do: a tensor can."""

    @property
    def shape(self) -> Hashable:
        """The shape of what it consists of."""

    def clone(self) -> Self:
        """The same batch in memory of its own."""

    def copy_(self, other: Self, /) -> object:
        """Overwrite what it consists of with a batch of the same shape."""


Batch = TypeVar("Batch", bound=Copied)


class ReplayedPass(Generic[Batch]):
    """A pass over batches, recorded for each shape and replayed from then on.

    The first batch of a shape runs as usual, which loads and chooses the kernels; the second is recorded.
    Dropout draws from torch's own generator in either case, the same numbers. `replayed` counts batches.

    Args:
        work: The pass. It must not wait for the GPU, and must write into memory that stays where it is.
        report: Called with a sentence if recording fails; from then on every batch runs as usual.
    """

    def __init__(self, work: Callable[[Batch], torch.Tensor], report: Callable[[str], None]) -> None:
        self._work, self._report = work, report
        self._seen: set[Hashable] = set()
        self._recordings: dict[Hashable, tuple[Batch, Callable[[], None], torch.Tensor]] = {}
        self._memory: Any = None
        self._able = True
        self.replayed = 0

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
            _leave_recording()
            self._report(
                f"The GPU could not record a step ({str(error).splitlines()[0]}): training goes on without, "
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
    """Record what `work` makes the GPU do: a function that does it, and the tensor for the result."""
    graph: Any = torch.cuda.CUDAGraph()
    stream = torch.cuda.current_stream()
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()  # an old recording that the collector frees during a new one would spoil that
    try:
        with torch.cuda.graph(graph, pool=memory, stream=stream, capture_error_mode="thread_local"):
            result = work()
    finally:
        if enabled:
            gc.enable()
    return graph.replay, result


def _leave_recording() -> None:
    """Make random numbers usable again after a recording that failed.

    A recording that breaks off leaves the generator waiting for its end, and the next number drawn from it
    raises torch's own error. A clone of its state stands at the same place of the stream and does not wait.
    """
    if torch.cuda.is_available():
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        generator.graphsafe_set_state(generator.clone_state())
