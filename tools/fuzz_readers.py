"""Feed every reader damaged and random input; only `BilexError`, in one sentence, may come out.

    python tools/fuzz_readers.py [--reader NAME …] [--inputs 1000000] [--minutes 8] [--state FILE]

Each reader of dictionaries, vectors and corpora gets `--inputs` inputs: small valid files changed in a few
places, in their bytes or in what they mean (`tools/mutations.py`), or random bytes. An input fails if its
reader raises anything else, warns, takes more than two seconds of processor time, maps more than 1 GB, lets
the peak of memory rise by more than 256 MB, or returns what breaks a promise. Failing inputs are printed.
`--state` keeps the counts in a file, from which a later run goes on where `--minutes` ended this one.
Input N of a reader is the same for the same `--seed`, wherever it runs: `--reader tei --first N --inputs 1`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from fuzz_dictionaries import dictionary_targets
from fuzz_vectors import vector_targets
from fuzzing import Tally, Target, fuzz, limit_memory, memory_folder

BLOCK = 2_500
_SHOWN_FAILURES = 20
_BLOCKS_BETWEEN_WRITES = 200

_targets: dict[str, Target] = {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print what each reader did with its inputs."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=memory_folder()) as scratch:
        names = list(_made_targets(Path(scratch) / "parent"))
        unknown = [name for name in options.reader if name not in names]
        if unknown:
            raise SystemExit(f"there is no reader {unknown[0]!r}; there are {', '.join(names)}")
        chosen = options.reader or names
        tallies = _stored(options.state, chosen, options.first)
        until = time.monotonic() + 60 * options.minutes
        start = time.monotonic()
        whole = _run(options, scratch, tallies, until)
    _report(tallies, time.monotonic() - start)
    return 0 if whole and not any(tally.failures for tally in tallies.values()) else 1


def _run(options: argparse.Namespace, scratch: str, tallies: dict[str, Tally], until: float) -> bool:
    """Feed all blocks; whether every process lived to the end."""
    fork = multiprocessing.get_context("fork")  # the parent has compiled what is compiled
    with ProcessPoolExecutor(options.processes, fork, _begin, (scratch,)) as pool:
        running = {
            pool.submit(_block, name, options.seed, first, count, until): f"{name} from {first}"
            for name, first, count in _blocks(tallies, options.inputs)
        }
        try:
            for number, done in enumerate(as_completed(running)):
                _add(tallies, done.result())
                for failure in done.result().failures[:_SHOWN_FAILURES]:
                    print(failure, flush=True)
                if number % _BLOCKS_BETWEEN_WRITES == 0:
                    _store(options.state, tallies)
        except BrokenProcessPool:
            begun = [label for future, label in running.items() if not future.done() or future.exception()]
            print(f"a process died in one of these blocks: {', '.join(begun[: 2 * options.processes])}")
            return False
    _store(options.state, tallies)
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reader", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=10_000.0, help="stop after so many")
    parser.add_argument("--state", help="a file that keeps the counts from run to run")
    return parser


def _made_targets(folder: Path) -> Mapping[str, Target]:
    """The readers by name, with files in a folder of this process's own."""
    folder.mkdir()
    _targets.clear()
    for target in (*dictionary_targets(folder), *vector_targets(folder)):
        _targets[target.name] = target
    return _targets


def _begin(scratch: str) -> None:
    """Give a new process its own files and limits."""
    _made_targets(Path(scratch) / str(os.getpid()))
    limit_memory()


def _block(name: str, seed: int, first: int, count: int, until: float) -> Tally:
    """Feed a block of inputs; none once the time is over, so that the blocks done stay without gaps."""
    return fuzz(_targets[name], seed, first, count if time.monotonic() < until else 0)


def _blocks(tallies: Mapping[str, Tally], inputs: int) -> Iterator[tuple[str, int, int]]:
    """Pieces of work, a block of each reader after the other, so that all get equally far."""
    for done in range(0, inputs, BLOCK):
        for name, tally in tallies.items():
            count = min(BLOCK, inputs - tally.inputs - done)
            if count > 0:
                yield name, tally.first + tally.inputs + done, count


def _add(tallies: Mapping[str, Tally], block: Tally) -> None:
    whole = tallies[block.reader]
    whole.read += block.read
    whole.refused += block.refused
    whole.seconds += block.seconds
    whole.peak = max(whole.peak, block.peak)
    whole.failures += block.failures


def _stored(path: str | None, names: Sequence[str], first: int) -> dict[str, Tally]:
    """What earlier runs counted."""
    stored = json.loads(Path(path).read_text(encoding="utf-8")) if path and Path(path).exists() else []
    found = {
        record["reader"]: Tally(**{**record, "failures": tuple(record["failures"])}) for record in stored
    }
    return {name: found.get(name, Tally(name, first)) for name in names}


def _store(path: str | None, tallies: Mapping[str, Tally]) -> None:
    """Keep the counts for a later run."""
    if path:
        text = json.dumps([dataclasses.asdict(tally) for tally in tallies.values()], indent=1)
        Path(path).write_text(text, encoding="utf-8")


def _report(tallies: Mapping[str, Tally], seconds: float) -> None:
    print(
        "reader               inputs       read    refused   failed  inputs a CPU second  memory rose by MB"
    )
    for name, tally in tallies.items():
        print(
            f"{name:15} {tally.inputs:11,} {tally.read:10,} {tally.refused:10,} {len(tally.failures):8,}"
            f" {tally.inputs / max(tally.seconds, 1e-9):20,.0f} {tally.peak / 1e6:18.1f}"
        )
    total = sum(tally.inputs for tally in tallies.values())
    failed = sum(len(tally.failures) for tally in tallies.values())
    print(f"{total:,} inputs, {failed:,} failures; {seconds:.0f} s in this run")


if __name__ == "__main__":
    raise SystemExit(main())
