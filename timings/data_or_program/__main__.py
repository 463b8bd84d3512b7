"""Three experiments that separate the data from the program, where figures differ from the paper's Table 1.

    python -m timings.data_or_program DATA --what self-learning vocabulary planted --workers 12
    python -m timings.data_or_program DATA --what self-learning --pairs en-fi fi-fr --runs 1k "many calmly"
    python -m timings.data_or_program DATA --what vocabulary --sizes 50000 100000
    python -m timings.data_or_program DATA --what planted --words 10000 --noise 0.9 --methods lnmap
    python -m timings.data_or_program DATA --summarise ROWS.jsonl

Rows come as JSON lines while the work goes on, then tables in Markdown; --summarise makes the tables from
rows that were kept. What each experiment does is said at the head of its module. Workers share one GPU; to
give each its part of the cores set OMP_NUM_THREADS.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from bilex.aligners import methods
from timings.data_or_program import planted, self_learning, vocabulary
from timings.data_or_program.common import Row
from timings.packed import PAIRS

EXPERIMENTS = {module.WHAT: module for module in (self_learning, vocabulary, planted)}


class Task(NamedTuple):
    """A part of an experiment that a worker can do alone."""

    run: Callable[[argparse.Namespace, Any], list[Row]]
    case: Any


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("data", type=Path, help="the folder with vectors/ and dictionaries/")
    add("--what", nargs="+", choices=list(EXPERIMENTS), default=list(EXPERIMENTS))
    add("--workers", type=int, default=1, help="processes that share the work; 1 works in this one")
    add("--device", default="auto")
    add("--limit", type=int, help="only the most frequent words of each language")
    add("--patience", type=int, default=50, help="of vecmap-semi; fewer rounds end sooner")
    add("--summarise", type=Path, metavar="ROWS", help="only make the tables, from rows in a file")
    add("--pairs", nargs="+", default=["fi-ru", *(p for p in PAIRS if p != "fi-ru")], help="of self-learning")
    add("--runs", nargs="+", choices=self_learning.RUNS, default=list(self_learning.RUNS))
    add("--sizes", nargs="+", type=int, default=[15_000, 50_000, 100_000], help="of cut vocabularies")
    add("--words", type=int, default=20_000, help="of the planted problem")
    add("--kinds", nargs="+", choices=planted.KINDS, default=list(planted.KINDS))
    add("--noise", nargs="+", type=float, default=[0.9, 1.1, 1.3])
    add("--seeds", nargs="+", type=int, default=[1000, 200], help="of the planted problem")
    add("--methods", nargs="+", choices=sorted(methods()), default=list(planted.METHODS), metavar="NAME")
    return parser.parse_args(arguments)


def tasks(options: argparse.Namespace) -> list[Task]:
    """Everything to do, what takes long first."""
    cases = [
        (kind, noise, seeds) for kind in options.kinds for noise in options.noise for seeds in options.seeds
    ]
    every = {
        self_learning.WHAT: [Task(self_learning.run, pair) for pair in options.pairs],
        planted.WHAT: [Task(planted.run, case) for case in cases],
        vocabulary.WHAT: [Task(vocabulary.run, cut) for cut in vocabulary.cuts(options.sizes)],
    }
    return [task for what, those in every.items() if what in options.what for task in those]


def results(options: argparse.Namespace) -> Iterator[Row]:
    """The rows of all tasks, as they come."""
    wanted = tasks(options)
    if options.workers == 1:
        for task in wanted:
            yield from task.run(options, task.case)
        return
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(task.run, options, task.case) for task in wanted]):
            yield from done.result()


def main(arguments: list[str] | None = None) -> None:
    """Print a JSON line for each row, then the tables."""
    options = parse(arguments)
    if options.summarise:
        lines = options.summarise.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.startswith("{")]
    else:
        rows = []
        for row in results(options):
            rows.append(row)
            print(json.dumps(row, ensure_ascii=False), flush=True)
    for what, module in EXPERIMENTS.items():
        own = [row for row in rows if row["what"] == what]
        if own:
            print(f"\n{module.summary(own)}")


if __name__ == "__main__":
    main()
