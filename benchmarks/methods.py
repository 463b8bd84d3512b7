"""All alignment methods on the same pairs: P@1 with intervals, time and peak memory.

    python -m benchmarks.methods DATA                                     the whole grid
    python -m benchmarks.methods DATA --pairs en-ru --seeds 1k --methods c1 vecmap-semi
    python -m benchmarks.methods DATA --device cuda                       on a GPU
    python -m benchmarks.methods DATA --only-tables                       write docs/methods.md again

Each fit adds a line to the results file; what is there already is not run again, so that the grid can
be stopped and resumed. On a CPU each fit has a process of its own, so that its peak memory is its own.
The tables in docs/methods.md are written from the results file.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.method_tables import write_tables
from benchmarks.packed import PAIRS, read_dictionary, read_vectors
from bilex.aligners import get_method, methods
from bilex.device import resolve_device
from bilex.errors import BilexError
from bilex.evaluation import evaluate
from bilex.space import Space

RESULTS = Path("benchmarks/results/methods.jsonl")
PAGE = Path("docs/methods.md")
NO_SEEDS = "0"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS))
    parser.add_argument("--seeds", nargs="+", default=["5k", "1k"], choices=["5k", "1k", NO_SEEDS])
    parser.add_argument("--methods", nargs="+", default=sorted(methods()))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--limit", type=int, help="only the most frequent words of each language")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--only-tables", action="store_true", help="run nothing")
    parser.add_argument("--single", action="store_true", help="one fit, its line to the standard output")
    return parser.parse_args(arguments)


def run_one(data: Path, method: str, pair: str, seeds: str, device: str, limit: int | None) -> dict[str, Any]:
    """Fit one method on one pair, and score it."""
    place = resolve_device(device)
    source, target = (_vectors(data, language, limit) for language in pair.split("-"))
    train = None if seeds == NO_SEEDS else read_dictionary(data, pair, f"train.freq.{seeds}")
    aligner = get_method(method)(device=device)
    if place.type == "cuda":
        torch.cuda.reset_peak_memory_stats(place)
    started = time.perf_counter()
    aligner.fit(source, target, train)
    seconds = time.perf_counter() - started
    gigabytes = peak_gigabytes(place)
    result = evaluate(
        Space.from_aligner(aligner, source, target), read_dictionary(data, pair, "test.freq.2k")
    )
    row: dict[str, Any] = {
        "method": method,
        "pair": pair,
        "seeds": seeds,
        "device": place.type,
        "threads": torch.get_num_threads(),
        "limit": limit,
        "seconds": round(seconds, 2),
        "gigabytes": round(gigabytes, 3),
        "warnings": aligner.report_.get("warnings", []),
        "rounds": aligner.report_.get("rounds"),
    }
    for name, direction in (("forward", result.forward), ("backward", result.backward)):
        for retrieval in ("nn", "csls"):
            figures = direction.figures[retrieval]
            assert figures is not None
            interval = direction.intervals[retrieval]["p@1"]
            row[f"{name}_{retrieval}"] = [round(100 * f, 2) for f in (figures["p@1"], *interval)]
    return row


_vectors = functools.lru_cache(maxsize=4)(read_vectors)


def peak_gigabytes(device: torch.device) -> float:
    """Peak memory: the GPU's on a GPU, else that of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def run_in_process_of_its_own(
    options: argparse.Namespace, method: str, pair: str, seeds: str
) -> dict[str, Any]:
    """`run_one`, with a peak memory that no earlier fit has raised."""
    command = [sys.executable, "-m", "benchmarks.methods", str(options.data), "--single"]
    command += ["--methods", method, "--pairs", pair, "--seeds", seeds, "--device", options.device]
    if options.limit is not None:
        command += ["--limit", str(options.limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BilexError((done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1])
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The results so far."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def identity(row: dict[str, Any]) -> tuple[Any, ...]:
    """What makes two rows the same experiment."""
    return tuple(row[name] for name in ("method", "pair", "seeds", "device", "limit"))


def seed_sizes(method: str, wanted: list[str]) -> list[str]:
    """The seed sizes that a method is run with; one run without seeds if it takes none."""
    if get_method(method).needs_seeds:
        return [seeds for seeds in wanted if seeds != NO_SEEDS]
    return [NO_SEEDS] if method.startswith("vecmap") else wanted


def run_grid(options: argparse.Namespace) -> None:
    """Every wanted fit that the results file does not hold yet."""
    device = resolve_device(options.device).type
    done = {identity(row) for row in read_rows(options.results)}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    for pair in options.pairs:
        for method in options.methods:
            for seeds in seed_sizes(method, options.seeds):
                if (method, pair, seeds, device, options.limit) in done:
                    continue
                try:
                    if device == "cpu":
                        row = run_in_process_of_its_own(options, method, pair, seeds)
                    else:
                        row = run_one(options.data, method, pair, seeds, options.device, options.limit)
                except (
                    BilexError,
                    RuntimeError,
                ) as error:  # torch's errors, out of memory say, are RuntimeErrors
                    print(f"failed: {method} {pair} {seeds}: {error}", file=sys.stderr, flush=True)
                    continue
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Run what is wanted and write the tables."""
    options = parse(arguments)
    if options.single:
        method, pair = options.methods[0], options.pairs[0]
        seeds = seed_sizes(method, options.seeds)[0]
        print(json.dumps(run_one(options.data, method, pair, seeds, options.device, options.limit)))
        return
    if not options.only_tables:
        run_grid(options)
    write_tables(options.page, read_rows(options.results))


if __name__ == "__main__":
    main()
