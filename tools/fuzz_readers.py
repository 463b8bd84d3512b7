"""Feed every reader damaged and random input; only `BilexError`, in one sentence, may come out.

    python tools/fuzz_readers.py [--reader NAME …] [--inputs 1000000]

Each reader of dictionaries, vectors and corpora gets `--inputs` inputs: small valid files (`fuzz_inputs.py`)
with a few changes to their bytes or to what they mean (`mutations.py`), or random bytes. An input fails if
its reader raises anything else, warns, takes more than two seconds of processor time, maps more than 1 GB,
lets the peak of memory rise by more than 256 MB, or returns what breaks a promise. Failing ones are printed.
Input N of a reader is the same for the same `--seed`, wherever it runs: `--reader tei --first N --inputs 1`.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import multiprocessing
import os
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bilex.core.errors import BilexError
from fuzz_inputs import all_targets
from mutations import LARGEST

SECONDS, HANG_SECONDS = 2.0, 20.0
MAPPED, PEAK = 1 << 30, 256 << 20
_BLOCK = 2_500
_SHOWN, _SHOWN_FAILURES = 4_000, 20


class Target(Protocol):
    """One reader with its valid inputs."""

    def make(self, rng: random.Random) -> Mapping[str, bytes]:
        """Lay out an input, and return its files, to be shown if it fails."""

    def read(self, rng: random.Random) -> None:
        """Read the input that was made last, and check the result."""


class TooSlowError(BaseException):
    """An input took too long; not an `Exception`, which a reader might turn into a sentence."""


class TooLargeError(BaseException):
    """An input took more memory than it may."""


@dataclass
class Tally:
    """What a run over some inputs of one reader found."""

    read: int = 0
    refused: int = 0  # with one sentence
    seconds: float = 0.0  # of processor time
    peak: int = 0  # bytes by which the peak of the process's memory rose while inputs were read
    failures: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return self.read + self.refused + len(self.failures)

    def add(self, other: Tally) -> None:
        """Add the counts of more inputs."""
        self.read += other.read
        self.refused += other.refused
        self.seconds += other.seconds
        self.peak = max(self.peak, other.peak)
        self.failures += other.failures


def fuzz(target: Target, seed: int, numbers: Iterable[int]) -> Tally:
    """Feed the inputs of some numbers to a reader."""
    tally, started = Tally(), time.process_time()
    signal.signal(signal.SIGPROF, _too_slow)
    # Machine code that never returns to Python is not interrupted; another timer ends the process then.
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGVTALRM, chain=True)
    for number in numbers:
        rng = random.Random(seed << 40 | number)
        made: Mapping[str, bytes] = {}
        peak = _peak()
        try:
            made = target.make(rng)
            assert max(map(len, made.values())) <= 2 * LARGEST, "the fuzzer made too large a file"
            peak = _peak()  # only the reader's time and memory count
            refused = _refuses(target, rng)
            if _peak() - peak > PEAK:
                raise TooLargeError(f"the peak of memory rose by {_peak() - peak >> 20} MB")
            tally.refused += refused
            tally.read += not refused
        except KeyboardInterrupt:
            raise
        except BaseException:
            shown = "\n".join(f"{name}: {content[:_SHOWN]!r}" for name, content in made.items())
            tally.failures.append(f"input {number}:\n{traceback.format_exc(limit=-6)}{shown}")
        tally.peak += _peak() - peak
    tally.seconds = time.process_time() - started
    return tally


def _refuses(target: Target, rng: random.Random) -> bool:
    """Read an input within the time that it may take; whether it was refused, in one sentence."""
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        target.read(rng)
    except BilexError as error:
        message = str(error)
        assert message.endswith((".", "?")) and "\n" not in message, message
        assert "MemoryError" not in message, message
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return False


def _too_slow(_signal: int, _frame: object) -> None:
    raise TooSlowError


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def limit_memory() -> None:
    """Let the process map no more than `MAPPED` beyond what it has, and turn warnings into errors."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MAPPED, mapped + MAPPED))
    warnings.simplefilter("error")
    gc.freeze()  # collections need not look at the modules again


_targets: dict[str, Target] = {}  # of this process, by name


def _make_targets(folder: Path) -> None:
    folder.mkdir()
    _targets.update(all_targets(folder))


def _begin(scratch: str) -> None:
    """Give a new process its own files and limits."""
    _make_targets(Path(scratch) / str(os.getpid()))
    limit_memory()


def _block(name: str, seed: int, numbers: range) -> Tally:
    return fuzz(_targets[name], seed, numbers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Feed all inputs, and print what each reader did with them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reader", action="append", help="only this one; may be repeated")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as scratch:
        _make_targets(Path(scratch) / "parent")
        unknown = [name for name in options.reader or () if name not in _targets]
        if unknown:
            parser.error(f"there is no reader '{unknown[0]}'; there are {', '.join(_targets)}")
        tallies = {name: Tally() for name in options.reader or _targets}
        fork = multiprocessing.get_context("fork")  # the parent has compiled what is compiled
        numbers = range(options.first, options.first + options.inputs)
        with ProcessPoolExecutor(options.processes, fork, _begin, (scratch,)) as pool:
            running = {
                pool.submit(_block, name, options.seed, numbers[start : start + _BLOCK]): name
                for start in range(0, options.inputs, _BLOCK)
                for name in tallies
            }
            for done in as_completed(running):
                for failure in done.result().failures[:_SHOWN_FAILURES]:
                    print(f"{running[done]}, {failure}", flush=True)
                tallies[running[done]].add(done.result())
    print("reader               inputs       read    refused   failed  inputs per second  memory rose by MB")
    for name, tally in tallies.items():
        print(
            f"{name:15} {tally.inputs:11,} {tally.read:10,} {tally.refused:10,} {len(tally.failures):8,}"
            f" {tally.inputs / max(tally.seconds, 1e-9):18,.0f} {tally.peak / 1e6:18.1f}"
        )
    failed = sum(len(tally.failures) for tally in tallies.values())
    print(f"{sum(tally.inputs for tally in tallies.values()):,} inputs, {failed:,} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
