"""How much time of `bilex benchmark run` is not spent on the work itself.

    python -m research.runner_overhead GRID [arguments of 'bilex benchmark run' ...]

runs a grid with one worker into an empty folder, and compares the time from start to end with the sum of the
seconds of all fits, stages and evaluations, each counted once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bilex_bench.results import Result
from bilex_bench.store import ResultsStore

BILEX = (sys.executable, "-c", "from bilex.cli import main; main()")
"""The command, whether or not it is on the path."""

_SHARED = {"fit": "family", "tune": "stage", "encode": "stage", "trial": "stage"}


def busy_seconds(results: Iterable[Result]) -> float:
    """The seconds of all steps, those that several setups share counted once."""
    counted: dict[tuple[str, str], float] = {}
    for result in results:
        for step, seconds in result.seconds.items():
            name = getattr(result.setup, _SHARED.get(step, "key"))
            counted[step, name] = seconds
    return sum(counted.values())


def main(arguments: list[str]) -> None:
    """Run, compare, report."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.sqlite"
        started = time.perf_counter()
        overrides = [*arguments, "-o", str(results), "--workers", "1"]
        subprocess.run([*BILEX, "benchmark", "run", *overrides], check=True)
        wall = time.perf_counter() - started
        with ResultsStore.open(results, create=False) as store:
            busy = busy_seconds(store.results())
    print(f"{wall:.1f} s in all, {busy:.1f} s of work: overhead {(wall - busy) / busy:.1%} of the work")


if __name__ == "__main__":
    main(sys.argv[1:])
