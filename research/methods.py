"""What each method costs on this machine: seconds and peak memory of a fit.

    python -m research.methods DATA              all methods, Finnish-Russian, 5k and 1k seeds
    python -m research.methods DATA --methods rcsls --seeds 5k
    python -m research.methods DATA --methods vecmap-semi --seeds 1k --device cuda

Each fit runs in a process of its own, so that its peak memory is its own, and prints one line
of JSON. What methods score: `bilex benchmark run shared-data --lm none` (research/methods.md).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import torch

from bilex.aligners import get_method, methods
from bilex.aligners.vecmap import SelfLearningReport
from research.packed import read_dictionary, read_vectors
from research.stage_c1 import peak_gigabytes

NO_SEEDS = "0"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("--pair", default="fi-ru")
    parser.add_argument("--seeds", nargs="+", default=["5k", "1k"], choices=["5k", "1k", NO_SEEDS])
    parser.add_argument("--methods", nargs="+", default=sorted(methods()), metavar="NAME")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--limit", type=int, help="only the most frequent words of each language")
    parser.add_argument("--single", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def print_cost(options: argparse.Namespace, method: str, seeds: str) -> None:
    """Fit one method in this process."""
    source, target = (read_vectors(options.data, name, options.limit) for name in options.pair.split("-"))
    train = None if seeds == NO_SEEDS else read_dictionary(options.data, options.pair, f"train.freq.{seeds}")
    device = torch.device(options.device)
    torch.zeros(1, device=device)
    aligner = get_method(method)(device=options.device)
    started = time.perf_counter()
    aligner.fit(source, target, train)
    row = {
        "method": method,
        "pair": options.pair,
        "seeds": seeds,
        "limit": options.limit,
        "device": options.device,
        "threads": torch.get_num_threads(),
        "seconds": round(time.perf_counter() - started, 2),
        "gigabytes": round(peak_gigabytes(device), 3),
        **({"rounds": aligner.report_.rounds} if isinstance(aligner.report_, SelfLearningReport) else {}),
    }
    print(json.dumps(row), flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Measure what is wanted; the exit status is 1 if a fit failed."""
    options = parse(arguments)
    if options.single:
        print_cost(options, options.methods[0], options.seeds[0])
        return 0
    failed = False
    for method in options.methods:
        seedless = method.startswith("vecmap") and not get_method(method).needs_seeds
        for seeds in [NO_SEEDS] if seedless else options.seeds:
            command = [sys.executable, "-m", "research.methods", str(options.data), "--single"]
            command += ["--methods", method, "--pair", options.pair, "--seeds", seeds]
            command += ["--device", options.device]
            command += ["--limit", str(options.limit)] if options.limit is not None else []
            failed |= subprocess.run(command, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
