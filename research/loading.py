"""How fast and in how much memory a text file of 200,000 × 300 word vectors is loaded, beside gensim.

    python -m research.loading DATA_FOLDER
    python -m research.loading DATA_FOLDER --words 20000 --rounds 1

The file is made from the Finnish vectors of the data folder. Every load runs in a fresh process, the
two libraries in turn. gensim's best path is found first, on the first words of the file. Memory is reported
in three ways: the rise of the peak during loading, with everything imported before; what the process holds
privately at the end, interpreter and all; and the peak of the process with the pages of shared libraries.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bilex.vectors import WordVectors

TRIAL_WORDS = 10_000
GENSIM_TYPES = ("float32", "float64", "float16")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; in a child process, load once and print the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the data folder, or in a child process the file")
    parser.add_argument("--words", type=int, default=200_000, help="the most frequent words")
    parser.add_argument("--rounds", type=int, default=3, help="loads of each library")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(_load_once(options.child, options.data, options.limit)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _compare(options.data, Path(folder), options.words, options.rounds)
    return 0


def _compare(data: Path, folder: Path, words: int, rounds: int) -> None:
    unpack = [sys.executable, str(data / "unpack_vectors"), str(folder), "--langs", "fi", "--format", "vec"]
    unpack += ["--limit", str(words)]
    subprocess.run(unpack, check=True, stdout=subprocess.DEVNULL)
    text = folder / "fi.vec"
    trials = {kind: _child(f"gensim:{kind}", text, TRIAL_WORDS)["seconds"] for kind in GENSIM_TYPES}
    best = min(trials, key=lambda kind: trials[kind])
    print(f"gensim's best datatype for {TRIAL_WORDS:,} words: {best} ({trials})")
    _child("bilex", text, TRIAL_WORDS)  # compiles, the only time after installation
    figures: dict[str, list[dict[str, Any]]] = {"bilex": [], f"gensim:{best}": []}
    for _ in range(rounds):
        for name, measured in figures.items():
            measured.append(_child(name, text))
    matrix = figures["bilex"][0]["matrix_mb"]
    for name, measured in figures.items():
        seconds = sorted(figure["seconds"] for figure in measured)
        rise, private, peak = (
            max(figure[key] for figure in measured) for key in ("rise_mb", "private_mb", "peak_mb")
        )
        print(
            f"{name:15} {statistics.median(seconds):6.2f} s (of {', '.join(f'{s:.2f}' for s in seconds)}); "
            f"memory for loading {rise:.0f} MB = {rise / matrix:.2f} × the matrix of {matrix:.0f} MB; "
            f"process {private:.0f} MB private = {private / matrix:.2f} ×, {peak:.0f} MB peak with libraries"
        )
    ours, theirs = ([figure["seconds"] for figure in measured] for measured in figures.values())
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    print(f"bilex is {statistics.median(ratios):.1f} times as fast (worst round {min(ratios):.1f})")
    WordVectors.load(text).save(folder / "fi")
    opened = [_child("bilex", folder / "fi") for _ in range(rounds)]
    print(
        f"safetensors folder opened in {statistics.median(figure['seconds'] for figure in opened):.3f} s, "
        f"with {max(figure['rise_mb'] for figure in opened):.0f} MB"
    )


def _child(name: str, path: Path, limit: int | None = None) -> dict[str, Any]:
    command = [sys.executable, "-m", "research.loading", str(path), "--child", name]
    if limit is not None:
        command += ["--limit", str(limit)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _load_once(name: str, path: Path, limit: int | None) -> dict[str, float]:
    """Warm up on a tiny file, so that imports are not timed, then load `path`."""
    load = _loader(name)
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "tiny.vec"
        tiny.write_text("2 2\na 1 2\nb 3 4\n", encoding="utf-8")
        load(tiny, None)
    before = _peak_mb()
    start = time.perf_counter()
    vectors = load(path, limit)
    seconds = time.perf_counter() - start
    peak = _peak_mb()
    return {
        "seconds": round(seconds, 4),
        "peak_mb": peak,
        "rise_mb": peak - before,
        "private_mb": _private_mb(),
        "matrix_mb": vectors.vectors.size * 4 / 1e6,
    }


def _loader(name: str) -> Callable[[Path, int | None], Any]:
    if name == "bilex":
        return lambda path, limit: WordVectors.load(path, limit=limit)
    from gensim.models import KeyedVectors

    datatype = np.dtype(name.split(":")[1]).type

    def load(path: Path, limit: int | None) -> Any:
        return KeyedVectors.load_word2vec_format(str(path), datatype=datatype, limit=limit)

    return load


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def _private_mb() -> float:
    """Memory of this process that no file stands behind (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("RssAnon"))


if __name__ == "__main__":
    raise SystemExit(main())
