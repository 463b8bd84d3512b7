"""`bilex benchmark run`: every setup of a grid, here or on a cluster."""

from __future__ import annotations

import difflib
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bilex.cli.options import check_device, examples
from bilex.errors import BilexError

if TYPE_CHECKING:
    from bilex.benchmark.listener import Engine
    from bilex.benchmark.runner import Outcome
    from bilex.benchmark.setups import Setup
    from bilex.benchmark.store import ResultsStore
    from bilex.benchmark.workplace import WorkPlan

_HERE = "local"
_SOME_FAILED = 1


@dataclass(frozen=True)
class _Wishes:
    """How to run, as the command line says."""

    results: Path
    work: Path
    cache: Path
    device: str
    workers: int | None
    ray: str | None
    cpus: int
    gpus: float | None
    gigabytes: float | None
    retry_failed: bool


@click.command(
    epilog=examples(
        "bilex benchmark run quick -o quick.sqlite",
        "bilex benchmark run paper-main --data xling=DATA -o main.sqlite --dry-run",
        "bilex benchmark run shared-data --data xling=DATA -o results.sqlite --lm e5-small-q4 --workers 3",
        "bilex benchmark run my-grid.toml --pairs en-fi,en-fr --seeds 5k --methods C1,RCSLS",
        "bilex benchmark run paper-main --data xling=DATA --ray auto --ray-gpus 0.5",
    )
)
@click.argument("grid", metavar="GRID")
@click.option(
    "-o",
    "--output",
    metavar="RESULTS",
    help="The results file, added to if it is there; GRID.sqlite unless named.",
)
@click.option(
    "--data",
    multiple=True,
    metavar="NAME=FOLDER",
    help="Where a data set of the grid lies; may be given several times. FOLDER alone if the grid has one.",
)
@click.option("--lm", metavar="NAME", help="This language model in the place of the grid's.")
@click.option("--pairs", metavar="XX-YY,...", help="Only these language pairs.")
@click.option("--seeds", metavar="NAME,...", help="Only these seed dictionaries, such as 5k,1k; 0 for none.")
@click.option("--methods", metavar="LABEL,...", help="Only setups with these labels or methods.")
@click.option("--limit", type=click.IntRange(min=1), help="So many words of each language.")
@click.option(
    "--device", metavar="auto|cpu|cuda", help="Where to compute; the grid's own unless named, mostly auto."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that share the cores. Unless told: 1 with a GPU, otherwise 1 for every 4 cores and 6 GB.",
)
@click.option(
    "--work",
    metavar="FOLDER",
    help="Fits, tuned models and encodings are kept here and never made twice; RESULTS.work unless named.",
)
@click.option(
    "--ray",
    is_flag=False,
    flag_value=_HERE,
    metavar="[ADDRESS]",
    help="Run on Ray: the cluster at ADDRESS, 'auto' for the one this machine is part of, or a fresh one "
    "on this machine. Needs bilex[cluster]; docs/benchmark-cluster.md tells how clusters are started.",
)
@click.option(
    "--ray-cpus", "cpus", type=click.IntRange(min=1), default=4, show_default=True, help="Cores a family."
)
@click.option("--ray-gpus", "gpus", type=float, help="GPUs a family, such as 0.5; 0 for CPUs alone.")
@click.option(
    "--ray-memory", "gigabytes", type=float, metavar="GB", help="Memory a family, for Ray to reserve."
)
@click.option(
    "--cache",
    metavar="FOLDER",
    help="Vector files in quick form, on each machine; RESULTS.work/vectors, with --ray a temporary folder.",
)
@click.option("--retry-failed", is_flag=True, help="Try setups again that failed earlier.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would run, how long and in how much memory; run nothing."
)
def command(
    grid: str,
    output: str | None,
    data: tuple[str, ...],
    lm: str | None,
    pairs: str | None,
    seeds: str | None,
    methods: str | None,
    limit: int | None,
    device: str | None,
    workers: int | None,
    work: str | None,
    ray: str | None,
    cpus: int,
    gpus: float | None,
    gigabytes: float | None,
    cache: str | None,
    retry_failed: bool,
    dry_run: bool,
) -> int:
    """Run every setup of a grid, and keep each result in RESULTS as soon as it is there.

    GRID is the name of a ready grid ('bilex benchmark grids' lists them) or a TOML file.

    Stop it whenever you like, with Ctrl-C or by switching the machine off: the same command goes on where
    it was. Setups that are done are never run again; a fit, a tuned model or an encoding that several
    setups need is made once and kept in the work folder, which may be removed when all is done. A setup
    that fails is recorded with its reason and the rest goes on; the exit code is 1 then. A family of setups
    whose worker dies or runs out of memory is tried once more, alone, and then given up.
    """
    from bilex.benchmark.grid import Grid

    chosen = Grid.read(grid).choosing(
        data=data, lm=lm, pairs=_names(pairs), seeds=_names(seeds), limit=limit, device=device
    )
    check_device(chosen.device)
    folders = chosen.open_data()
    setups = _of_methods(chosen.setups(folders), _names(methods))
    results = Path(output or f"{chosen.name}.sqlite")
    folder = Path(work or f"{results}.work")
    wishes = _Wishes(
        results,
        folder,
        Path(cache)
        if cache
        else Path(tempfile.gettempdir()) / "bilex-vectors"
        if ray
        else folder / "vectors",
        chosen.device,
        workers,
        ray,
        cpus,
        gpus,
        gigabytes,
        retry_failed,
    )
    from bilex.benchmark.runner import check_data

    check_data(setups, folders)
    from bilex.benchmark.workplace import WorkPlan

    plan = WorkPlan(
        folders=folders,
        work=str(wishes.work.resolve()),
        cache=str(wishes.cache.resolve()),
        device=chosen.device,
        threads=2,
        sampled=chosen.sampled(folders),
    )
    return _run(setups, wishes, plan)


def _names(text: str | None) -> tuple[str, ...]:
    """The parts of 'a,b'."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _of_methods(setups: list[Setup], wanted: Sequence[str]) -> list[Setup]:
    """The setups with the labels or methods that are wanted; all if none is named.

    Raises:
        BilexError: The grid has none of that name.
    """
    known = {name.lower() for setup in setups for name in (setup.label, setup.method)}
    for name in wanted:
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            labels = ", ".join(dict.fromkeys(setup.label for setup in setups))
            raise BilexError(f"--methods {name}: the grid has no such label; it has {labels}.{hint}")
    chosen = {name.lower() for name in wanted}
    return [s for s in setups if not chosen or s.label.lower() in chosen or s.method.lower() in chosen]


def _run(setups: list[Setup], wishes: _Wishes, plan: WorkPlan) -> int:
    from bilex.benchmark.live import view_for
    from bilex.benchmark.runner import in_order, run_setups, todo
    from bilex.benchmark.store import ResultsStore

    engine, workers = _engine(wishes)
    with ResultsStore.open(wishes.results) as store, store.claim():
        waiting = todo(setups, store, retry_failed=wishes.retry_failed)
        order = in_order(waiting, _costs(waiting), workers)
        view = view_for(len(waiting), workers)
        outcome = run_setups(setups, plan, store, engine, view, order=order)
        return _tell(outcome, setups, store, wishes)


def _costs(setups: list[Setup]) -> dict[str, float]:
    return {}


def _engine(wishes: _Wishes) -> tuple[Engine, int]:
    """Who does the work, and how many families at a time."""
    from bilex.benchmark.local import LocalEngine

    return LocalEngine(wishes.workers or 1), wishes.workers or 1


def _tell(outcome: Outcome, setups: list[Setup], store: ResultsStore, wishes: _Wishes) -> int:
    """What came of the run, and what to do next."""
    from bilex.cli.console import show

    asked = {setup.key for setup in setups}
    failed = asked & store.keys("failed")
    done = len(asked & store.keys("done"))
    again = f"; {outcome.skipped} were there already" if outcome.skipped else ""
    show(f"{outcome.done} of {len(asked)} setups were run and {done} are done in {store.path}{again}.")
    if failed:
        show(
            f"{len(failed)} failed; 'bilex benchmark report {store.path}' tells why, and --retry-failed tries "
            "them again."
        )
        return _SOME_FAILED
    show(f"Next: bilex benchmark report {store.path} -o report.html")
    return 0
