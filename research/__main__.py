"""All timings, one after the other, each in a process of its own.

    python -m research DATA                        everything in full: hours on 2 cores
    python -m research DATA --quick                small sizes: minutes; says that all of it runs
    python -m research DATA --only loading similarity

The figures of a quick run are not those of the documentation, except for how long its parts took. A part of
a quick run is ended after two minutes and counts as failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

QUICK_SECONDS = 120
FULL = {
    "loading": "",
    "similarity": "--rivals",
    "stage_c1": "",
    "methods": "",
    "plain_rivals": "--pairs en-fr en-fi --seeds 5k 1k",
    "stage_c2": "--pairs all --timing fi-ru",
}
QUICK = {
    "loading": "--words 20000 --rounds 1",
    "similarity": "--words 20000 --rivals",
    "stage_c1": "--pairs en-ru --seeds 1k --limit 10000 --set updates=10",
    "methods": "--pair en-fr --seeds 1k --methods procrustes advanced --limit 5000",
    "plain_rivals": "--pairs en-fr --seeds 1k --limit 2000 --held-out --methods advanced rcsls",
    "stage_c2": "--pairs en-fr --seeds 1k --limit en=5000 fr=5000 --aligner procrustes --tuning demo "
    "--mixing 0.3 --skip-untuned",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is wanted; the exit status is 1 if any of it failed."""
    parser = argparse.ArgumentParser(
        prog="python -m research", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder with vectors/ and dictionaries/")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", nargs="+", choices=list(FULL), default=list(FULL), metavar="NAME")
    options = parser.parse_args(arguments)
    if not (options.data / "vectors").is_dir():
        parser.error(f"{options.data}: has no folder vectors/; give the data folder.")
    parts, limit = (QUICK, QUICK_SECONDS) if options.quick else (FULL, None)
    failed = [name for name in options.only if not run(name, options.data, parts[name].split(), limit)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run(name: str, data: Path, overrides: Sequence[str], limit: float | None = None) -> bool:
    """Run one benchmark, its output shown as it comes; whether it went well, and within `limit` seconds."""
    print(f"\n== python -m research.{name} {data} {' '.join(overrides)}", flush=True)
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", f"research.{name}", str(data), *overrides])
    try:
        process.wait(limit)
        ending = ""
    except subprocess.TimeoutExpired:
        end_with_children(process)
        ending = ", ended: a quick run's part may take no longer"
    print(f"== {name}: {time.monotonic() - started:.0f} s{ending}", flush=True)
    return process.returncode == 0


def end_with_children(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it has started."""
    whole = psutil.Process(process.pid)
    for each in [*whole.children(recursive=True), whole]:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()


if __name__ == "__main__":
    raise SystemExit(main())
