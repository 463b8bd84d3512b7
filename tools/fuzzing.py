"""What the fuzzers of readers share: changing inputs, limits of time and memory, checking sentences."""

from __future__ import annotations

import contextlib
import faulthandler
import random
import resource
import signal
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

SECONDS, HANG_SECONDS = 2.0, 60
MEMORY = 2 << 30


class TooSlowError(Exception):
    """An input took longer than it may."""


def mutated(rng: random.Random, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """A seed with a few changes, or now and then random bytes.

    Args:
        rng: Draws the changes.
        seeds: Valid inputs.
        tokens: Pieces that are likely to confuse a reader, to be put in.
    """
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(200))
    content = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(content) + 1)
        to = min(len(content), at + rng.choice((1, 1, 2, 4, 8, 30)))
        kind = rng.randrange(8)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del content[at:to]
        elif kind == 2:
            del content[at:]
        elif kind == 3:
            content[at:to] = rng.choice(tokens)
        elif kind == 4:
            content[at:at] = rng.choice(tokens)
        elif kind == 5:
            content[at:at] = content[at:to] * rng.choice((1, 2, 50))
        elif kind == 6:
            content[at : at + 4] = struct.pack(
                "<i", rng.choice((-1, 0, 1, 255, 2**31 - 1, rng.getrandbits(31)))
            )
        else:
            content[at:] = rng.choice(seeds)[at:]
    return bytes(content)


def check_sentence(message: str) -> None:
    """An error is one sentence."""
    assert message.endswith((".", "?")), message
    assert "\n" not in message, message


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Interrupt Python after `SECONDS`; end the process if machine code hangs for much longer."""
    faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


def ring(_signal: int, _frame: object) -> None:
    """The handler of the signal that `time_limit` asks for."""
    raise TooSlowError


def guard_memory() -> int:
    """Let the process map no more than `MEMORY` beyond what it has; return its peak so far in kB."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory_folder() -> str | None:
    """A folder that is not on a disk, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
