"""`bilex benchmark run`: every setup of a grid, here or on a cluster."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bilex.cli.options import check_device, command_line, examples
from bilex.core.errors import BilexError, nearest_name
from bilex.core.progress import duration
from bilex_bench.cli.execution import Execution, ray_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bilex_bench.datasets import DataFolder
    from bilex_bench.results import Setup
    from bilex_bench.runner import Estimate
    from bilex_bench.work import WorkPlan

_SOME_FAILED = 1
_LISTED_PAIRS = 3


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
@click.option(
    "--methods",
    metavar="LABEL,...",
    help="Only setups with these labels; a method's name stands for all its setups.",
)
@click.option("--limit", type=click.IntRange(min=1), help="So many words of each language.")
@click.option(
    "--device", metavar="auto|cpu|cuda", help="Where to compute; the grid's own unless named, mostly auto."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that share the cores. By default 1 with a GPU, otherwise 1 for every 4 cores and 6 GB.",
)
@click.option(
    "--work",
    metavar="FOLDER",
    help="Fits, tuned models and encodings are kept here and never made twice; RESULTS.work unless named.",
)
@ray_options("family")
@click.option(
    "--ray-memory", "gigabytes", type=float, metavar="GB", help="Memory per family; as estimated by default."
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
    cpus: int | None,
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
    from bilex_bench.grid import Grid
    from bilex_bench.runner import check_data
    from bilex_bench.work import WorkPlan

    if ray is not None:
        grid, data = _from_anywhere(grid, data)
    chosen = Grid.read(grid).choosing(
        data=data, lm=lm, pairs=_names(pairs), seeds=_names(seeds), limit=limit, device=device
    )
    if ray is None:
        check_device(chosen.common.device)
    folders = chosen.open_data()
    setups = _of_methods(chosen.setups(folders), _names(methods))
    check_data(setups, folders)
    results = Path(output or f"{chosen.name}.sqlite")
    execution = Execution(chosen.common.device, workers, ray, cpus, gpus, gigabytes)
    if dry_run:
        _show_plan(setups, folders, results, execution, retry_failed)
        return 0
    folder = Path(work or f"{results}.work").absolute()
    plan = WorkPlan(
        folders=folders,
        work=str(folder),
        cache=str(Path(cache).absolute()) if cache else execution.cache(folder),
        device=chosen.common.device,
        threads=execution.threads,
        sampled=chosen.sampled(folders),
        command=command_line(),
    )
    return _run(setups, plan, results, execution, retry_failed)


def _names(text: str | None) -> tuple[str, ...]:
    """The parts of 'a,b'."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _from_anywhere(grid: str, data: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The grid's file and the data folders by absolute paths, since workers of Ray run in other folders."""
    folders = []
    for text in data:
        name, equals, folder = text.rpartition("=")
        folders.append(f"{name}{equals}{Path(folder).expanduser().absolute()}")
    return str(Path(grid).absolute()) if Path(grid).is_file() else grid, tuple(folders)


def _of_methods(setups: list[Setup], wanted: Sequence[str]) -> list[Setup]:
    """The setups whose labels, or else whose methods, are wanted; all if none is named."""
    chosen: set[str] = set()
    for name in wanted:
        named = {setup.key for setup in setups if setup.label.lower() == name.lower()}
        named = named or {setup.key for setup in setups if setup.method == name.lower()}
        if not named:
            labels = list(dict.fromkeys(setup.label for setup in setups))
            raise BilexError(
                f"--methods {name}: the grid has no such label; it has {', '.join(labels)}."
                f"{nearest_name(name, labels)}"
            )
        chosen |= named
    return [setup for setup in setups if not wanted or setup.key in chosen]


def _run(setups: list[Setup], plan: WorkPlan, results: Path, execution: Execution, retry_failed: bool) -> int:
    """Run what is yet to be run, and report what came of it."""
    from bilex.cli.console import show
    from bilex_bench.runner import run_setups
    from bilex_bench.store import ResultsStore

    with ResultsStore.open(results) as store, store.claim():
        outcome = run_setups(
            setups,
            execution.executor(plan),
            store,
            workers=execution.at_a_time,
            on_gpu=execution.on_gpu,
            retry_failed=retry_failed,
        )
        asked = {setup.key for setup in setups}
        done, failed = len(asked & store.keys("done")), len(asked & store.keys("failed"))
    already = f"; {outcome.skipped} were there already" if outcome.skipped else ""
    ran = outcome.done + outcome.failed
    show(f"{ran} setups were run{already}; {done} of {len(asked)} are done in {results}.")
    if failed:
        show(f"{failed} failed; --retry-failed tries them again, the report says why.")
    show(f"Next: bilex benchmark report {shlex.quote(str(results))} -o report.html")
    return _SOME_FAILED if failed else 0


def _show_plan(
    setups: list[Setup],
    folders: Mapping[str, DataFolder],
    results: Path,
    execution: Execution,
    retry_failed: bool,
) -> None:
    """What would run, how long and in how much memory; nothing is written."""
    from bilex.cli.console import show
    from bilex_bench.runner import by_family, estimate, todo
    from bilex_bench.store import ResultsStore

    distinct = {setup.key: setup for setup in setups}
    with ResultsStore.open(results, create=False) if results.exists() else nullcontext() as store:
        waiting = todo(setups, store, retry_failed=retry_failed)
        estimates = estimate(waiting, folders, store, on_gpu=execution.on_gpu)
    if waiting:
        show(_plan_table(estimates))
    families = by_family(estimates)
    at_a_time = max(1, min(execution.at_a_time, len(families)))
    seconds = [time for time, _ in families.values() if time is not None]
    memory = [gigabytes for _, gigabytes in families.values() if gigabytes is not None]
    show(
        f"{len(waiting)} setups in {len(families)} families would run, "
        f"{len(distinct) - len(waiting)} of {len(distinct)} need no run."
    )
    if waiting and execution.ray is None:
        each = f"{at_a_time} at a time with {execution.threads} threads each"
        if seconds:
            each = f"about {duration(max([sum(seconds) / at_a_time, *seconds]))}, {each}"
        if memory:
            each += f" and up to {max(memory):.1f} GB"
        unknown = len(families) - len(seconds)
        never = f" {unknown} families were never measured here and are not counted." if unknown else ""
        show(f"{each[0].upper()}{each[1:]}.{never}")


def _plan_table(estimates: Sequence[Estimate]) -> RenderableType:
    """One row for each label, in the order of the grid."""
    from rich.table import Table

    from bilex_bench.runner import if_all

    def cell(value: float | None, shown: Callable[[float], str]) -> str:
        return "not measured" if value is None else shown(value)

    rows: dict[str, list[Estimate]] = {}
    for part in estimates:
        rows.setdefault(part.setup.label or part.setup.method, []).append(part)
    table = Table("setup", "pairs", "seeds", "language model", box=None, padding=(0, 2, 0, 0))
    for name in ("setups", "time", "memory"):
        table.add_column(name, justify="right")
    for label, parts in rows.items():
        shared = [part.setup for part in parts]
        pairs = dict.fromkeys(setup.pair for setup in shared)
        table.add_row(
            label,
            ", ".join(pairs) if len(pairs) <= _LISTED_PAIRS else f"{len(pairs)} pairs",
            ", ".join(dict.fromkeys(setup.seeds for setup in shared)),
            ", ".join(dict.fromkeys(setup.lm or "" for setup in shared)),
            str(len(parts)),
            cell(if_all([part.seconds for part in parts], sum), duration),
            cell(if_all([part.gigabytes for part in parts], max), "{:.1f} GB".format),
        )
    return table
