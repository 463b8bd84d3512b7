"""`bilex align-grid`: a model for each of many language pairs, here or on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bilex.cli.options import check_device, examples
from bilex.core.errors import BilexError
from bilex_bench.cli.execution import Execution, ray_options

if TYPE_CHECKING:
    from bilex_bench.align_grid import ModelPlan, PairsFile

_SOME_FAILED = 1
_COLUMNS = ("pair", "seeds", "covered", "forward", "backward", "seconds", "state")


@click.command(
    epilog=examples(
        "bilex align-grid pairs.toml",
        "bilex align-grid pairs.toml --dry-run",
        "bilex align-grid pairs.toml --ray auto --ray-cpus 4",
    )
)
@click.argument("pairs", metavar="PAIRS.toml", type=click.Path())
@click.option("-o", "--output", metavar="FOLDER", help="The folder of models.  [default: as PAIRS.toml says]")
@click.option("--workers", type=click.IntRange(min=1), help="Processes on this machine.  [default: by cores]")
@ray_options("pair")
@click.option("--dry-run", is_flag=True, help="Check all files, and show what is done and what is not.")
def command(
    pairs: str,
    output: str | None,
    workers: int | None,
    ray: str | None,
    cpus: int | None,
    gpus: float | None,
    dry_run: bool,
) -> int:
    """Align many language pairs: PAIRS.toml names vectors, seeds and pairs; each pair becomes a model.

    FOLDER receives a model per pair (FOLDER/en-fi) and coverage.tsv. Stop it whenever you like: the same
    command goes on where it was. A pair that fails is reported, and the rest goes on; the exit code is 1
    then. docs/guide/many-languages.md describes the file.
    """
    from bilex_bench.align_grid import ModelPlan, PairsFile

    asked = PairsFile.read(Path(pairs))
    if ray is None:
        check_device(asked.device)
    folder = Path(output).absolute() if output else Path(asked.output)
    work = folder / ".grid"
    execution = Execution(asked.device, workers, ray, cpus, gpus)
    plan = ModelPlan(
        folders={asked.folder.name: asked.folder},
        models=str(folder),
        work=str(work),
        cache=execution.cache(work),
        device=asked.device,
        threads=execution.threads,
        keep_markers=False,
    )
    failed = {} if dry_run else _run(plan, asked, execution)
    _show(plan, asked, failed)
    return _SOME_FAILED if failed else 0


def _run(plan: ModelPlan, asked: PairsFile, execution: Execution) -> dict[str, str]:
    """Make the models that are not there, and the coverage table; why pairs failed."""
    from bilex.core.files import check_writable, write_text
    from bilex.core.locks import exclusive_lock
    from bilex_bench.engine import run
    from bilex_bench.live import View
    from bilex_bench.results import Result, families

    waiting = [setup for setup in asked.setups if plan.finished(setup) is None]
    table, work = Path(plan.models) / "coverage.tsv", Path(plan.work)
    check_writable(table)
    if table.exists() and not work.exists():
        raise BilexError(f"{table}: was not made by this command; choose another folder with -o.")
    failed: dict[str, str] = {}
    try:
        with exclusive_lock(work / "run"), View(len(waiting)) as view:
            for job, event in run(execution.executor(plan), families(waiting)):
                if isinstance(event, Result) and event.status == "failed":
                    failed[event.setup.pair] = str(event.error)
                view.show(job, event)
    finally:
        lines = [_COLUMNS, *_rows(plan, asked, failed)]
        write_text(table, "".join("\t".join(" ".join(c.split()) for c in line) + "\n" for line in lines))
    return failed


def _rows(plan: ModelPlan, asked: PairsFile, failed: dict[str, str]) -> list[tuple[str, ...]]:
    """The coverage table, one row per pair."""
    rows: list[tuple[str, ...]] = []
    for setup in asked.setups:
        made = plan.finished(setup)
        if made is None:
            rows.append((setup.pair, "", "", "", "", "", failed.get(setup.pair, "not made yet")))
            continue
        counts = str(made["seed_pairs"]), str(made["seed_pairs_covered"])
        expected = [made["expected"].get(side) for side in ("forward", "backward")]
        shares = ["" if share is None else f"{share:.1%}" for share in expected]
        rows.append((setup.pair, *counts, *shares, f"{made['seconds']:.0f}", "done"))
    return rows + [(pair, "0", "", "", "", "", "no seeds") for pair in asked.without_seeds]


def _show(plan: ModelPlan, asked: PairsFile, failed: dict[str, str]) -> None:
    from rich.table import Table

    from bilex.cli.console import show

    rows = _rows(plan, asked, failed)
    table = Table(*_COLUMNS, title="Coverage, and the expected share of right first answers")
    for row in rows:
        table.add_row(*row)
    show(table)
    done = sum(row[-1] == "done" for row in rows)
    show(f"{done} of {len(asked.setups)} models are in {plan.models}; {len(failed)} failed in this run.")
    if len(asked.setups) > 1 and done == len(asked.setups):
        show(f"Next: bilex join {plan.models}/* -o many    (one model of all languages)")
