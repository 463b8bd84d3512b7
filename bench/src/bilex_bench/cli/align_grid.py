"""`bilex align-grid`: a model for each of many language pairs, locally or on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bilex.cli import options as opt
from bilex.cli.console import show
from bilex.core.errors import BilexError
from bilex.core.tables import table
from bilex_bench.cli.execution import Execution

if TYPE_CHECKING:
    from bilex_bench.align_grid import ModelPlan, PairsFile

_SOME_FAILED = 1
_COLUMNS = ("pair", "seeds", "covered", "forward", "backward", "seconds", "state")


@opt.as_command(
    "bilex align-grid pairs.toml",
    "bilex align-grid pairs.toml --dry-run",
    "bilex align-grid pairs.toml --ray auto --ray-cpus 4",
)
def command(
    pairs: Annotated[str, {"metavar": "PAIRS.toml"}],
    *,
    output: str | None = None,
    execution: Execution,
    dry_run: bool = False,
) -> int:
    """Align many language pairs: PAIRS.toml names vectors, seeds and pairs; each pair becomes a model.

    FOLDER receives a model per pair (FOLDER/en-fi) and coverage.tsv. Stop it whenever you like: the same
    command continues where it was. A pair that fails is reported, and the rest continues; the exit code is 1
    then. docs/guide/many-languages.md describes the file.

    Options:
        -o, --output FOLDER: The folder of models.  [default: as PAIRS.toml says]
        --workers: Processes on this machine.  [default: by cores]
        --dry-run: Check all files, and show what is done and what is not.
    Cluster:
        --ray [ADDRESS]: Run on Ray: the cluster at ADDRESS, 'auto' for the one this machine is part of, or a
            fresh one on this machine. Needs bilex-bench[cluster]; see docs/reference/benchmark-cluster.md.
        --ray-cpus: Cores per pair; 4 by default.
        --ray-gpus FLOAT: GPUs per pair, such as 0.5, or 0; 1 by default, where there are GPUs.
        --ray-memory GB: Memory per pair.
    """
    from bilex_bench.align_grid import ModelPlan, PairsFile

    content = PairsFile.read(Path(pairs))
    if execution.ray is None:
        opt.check_device(content.device)
    folder = Path(output).absolute() if output else Path(content.output)
    work = folder / ".grid"
    plan = ModelPlan(
        folders={content.folder.name: content.folder},
        models=str(folder),
        work=str(work),
        cache=execution.cache(work),
        device=content.device,
        threads=execution.threads(content.device),
        keep_markers=False,
    )
    failed = {} if dry_run else _run(plan, content, execution)
    rows = _rows(plan, content, failed)
    show(table(_COLUMNS, rows, "Coverage, and the expected share of right first answers"))
    done, total = sum(row[-1] == "done" for row in rows), len(content.setups)
    show(f"{done} of {total} models are in {plan.models}; {len(failed)} failed in this run.")
    if 1 < total == done:
        show(f"Next: bilex join {plan.models}/* -o many    (one model of all languages)")
    return _SOME_FAILED if failed else 0


def _run(plan: ModelPlan, content: PairsFile, execution: Execution) -> dict[str, str]:
    """Make the models that do not exist, and the coverage table; the reasons of pairs that failed."""
    from bilex.core.files import check_writable, write_text
    from bilex.core.locks import exclusive_lock
    from bilex_bench.engine import run
    from bilex_bench.results import Result, families
    from bilex_bench.runner import View

    waiting = [setup for setup in content.setups if plan.finished(setup) is None]
    path, work = Path(plan.models) / "coverage.tsv", Path(plan.work)
    check_writable(path)
    if path.exists() and not work.exists():
        raise BilexError(f"{path}: was not made by this command; choose another folder with -o.")
    failed: dict[str, str] = {}
    try:
        with exclusive_lock(work / "run"), View(len(waiting)) as view:
            for job, event in run(execution.executor(plan), families(waiting)):
                if isinstance(event, Result) and event.status == "failed":
                    failed[event.setup.pair] = str(event.error)
                view.show(job, event)
    finally:
        lines = [_COLUMNS, *_rows(plan, content, failed)]
        write_text(path, "".join("\t".join(" ".join(c.split()) for c in line) + "\n" for line in lines))
    return failed


def _rows(plan: ModelPlan, content: PairsFile, failed: dict[str, str]) -> list[tuple[str, ...]]:
    """The coverage table, one row per pair."""
    rows: list[tuple[str, ...]] = []
    for setup in content.setups:
        made = plan.finished(setup)
        if made is None:
            rows.append((setup.pair, "", "", "", "", "", failed.get(setup.pair, "not made yet")))
            continue
        counts = str(made["seed_pairs"]), str(made["seed_pairs_covered"])
        expected = [made["expected"].get(side) for side in ("forward", "backward")]
        shares = ["" if share is None else f"{share:.1%}" for share in expected]
        rows.append((setup.pair, *counts, *shares, f"{made['seconds']:.0f}", "done"))
    return rows + [(pair, "0", "", "", "", "", "no seeds") for pair in content.without_seeds]
