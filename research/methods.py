"""The page that compares all methods: what they score, and what they cost on this machine.

    python -m research.methods DATA                               all of it, or what is still missing
    python -m research.methods DATA --methods rcsls --seeds 5k    the costs of one method anew, and the page
                                                                    if there is a results file
    python -m research.methods DATA --only-page                   the page anew, nothing measured

Scores are those of the grids `shared-data` and `no-seeds` of `bilex benchmark run`, without their language
models; setups that the results file holds already are not run again. Costs are those of a fit on the CPU
without scoring, in a process of its own, so that its peak memory is its own; each adds a line to the costs
file, and what is there already is not run again unless methods are named. Both go into
research/methods.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from bilex.aligners import get_method, methods
from bilex.aligners.vecmap import SelfLearningReport
from bilex.core.errors import BilexError
from bilex_bench.results import Result
from bilex_bench.store import ResultsStore
from research.method_tables import write_tables
from research.packed import read_dictionary, read_vectors
from research.runner_overhead import BILEX
from research.stage_c1 import peak_gigabytes

COSTS = Path("research/results/method_costs.jsonl")
RESULTS = Path("results.sqlite")
GRIDS = ("shared-data", "no-seeds")
LANGUAGES = ("en", "fi", "fr", "ru")
SOME_FAILED = 1
PAGE = Path("research/methods.md")
NO_SEEDS = "0"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("--pair", default="fi-ru", help="the pair whose fits are timed")
    parser.add_argument("--seeds", nargs="+", default=["5k", "1k"], choices=["5k", "1k"])
    parser.add_argument("--methods", nargs="+", choices=sorted(methods()), metavar="NAME")
    parser.add_argument(
        "--device", default="cpu", choices=["cpu", "cuda"], help="where fits are timed; cuda only prints them"
    )
    parser.add_argument("--limit", type=int, help="only the most frequent words of each language")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the results file, added to if there")
    parser.add_argument("--costs", type=Path, default=COSTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--only-page", action="store_true", help="measure nothing")
    parser.add_argument("--single", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def cost(options: argparse.Namespace, method: str, seeds: str) -> dict[str, Any]:
    """Fit one method: its seconds, and the peak memory of this process or of the GPU."""
    source, target = (read_vectors(options.data, name, options.limit) for name in options.pair.split("-"))
    train = None if seeds == NO_SEEDS else read_dictionary(options.data, options.pair, f"train.freq.{seeds}")
    device = torch.device(options.device)
    torch.zeros(1, device=device)
    aligner = get_method(method)(device=options.device)
    started = time.perf_counter()
    aligner.fit(source, target, train)
    return {
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


def cost_in_process_of_its_own(options: argparse.Namespace, method: str, seeds: str) -> dict[str, Any]:
    """`cost`, with a peak memory that no earlier fit has raised."""
    command = [sys.executable, "-m", "research.methods", str(options.data), "--single"]
    command += ["--methods", method, "--pair", options.pair, "--device", options.device]
    command += ["--seeds", seeds] if seeds != NO_SEEDS else []
    command += ["--limit", str(options.limit)] if options.limit is not None else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BilexError(f"{method}, {seeds} seeds: {done.stderr.strip().splitlines()[-1]}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def seed_sizes(method: str, wanted: list[str]) -> list[str]:
    """The seed sizes that a method is run with; one run without seeds if it takes none."""
    return [NO_SEEDS] if method.startswith("vecmap") and not get_method(method).needs_seeds else wanted


def measure_costs(options: argparse.Namespace) -> None:
    """Time every wanted fit that the costs file does not hold yet."""
    known = {identity(row) for row in read_costs(options.costs)} if options.methods is None else set()
    options.costs.parent.mkdir(parents=True, exist_ok=True)
    for method in options.methods or sorted(methods()):
        for seeds in seed_sizes(method, options.seeds):
            if (method, options.pair, seeds, options.limit) in known:
                continue
            try:
                row = cost_in_process_of_its_own(options, method, seeds)
            except BilexError as error:
                print(f"failed: {error}", file=sys.stderr, flush=True)
                continue
            if options.device == "cpu":
                with options.costs.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)


def identity(row: dict[str, Any]) -> tuple[Any, ...]:
    """What makes two rows the same fit."""
    return tuple(row[name] for name in ("method", "pair", "seeds", "limit"))


def read_costs(path: Path) -> list[dict[str, Any]]:
    """The costs so far, of each fit the last."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return list({identity(row): row for row in rows}.values())


def run_grids(options: argparse.Namespace) -> None:
    """Score every method on every pair, as far as the results file does not hold it yet."""
    data = options.results.with_suffix(".data")
    for language in LANGUAGES:
        path = data / "vectors" / f"{language}.npy"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            read_vectors(options.data, language).save(path)
    dictionaries = data / "dictionaries"
    if not dictionaries.exists():
        dictionaries.symlink_to((options.data / "dictionaries").resolve())
    for name in GRIDS:
        overrides = ["--data", f"xling={data}", "-o", str(options.results), "--lm", "none"]
        overrides += ["--limit", str(options.limit)] if options.limit is not None else []
        done = subprocess.run([*BILEX, "benchmark", "run", name, *overrides], check=False)
        if done.returncode not in (0, SOME_FAILED):
            raise BilexError(f"'bilex benchmark run {name}' ended with {done.returncode}; see above.")


def scores(path: Path) -> Iterator[dict[str, Any]]:
    """The methods as they are, and c1's preset `best`, from a results file: P@1 with its interval."""
    with ResultsStore.open(path, create=False) as store:
        for result in store.results():
            settings = dict(result.setup.settings)
            if result.setup.lm is None and result.status == "done" and settings in ({}, {"preset": "best"}):
                yield score(result)


def score(result: Result) -> dict[str, Any]:
    """The row of one result."""
    setup, evaluation = result.setup, result.evaluation
    assert evaluation is not None
    row: dict[str, Any] = {
        "method": f"{setup.method} (best)" if setup.settings else setup.method,
        "pair": setup.pair,
        "seeds": setup.seeds,
        "device": result.device,
        "warnings": result.report.get("aligner", {}).get("warnings", []),
    }
    for direction in ("forward", "backward"):
        for retrieval in ("nn", "csls"):
            ends = evaluation[direction]["interval_95"][retrieval]["p@1"]
            figures = (evaluation[direction][retrieval]["p@1"], *ends)
            row[f"{direction}_{retrieval}"] = [round(100 * figure, 2) for figure in figures]
    return row


def main(arguments: list[str] | None = None) -> None:
    """Measure what is wanted and write the page."""
    options = parse(arguments)
    if options.single:
        method = options.methods[0]
        print(json.dumps(cost(options, method, seed_sizes(method, options.seeds)[0])))
        return
    if not options.only_page:
        measure_costs(options)
    if not options.only_page and options.methods is None:
        run_grids(options)
    if options.only_page or options.results.exists():
        write_tables(options.page, list(scores(options.results)), read_costs(options.costs))


if __name__ == "__main__":
    main()
