"""Threads that share work over the cores of the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bilex.vectors.stored import slices


def worker_count() -> int:
    """How many threads torch would use, which is what the user allows."""
    import torch

    return max(1, min(torch.get_num_threads(), os.cpu_count() or 1))


@contextmanager
def single_threaded_torch() -> Iterator[Callable[[], None]]:
    """Run torch with one thread per calling thread; each calls what is yielded before its first product."""
    import torch

    before = torch.get_num_threads()
    try:
        yield lambda: torch.set_num_threads(1)
    finally:
        torch.set_num_threads(before)


def in_threads(count: int, work: Callable[[int, int], None], size: int) -> None:
    """Do `work(start, stop)` over the whole range, `size` at a time, in as many threads as torch may use."""
    if count <= size:
        work(0, count)
        return
    with ThreadPoolExecutor(worker_count()) as pool:
        list(pool.map(lambda part: work(part.start, part.stop), slices(count, size)))
