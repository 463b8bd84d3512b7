"""`bilex align-grid`: a model for each of many language pairs, here or on a Ray cluster."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilex.cli.options import check_device, examples
from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from bilex_bench.align_grid import ModelPlan, PairsFile

_HERE = "local"
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
@click.option(
    "--ray",
    is_flag=False,
    flag_value=_HERE,
    metavar="[ADDRESS]",
    help="Run on Ray: the cluster at ADDRESS, 'auto' for the one this machine is part of, or a fresh one "
    "on this machine. Needs bilex-bench[cluster].",
)
@click.option("--ray-cpus", "cpus", type=click.IntRange(min=1), help="Cores per pair.  [default: 4]")
@click.option("--ray-gpus", "gpus", type=float, help="GPUs per pair, such as 0.25, or 0.  [default: 1]")
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
    from bilex_bench.local import LocalExecutor, default_workers, threads_for

    asked = PairsFile.read(Path(pairs))
    if ray is None:
        check_device(asked.device)
    folder = Path(output).absolute() if output else Path(asked.output)
    on_gpu = _on_gpu(asked.device) if ray is None else False
    at_a_time = workers or default_workers(on_gpu=on_gpu)
    work = folder / ".grid"
    plan = ModelPlan(
        folders={asked.folder.name: asked.folder},
        models=str(folder),
        work=str(work),
        cache=str(Path(tempfile.gettempdir()) / "bilex-vectors" if ray else work / "vectors"),
        device=asked.device,
        threads=threads_for(at_a_time),
        keep_markers=False,
    )
    waiting = [setup for setup in asked.setups if plan.finished(setup) is None]
    failed: dict[str, str] = {}
    if not dry_run:
        from bilex.core.files import check_writable
        from bilex.core.locks import exclusive_lock
        from bilex_bench.engine import run
        from bilex_bench.live import View
        from bilex_bench.results import Result
        from bilex_bench.setups import families

        table = folder / "coverage.tsv"
        check_writable(table)
        if table.exists() and not work.exists():
            raise BilexError(f"{table}: was not made by this command; choose another folder with -o.")
        executor: Any = LocalExecutor(plan, at_a_time)
        if ray is not None:
            from bilex_bench.cluster import Needs, RayExecutor

            executor = RayExecutor(plan, ray, Needs(cpus=cpus, gpus=gpus))
        try:
            with exclusive_lock(work / "run"), View(len(waiting)) as view:
                for news in run(executor, families(waiting)):
                    if isinstance(news, Result) and news.status == "failed":
                        failed[news.setup.pair] = str(news.error)
                    view.show(news)
        finally:
            _write(plan, asked, failed)
    _show(plan, asked, failed, folder)
    return _SOME_FAILED if failed else 0


def _on_gpu(device: str) -> bool:
    from bilex.core.device import resolve_device

    return resolve_device(device).type == "cuda"


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


def _write(plan: ModelPlan, asked: PairsFile, failed: dict[str, str]) -> None:
    from bilex.core.files import write_text

    lines = [_COLUMNS, *_rows(plan, asked, failed)]
    text = "".join("\t".join(" ".join(cell.split()) for cell in line) + "\n" for line in lines)
    write_text(Path(plan.models) / "coverage.tsv", text)


def _show(plan: ModelPlan, asked: PairsFile, failed: dict[str, str], folder: Path) -> None:
    from rich.table import Table

    from bilex.cli.console import show

    rows = _rows(plan, asked, failed)
    table = Table(*_COLUMNS, title="Coverage, and the expected share of right first answers")
    for row in rows:
        table.add_row(*row)
    show(table)
    done = sum(row[-1] == "done" for row in rows)
    show(f"{done} of {len(asked.setups)} models are in {folder}; {len(failed)} failed in this run.")
    if len(asked.setups) > 1 and done == len(asked.setups):
        show(f"Next: bilex join {folder}/* -o many    (one model of all languages)")
