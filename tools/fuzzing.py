"""What the fuzzers of readers share: a target, limits of time and memory that are checked, the loop."""

from __future__ import annotations

import faulthandler
import gc
import random
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bilex.core.errors import BilexError
from mutations import LARGEST

SECONDS, HANG_SECONDS = 2.0, 20.0
MAPPED, PEAK = 1 << 30, 256 << 20
LARGEST_FILE = 2 * LARGEST
_TICK = 0.25
_SHOWN = 4_000


class Target(Protocol):
    """One reader with its valid inputs."""

    name: str

    def make(self, rng: random.Random) -> Mapping[str, bytes]:
        """Lay out an input and return its files, to be shown if it fails."""

    def read(self, rng: random.Random) -> None:
        """Read the input that was made last and check what comes out."""


class TooSlowError(BaseException):
    """An input took longer than it may; not an `Exception`, which a reader might turn into a sentence."""


class TooLargeError(BaseException):
    """An input took more memory than it may."""


@dataclass
class Tally:
    """What a run over some inputs of one reader found.

    Attributes:
        reader: Its name.
        first: The number of the first input.
        read: Inputs that were read.
        refused: Inputs that were refused with one sentence.
        seconds: Processor time.
        peak: By how many bytes the peak of the process's memory rose while inputs were read.
        failures: A description of every input that failed.
    """

    reader: str
    first: int
    read: int = 0
    refused: int = 0
    seconds: float = 0.0
    peak: int = 0
    failures: tuple[str, ...] = ()

    @property
    def inputs(self) -> int:
        """How many inputs were tried."""
        return self.read + self.refused + len(self.failures)


class Watch:
    """Interrupts an input that takes more than `SECONDS` of processor time; ends a process that hangs.

    A timer rings every quarter of a second and counts how often it has for the same input, which costs
    nothing for each input. Machine code that never returns to Python does not hear it; after 20 seconds of
    processor time another timer then ends the process with a traceback.
    """

    def __init__(self) -> None:
        self.ticks = 0
        signal.signal(signal.SIGPROF, self._ring)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        faulthandler.register(signal.SIGVTALRM, chain=True)

    def start(self) -> None:
        """Start the timer."""
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
        signal.setitimer(signal.ITIMER_PROF, _TICK, _TICK)

    def stop(self) -> None:
        """Stop the timer."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def _ring(self, _signal: int, _frame: object) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
        self.ticks += 1
        if self.ticks * _TICK > SECONDS:
            self.ticks = 0
            raise TooSlowError


def fuzz(target: Target, seed: int, first: int, count: int) -> Tally:
    """Feed some inputs to a reader.

    Args:
        target: The reader.
        seed: With the number of an input, what determines it.
        first: The number of the first input.
        count: How many.
    """
    tally, watch = Tally(target.name, first), Watch()
    peak = _peak()
    start = time.process_time()
    failures: list[str] = []
    watch.start()
    for number in range(first, first + count):
        rng = random.Random(seed << 40 | number)
        made: Mapping[str, bytes] = {}
        watch.ticks = 0
        try:
            made = target.make(rng)
            assert max(map(len, made.values())) <= LARGEST_FILE, "the fuzzer made too large a file"
            watch.ticks, peak = 0, _peak()  # only the reader's time and memory count
            refused = _refusal(target, rng)
            tally.peak += _checked_rise(peak)
            tally.refused += refused
            tally.read += not refused
        except KeyboardInterrupt:
            raise
        except BaseException:
            tally.peak += _peak() - peak
            failures.append(f"{target.name} {number}:\n{traceback.format_exc(limit=-6)}{_shown(made)}")
    watch.stop()
    tally.seconds = time.process_time() - start
    tally.failures = tuple(failures)
    return tally


def limit_memory() -> None:
    """Let the process map no more than `MAPPED` beyond what it has, and turn warnings into errors."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MAPPED, mapped + MAPPED))
    warnings.simplefilter("error")
    gc.freeze()  # collections need not look at the modules again


def memory_folder() -> str | None:
    """A folder that is not on a disk, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _refusal(target: Target, rng: random.Random) -> bool:
    """Read an input; whether it was refused, in one sentence."""
    try:
        target.read(rng)
    except BilexError as error:
        message = str(error)
        assert message.endswith((".", "?")) and "\n" not in message, message
        assert "MemoryError" not in message, message
        return True
    return False


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _checked_rise(before: int) -> int:
    rise = _peak() - before
    if rise > PEAK:
        raise TooLargeError(f"the peak of memory rose by {rise >> 20} MB")
    return rise


def _shown(made: Mapping[str, bytes]) -> str:
    return "\n".join(f"{name}: {content[:_SHOWN]!r}" for name, content in made.items())
