"""`bilex benchmark merge`: several results files become one."""

from __future__ import annotations

from dataclasses import asdict

import click

from bilex.cli.options import check_readable, examples, json_option, write_json_line


@click.command(
    epilog=examples(
        "bilex benchmark merge all.sqlite laptop.sqlite cluster.sqlite",
        "bilex benchmark merge all.sqlite more.sqlite --json",
    )
)
@click.argument("output", metavar="OUT")
@click.argument("others", metavar="RESULTS...", nargs=-1, required=True)
@json_option
def command(output: str, others: tuple[str, ...], as_json: bool) -> None:
    """Add what the files RESULTS have to the results file OUT, which is made if it is not there.

    A setup that is done in OUT stays as it is; one that failed there is replaced by a result that did not.
    The files RESULTS stay as they are. Each of them is taken over whole or not at all.
    """
    from bilex.cli.console import show, warn
    from bilex_bench.store import ResultsStore

    check_readable(*others)
    for path in others:  # all are looked at before OUT is made or changed
        ResultsStore.open(path, create=False).close()
    reports = {}
    with ResultsStore.open(output) as store, store.claim():
        for path in others:
            reports[path] = store.merge(path)
        total = len(store.keys(None))
    if as_json:
        write_json_line(
            {"setups": total, "files": {path: asdict(report) for path, report in reports.items()}}, indent=2
        )
        return
    for path, report in reports.items():
        show(
            f"{path}: {report.added} setups added, {report.replaced} in the place of failed ones, "
            f"{report.already} were there already."
        )
        if report.differing:
            warn(
                f"{path}: {report.differing} setups are done in both files with different figures; those of "
                f"{output} stay."
            )
    show(f"{output} has {total} setups.")
