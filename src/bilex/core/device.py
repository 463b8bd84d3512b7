"""The device that computes: choosing it, staying within its memory, and surviving `os.fork()`."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bilex.core.errors import BilexError, BilexWarning

if TYPE_CHECKING:
    import torch

Result = TypeVar("Result")

_TASKS = Path("/proc/self/task")
_CANNOT_ALLOCATE = re.compile("can't allocate memory|not enough memory|Storage size calculation overflowed")


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """Turn a user's word into a torch device.

    Args:
        device: "auto" (a GPU if there is one), "cpu", "cuda", or any torch device.

    Raises:
        BilexError: The device does not exist here.
    """
    import torch

    if isinstance(device, torch.device):
        return device
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise BilexError(f"device '{device}' is not known; use auto, cpu or cuda.") from error
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise BilexError(f"device '{device}' was asked for but torch sees no GPU here; use --device cpu.")
    return resolved


def in_blocks(count: int, size: int, work: Callable[[slice], None]) -> None:
    """Do something for some rows at a time; where memory runs out, for half as many, with a warning.

    Args:
        count: How many rows there are.
        size: How many at a time, to begin with.
        work: What is done for a block. After an error of memory it is called again for half of the block.

    Raises:
        BilexError: The memory is too small for a single row.
    """
    import torch

    start, size = 0, max(1, size)
    while start < count:
        block = slice(start, min(start + size, count))
        try:
            work(block)
        except torch.OutOfMemoryError as error:
            size = _half(block.stop - start, "rows", error)
        else:
            start = block.stop


def with_less_memory(size: int, least: int, work: Callable[[int], Result]) -> Result:
    """Do something with buffers of so many bytes; where memory runs out, with half of it, with a warning.

    Args:
        size: How many bytes, to begin with.
        least: With fewer it is not tried.
        work: What is done with buffers of a size; it is called again from its beginning.

    Raises:
        BilexError: The memory is too small even so.
    """
    import torch

    while True:
        try:
            return work(size)
        except torch.OutOfMemoryError as error:
            if size <= least:
                raise _too_small() from error
            size = max(least, _half(size, "bytes", error))


def _half(size: int, unit: str, error: Exception) -> int:
    """Half of a block that was too large, with a warning.

    Raises:
        BilexError: There is no half of it.
    """
    import torch

    if size == 1:
        raise _too_small() from error
    half = -(-size // 2)
    torch.cuda.empty_cache()
    warnings.warn(
        f"GPU memory is too small for a block of {size:,} {unit}: going on with {half:,} at a time.",
        BilexWarning,
        stacklevel=3,
    )
    return half


@contextlib.contextmanager
def enough_memory() -> Iterator[None]:
    """Turn the errors for a memory that is too small, of the GPU or of the machine, into one sentence.

    Raises:
        BilexError: It is.
    """
    try:
        yield
    except MemoryError as error:
        raise _machine_too_small() from error
    except RuntimeError as error:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(error, torch.OutOfMemoryError):
            raise _too_small() from error
        if _CANNOT_ALLOCATE.search(str(error)):
            raise _machine_too_small() from error
        raise


def _machine_too_small() -> BilexError:
    return BilexError("there is not enough memory for this; use --limit for fewer words or smaller settings.")


def _too_small() -> BilexError:
    return BilexError(
        "the GPU's memory is too small for these vectors; use --device cpu, or fewer words with --limit."
    )


class _Forks:
    """What is done around a fork: torch's threads do not come along, and OpenMP would wait for them for ever.

    A child of a process with threads computes with one thread, which needs no others; answers stay the same.
    A child of a process without threads is free to start as many as it likes.
    """

    def __init__(self) -> None:
        self._had_threads = True

    def look(self) -> None:
        """Before a fork: remember whether this process has threads."""
        self._had_threads = True
        with contextlib.suppress(OSError):
            self._had_threads = len(list(_TASKS.iterdir())) > 1

    def go_on_alone(self) -> None:
        """After a fork, in the child."""
        torch = sys.modules.get("torch")
        if torch is not None and self._had_threads:
            torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    _forks = _Forks()
    os.register_at_fork(before=_forks.look, after_in_child=_forks.go_on_alone)
