"""`bilex benchmark`: run grids of setups; tables, plots and a report of the results."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from bilex.cli import options as opt
from bilex.cli.console import note, progress, show, warn
from bilex.cli.group import LazyCommands
from bilex.core.errors import BilexError, nearest_name
from bilex.core.files import atomic_file, check_not_an_input, check_writable, write_text
from bilex.core.progress import duration
from bilex.core.tables import table
from bilex_bench.cli.execution import Execution

if TYPE_CHECKING:
    from bilex_bench.results import Setup

_SOME_FAILED = 1
_LISTED_PAIRS = 3
_FORMATS = {"markdown": "md", "latex": "tex", "csv": "csv"}
_FIGURES = ("heat-map", "lambda", "frequency", "time", "tsne")


# \b makes click leave the lines of a paragraph as they are.
_HELP = """Run a grid of setups, and make the paper's tables and plots from it.

\b
Examples:
  bilex benchmark run quick -o quick.sqlite
  bilex benchmark report quick.sqlite -o quick.html
"""
_SUMMARIES = {
    "grids": "List the ready grids, or write one out to edit.",
    "run": "Run every setup of a grid; what is finished is never repeated.",
    "merge": "Bring several results files together.",
    "tables": "Write the paper's tables with our results beside the reported ones.",
    "figures": "Draw λ curves, t-SNE, heat map, frequency and time against accuracy.",
    "report": "Write one HTML page with all tables and plots.",
}
command = LazyCommands(
    name="benchmark",
    summaries=_SUMMARIES,
    modules="bilex_bench.cli.benchmark.",
    homes={name: name for name in _SUMMARIES},
    help=_HELP,
    epilog="'bilex benchmark COMMAND --help' shows examples.",
)
Results = Annotated[str, {"type": click.Path()}]


@opt.as_command(
    "bilex benchmark grids",
    "bilex benchmark grids paper-main",
    "bilex benchmark grids shared-data -o my-grid.toml",
)
def grids(
    name: Annotated[str | None, {"type": str}] = None, *, output: str | None = None, json: bool = False
) -> None:
    """List the ready grids, or show the one called NAME as TOML.

    Options:
        -o, --output FILE: Write the grid there, to be edited and run.
        --json
    """
    from bilex_bench.grid import ready_grids, ready_text

    if name is None and output is not None:
        raise BilexError(f"-o {output}: name the grid to write, such as 'bilex benchmark grids quick'.")
    if name is None and json:
        opt.write_json_line(ready_grids(), indent=2)
    elif name is None:
        show(table(("grid", "what it is for"), ready_grids().items()))
    elif output is None:
        sys.stdout.write(ready_text(name))
    else:
        text = ready_text(name)
        if Path(output).exists():
            raise BilexError(f"{output}: exists already; choose another name or remove it first.")
        write_text(output, text)
        show(f"Wrote {output}. Next: bilex benchmark run {shlex.quote(output)} --dry-run")


@opt.as_command(
    "bilex benchmark run quick -o quick.sqlite",
    "bilex benchmark run paper-main --data xling=DATA -o main.sqlite --dry-run",
    "bilex benchmark run shared-data --data xling=DATA -o results.sqlite --lm e5-small-q4 --workers 3",
    "bilex benchmark run my-grid.toml --pairs en-fi,en-fr --seeds 5k --methods C1,RCSLS",
    "bilex benchmark run paper-main --data xling=DATA --ray auto --ray-gpus 0.5",
)
def run(
    grid: Annotated[str, {"type": str}],
    *,
    output: str | None = None,
    data: tuple[str, ...] = (),
    lm: str | None = None,
    pairs: str | None = None,
    seeds: str | None = None,
    methods: str | None = None,
    limit: opt.PositiveOrNone = None,
    device: str | None = None,
    work: str | None = None,
    cache: str | None = None,
    retry_failed: bool = False,
    dry_run: bool = False,
    execution: Execution,
) -> int:
    """Run every setup of a grid, and keep each result in RESULTS as soon as it is there.

    GRID is the name of a ready grid ('bilex benchmark grids' lists them) or a TOML file.

    Stop it whenever you like, with Ctrl-C or by switching the machine off: the same command continues
    where it was. Setups that are done are never run again; a fit, a tuned model or an encoding that several
    setups need is made once and kept in the work folder, which may be removed when all is done. A setup
    that fails is recorded with its reason and the rest continues; the exit code is 1 then. A family of setups
    whose worker dies or runs out of memory is tried once more, alone, and then given up.

    Options:
        -o, --output RESULTS: The results file, added to if it is there; GRID.sqlite unless named.
        --data NAME=FOLDER: The folder of a data set of the grid; may be given several times. FOLDER alone if
            the grid has one.
        --retry-failed: Try setups again that failed earlier.
        --dry-run: Show what would run, how long and in how much memory; run nothing.
    Part of the grid:
        --pairs XX-YY,...: Only these language pairs.
        --seeds NAME,...: Only these seed dictionaries, such as 5k,1k; 0 for none.
        --methods LABEL,...: Only setups with these labels; a method's name stands for all its setups.
        --limit: Read only this many words per language.
        --lm NAME: Use this language model instead of the grid's.
    Machine:
        --device auto|cpu|cuda: Where to compute; the grid's own unless named, mostly auto.
        --workers: Processes that share the cores. By default 1 with a GPU, otherwise 1 for every 4 cores and
            6 GB.
        --work FOLDER: Fits, tuned models and encodings are kept here and never made twice; RESULTS.work
            unless named.
        --cache FOLDER: Vector files in a format that opens at once, on each machine; RESULTS.work/vectors,
            with --ray a temporary folder.
    Cluster:
        --ray [ADDRESS]: Run on Ray: the cluster at ADDRESS, 'auto' for the one this machine is part of, or a
            fresh one on this machine. Needs bilex-bench[cluster]; see docs/reference/benchmark-cluster.md.
        --ray-cpus: Cores per family; 4 by default.
        --ray-gpus FLOAT: GPUs per family, such as 0.5, or 0; 1 by default, where there are GPUs.
        --ray-memory GB: Memory per family; as estimated by default.
    """
    from bilex_bench.grid import Grid
    from bilex_bench.runner import check_data, run_setups
    from bilex_bench.store import ResultsStore
    from bilex_bench.work import WorkPlan

    if execution.ray is not None:  # workers of Ray run in other folders, so that paths must be absolute
        grid = str(Path(grid).absolute()) if Path(grid).is_file() else grid
        named = (text.rpartition("=") for text in data)
        data = tuple(f"{name}{equals}{Path(path).expanduser().absolute()}" for name, equals, path in named)
    chosen = Grid.read(grid).choosing(
        data=data, lm=lm, pairs=_names(pairs), seeds=_names(seeds), limit=limit, device=device
    )
    if execution.ray is None:
        opt.check_device(chosen.common.device)
    folders = chosen.open_data()
    setups = _with_labels(chosen.setups(folders), _names(methods))
    check_data(setups, folders)
    results = Path(output or f"{chosen.name}.sqlite")
    if dry_run:
        _show_plan(setups, results, execution, chosen.common.device, retry_failed)
        return 0
    folder = Path(work or f"{results}.work").absolute()
    plan = WorkPlan(
        folders=folders,
        work=str(folder),
        cache=str(Path(cache).absolute()) if cache else execution.cache(folder),
        device=chosen.common.device,
        threads=execution.threads(chosen.common.device),
        sampled=chosen.sampled(folders),
        command=opt.command_line(),
    )
    with ResultsStore.open(results) as store, store.claim():
        outcome = run_setups(
            setups,
            execution.executor(plan),
            store,
            workers=execution.at_a_time(plan.device),
            on_gpu=execution.on_gpu(plan.device),
            retry_failed=retry_failed,
        )
        keys = {setup.key for setup in setups}
        done, failed = len(keys & store.keys("done")), len(keys & store.keys("failed"))
    already = f"; {outcome.skipped} were there already" if outcome.skipped else ""
    ran = outcome.done + outcome.failed
    show(f"{ran} setups were run{already}; {done} of {len(keys)} are done in {results}.")
    if failed:
        show(f"{failed} failed; --retry-failed tries them again, the report says why.")
    show(f"Next: bilex benchmark report {shlex.quote(str(results))} -o report.html")
    return _SOME_FAILED if failed else 0


def _names(text: str | None) -> tuple[str, ...]:
    """The parts of 'a,b'."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _with_labels(setups: list[Setup], wanted: Sequence[str]) -> list[Setup]:
    """The setups with these labels or methods; all if none is given."""
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


def _show_plan(
    setups: list[Setup], results: Path, execution: Execution, device: str, retry_failed: bool
) -> None:
    """Show what would run, how long and in how much memory, without writing anything."""
    from bilex_bench.results import grouped
    from bilex_bench.runner import combined, estimate, todo
    from bilex_bench.store import ResultsStore

    with ResultsStore.open(results, create=False) if results.exists() else nullcontext() as store:
        waiting = todo(setups, store, retry_failed=retry_failed)
        estimates = estimate(waiting, store, on_gpu=execution.on_gpu(device))
    families = combined(estimates, lambda setup: setup.family)
    by_label = combined(estimates, lambda setup: setup.label or setup.method)
    rows = []  # one for each label, in the order of the grid
    for label, labelled in grouped(waiting, lambda setup: setup.label or setup.method).items():
        pairs = list(dict.fromkeys(setup.pair for setup in labelled))
        time, memory = by_label[label]
        rows.append(
            (
                label,
                ", ".join(pairs) if len(pairs) <= _LISTED_PAIRS else f"{len(pairs)} pairs",
                ", ".join(dict.fromkeys(setup.seeds for setup in labelled)),
                ", ".join(dict.fromkeys(setup.lm or "" for setup in labelled)),
                str(len(labelled)),
                "not measured" if time is None else duration(time),
                "not measured" if memory is None else f"{memory:.1f} GB",
            )
        )
    if waiting:
        headings = ("setup", "pairs", "seeds", "language model", "setups", "time", "memory")
        show(table(headings, rows, left=4))
    total = len({setup.key for setup in setups})
    show(
        f"{len(waiting)} setups in {len(families)} families would run, "
        f"{total - len(waiting)} of {total} need no run."
    )
    if waiting and execution.ray is None:
        at_a_time = max(1, min(execution.at_a_time(device), len(families)))
        seconds = [time for time, _ in families.values() if time is not None]
        gigabytes = [memory for _, memory in families.values() if memory is not None]
        parts = [f"About {duration(max([sum(seconds) / at_a_time, *seconds]))}"] if seconds else []
        parts += [f"up to {max(gigabytes):.1f} GB each"] if gigabytes else []
        parts += [f"{at_a_time} at a time with {execution.threads(device)} threads each"]
        unknown = len(families) - len(seconds)
        never = f" {unknown} families were never measured here and are not counted." if unknown else ""
        show(f"{', '.join(parts)}.{never}")


@opt.as_command(
    "bilex benchmark merge all.sqlite laptop.sqlite cluster.sqlite",
    "bilex benchmark merge all.sqlite more.sqlite --json",
)
def merge(
    output: Annotated[str, {"metavar": "OUT", "type": click.Path()}],
    others: Annotated[tuple[str, ...], {"metavar": "RESULTS..."}],
    *,
    json: bool = False,
) -> None:
    """Add what the files RESULTS have to the results file OUT, which is made if it is not there.

    A setup that is done in OUT stays as it is; one that failed there is replaced by a result that did not.
    The files RESULTS stay as they are. Each of them is merged completely or not at all.
    """
    from bilex_bench.store import ResultsStore

    for path in others:  # all are checked before OUT is made or changed
        ResultsStore.open(path, create=False).close()
    with ResultsStore.open(output) as store, store.claim():
        reports = {path: store.merge(path) for path in others}
        total = len(store.keys(None))
    if json:
        files = {path: asdict(report) for path, report in reports.items()}
        opt.write_json_line({"setups": total, "files": files}, indent=2)
        return
    for path, report in reports.items():
        show(
            f"{path}: {report.added} setups added, {report.replaced} replaced failed ones, "
            f"{report.already} were there already."
        )
        if report.differing:
            warn(
                f"{path}: {report.differing} setups are done in both files with different metrics; those of "
                f"{output} stay."
            )
    show(f"{output} has {total} setups.")


@opt.as_command(
    "bilex benchmark tables quick.sqlite",
    "bilex benchmark tables paper.sqlite -o tables",
    "bilex benchmark tables paper.sqlite --table main --table significance --format latex",
    "bilex benchmark tables paper.sqlite --table significance --baseline VecMap",
)
def tables(
    results: Results,
    *,
    output: str | None = None,
    format: Literal["markdown", "latex", "csv", "all"] | None = None,
    table_: tuple[str, ...] = (),
    baseline: str | None = None,
) -> None:
    """Write the paper's tables from a RESULTS file, with the paper's results beside ours.

    Tables show what is there: pairs, seeds and methods that were not run are left out, and the last
    table says what is missing. With several data sets, each has its own tables.

    Options:
        -o, --output FOLDER: A folder for one file per table; else to stdout.
        --format: markdown, latex, csv or all; by default markdown to stdout and all into a folder.
        --table NAME: Only this table, or several: main, full, panlex, c2-over-others, lms, ablation, lambda,
            significance, leak-free, coverage, examples, cost, missing.
        --baseline LABEL: The method that others are tested against [default: C1].
    """
    from bilex_bench.store import ResultsStore
    from bilex_bench.tables import TABLE_NAMES, build_tables

    with ResultsStore.open(results, create=False) as store:
        built = build_tables(
            store.results(),
            predictions=lambda result: store.predictions(result.setup.key),
            names=table_ or TABLE_NAMES,
            baseline=baseline,
        )
    if not built:
        raise BilexError(f"{results}: has no finished setups for such a table; run more of the grid first.")
    formats = _FORMATS if format == "all" or (format is None and output) else (format or "markdown",)
    if output is None:
        sys.stdout.write("\n".join(getattr(one, name)() for name in formats for one in built))
        return
    for one in built:
        for name in formats:
            write_text(Path(output) / f"{one.name}.{_FORMATS[name]}", getattr(one, name)())
    note(f"{len(built)} tables in {output}: {', '.join(one.name for one in built)}")


@opt.as_command(
    "bilex benchmark figures results.sqlite -o figures",
    "bilex benchmark figures results.sqlite -o figures --figure lambda --figure tsne --format svg",
)
def figures(
    results: Results,
    *,
    output: str,
    figure: Annotated[tuple[str, ...], {"type": click.Choice(_FIGURES)}] = (),
    format: Literal["png", "svg", "both"] = "both",
) -> None:
    """Draw the plots that RESULTS allow, each into its own files.

    heat-map: P@1 of every direction by every method. lambda: P@1 against the weight of the language
    model. frequency: P@1 by how frequent a word is. time: accuracy against time. tsne: test words of
    both languages in the plane, before and after. The same results give the same bytes. Needs
    bilex-bench[report].

    Options:
        -o, --output FOLDER: Where the files go.
        --figure: Draw these only; may be given several times.
        --format: Points for slides, lines for print, or both.
    """
    from bilex_bench.figures import draw_figures
    from bilex_bench.store import ResultsStore

    wanted = figure or _FIGURES
    with ResultsStore.open(results, create=False) as store:
        found = store.results(samples="tsne" in wanted)
    drawings = draw_figures(found, wanted, progress=progress())
    if not drawings:
        raise BilexError(f"{results}: holds nothing that {' or '.join(wanted)} could show.")
    for kind in wanted:
        if not any(drawing.kind == kind for drawing in drawings):
            warn(f"{results}: holds nothing that {kind} could show.")
    for drawing in drawings:
        for ending in ("png", "svg") if format == "both" else (format,):
            path = Path(output) / f"{drawing.name}.{ending}"
            with atomic_file(path) as temporary:
                content = drawing.svg().encode() if ending == "svg" else drawing.png()
                temporary.write_bytes(content)
            show(f"{path}: {drawing.title}")


@opt.as_command(
    "bilex benchmark report results.sqlite -o report.html",
    "bilex benchmark run quick -o quick.sqlite && bilex benchmark report quick.sqlite -o quick.html",
)
def report(results: Results, *, output: str, words: bool = True) -> None:
    """Write RESULTS as one HTML page: tables that sort, plots, machines, commands, failures.

    The page holds all it needs and loads nothing; it can be mailed, archived and printed. Needs
    bilex-bench[report].

    Options:
        -o, --output PAGE: The HTML file to write.
        --words/--no-words: Whether words of the test dictionary appear, as examples and on hovering; leave
            them out where the dictionary may not be passed on.
    """
    if Path(output).is_dir():
        raise BilexError(
            f"{output}: is a folder; name the page to write in it, such as {output}/report.html."
        )
    from bilex_bench.report import report_page
    from bilex_bench.store import ResultsStore

    check_not_an_input(output, results)
    check_writable(output)
    with ResultsStore.open(results, create=False) as store:
        page = report_page(
            store.results(samples=True),
            file_name=Path(results).name,
            page_name=Path(output).name,
            predictions=lambda result: store.predictions(result.setup.key),
            words=words,
            progress=progress(),
        )
    write_text(output, page)
    show(f"{output}: {len(page.encode()) / 1e6:.1f} MB")
