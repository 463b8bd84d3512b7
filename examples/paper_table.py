"""A table of the paper, with its numbers beside ours, in a program (needs bilex-bench).

    python examples/paper_table.py DATA --pairs en-fi,en-fr --seeds 5k --methods RCSLS,C1 -o main.sqlite

DATA is a folder of XLING's dictionaries and of vectors (`bilex data get xling -o DATA`;
docs/reference/data.md). Setups that are in the results file already are not
run again, so a run that was stopped goes on.
The same from the shell: `bilex benchmark run paper-main` and `bilex benchmark tables`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bilex_bench.grid import Grid
from bilex_bench.local import LocalExecutor, threads_for
from bilex_bench.runner import check_data, run_setups
from bilex_bench.store import ResultsStore
from bilex_bench.tables import build_tables
from bilex_bench.work import WorkPlan

GRID = "paper-main"


def run(
    grid: Grid, results: Path, methods: Sequence[str] = (), *, workers: int = 1, threads: int | None = None
) -> int:
    """Run the setups of a grid that the results file does not have.

    Args:
        grid: What to run, with its data sets placed.
        results: The results file.
        methods: Labels of methods; none for all.
        workers: Processes that work side by side.
        threads: Threads of each; None for an equal share of the cores.

    Returns:
        How many setups failed; the table `missing` says why.
    """
    folders = grid.open_data()
    setups = [setup for setup in grid.setups(folders) if not methods or setup.label in methods]
    check_data(setups, folders)
    work = results.absolute().with_name(results.name + ".work")
    plan = WorkPlan(
        folders=folders,
        work=str(work),
        cache=str(work / "vectors"),
        device=grid.common.device,
        threads=threads or threads_for(workers),
    )
    with ResultsStore.open(results) as store, store.claim():
        return run_setups(setups, LocalExecutor(plan, workers), store, workers=workers).failed


def tables(results: Path, names: Sequence[str] = ("main",)) -> str:
    """Tables of a results file as Markdown; reported numbers stand in parentheses.

    Args:
        results: The results file.
        names: Which tables, as in `bilex benchmark tables --table`.
    """
    with ResultsStore.open(results, create=False) as store:
        found = build_tables(
            store.results(), predictions=lambda result: store.predictions(result.setup.key), names=names
        )
    return "\n".join(table.markdown() for table in found)


def main() -> None:
    """The command line of this example."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", help="a folder of dictionaries and vectors")
    parser.add_argument("--pairs", default="", help="such as en-fi,en-fr; all unless given")
    parser.add_argument("--seeds", default="", help="such as 5k,1k; both unless given")
    parser.add_argument("--methods", default="", help="labels of the grid, such as RCSLS,C1; else all")
    parser.add_argument("--lm", default="none", help="the language model of C2")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the results file")
    given = parser.parse_args()
    pairs, seeds, methods = (
        [part for part in text.split(",") if part] for text in (given.pairs, given.seeds, given.methods)
    )
    grid = Grid.read(GRID).choosing(data=[given.data], pairs=pairs, seeds=seeds, lm=given.lm)
    failed = run(grid, given.output, methods)
    print(tables(given.output, ("main", "missing") if failed else ("main",)))


if __name__ == "__main__":
    main()
