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
_TOO_SMALL = "the GPU's memory is too small for these vectors; use --device cpu, or fewer words with --limit."


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """The torch device of a name: "auto" (a GPU if there is one), "cpu", "cuda" or another."""
    import torch

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError as error:
        raise BilexError(f"device '{device}' is not known; use auto, cpu or cuda.") from error
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise BilexError(f"device '{device}' is not there: torch sees no GPU here; use --device cpu.")
    return resolved


def in_blocks(count: int, size: int, work: Callable[[slice], None]) -> None:
    """Do `work` for `size` of `count` rows at a time; where memory runs out, for half, with a warning."""
    import torch

    start, size = 0, max(1, size)
    while start < count:
        block = slice(start, min(start + size, count))
        try:
            work(block)
        except torch.OutOfMemoryError as error:
            size = _smaller(block.stop - start, 1, "rows", error)
        else:
            start = block.stop


def with_less_memory(size: int, least: int, work: Callable[[int], Result]) -> Result:
    """Do `work` with buffers of `size` bytes; where memory runs out, again with half, down to `least`."""
    import torch

    while True:
        try:
            return work(size)
        except torch.OutOfMemoryError as error:
            size = _smaller(size, least, "bytes", error)


def _smaller(size: int, least: int, unit: str, error: Exception) -> int:
    """Half of a block that was too large, or `least`, with a warning; an error if it was that small."""
    import torch

    if size <= least:
        raise BilexError(_TOO_SMALL) from error
    half = max(least, -(-size // 2))
    torch.cuda.empty_cache()
    warnings.warn(
        f"GPU memory is too small for a block of {size:,} {unit}: continuing with {half:,} at a time.",
        BilexWarning,
        stacklevel=3,
    )
    return half


@contextlib.contextmanager
def enough_memory() -> Iterator[None]:
    """Turn the errors for too little memory, of the GPU or of the machine, into one sentence."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(error, torch.OutOfMemoryError):
            raise BilexError(_TOO_SMALL) from error
        if isinstance(error, RuntimeError) and not _CANNOT_ALLOCATE.search(str(error)):
            raise
        raise BilexError(
            "there is not enough memory for this; use --limit for fewer words or smaller settings."
        ) from error


# torch's threads do not exist in a forked child, and OpenMP would wait for them for ever. A child of a
# process with threads computes with one, which needs no others; answers stay the same. A child of a process
# without threads may start any number.
_had_threads = True


def _before_fork() -> None:
    global _had_threads  # noqa: PLW0603
    _had_threads = not _TASKS.is_dir() or len(list(_TASKS.iterdir())) > 1


def _in_child() -> None:
    if "torch" in sys.modules and _had_threads:
        sys.modules["torch"].set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
