"""`bilex benchmark tables`: results become the paper's tables."""

from __future__ import annotations

from pathlib import Path

import click

from bilex.cli.options import examples

_FORMATS = ("markdown", "latex", "csv")


@click.command(
    name="tables",
    epilog=examples(
        "bilex benchmark tables quick.sqlite",
        "bilex benchmark tables paper.sqlite -o tables",
        "bilex benchmark tables paper.sqlite --table main --table significance --format latex",
        "bilex benchmark tables paper.sqlite --table significance --baseline VecMap",
    ),
)
@click.argument("results", type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="A folder for one file per table; else to stdout.")
@click.option(
    "--format",
    "form",
    type=click.Choice([*_FORMATS, "all"]),
    help="markdown, latex, csv or all; by default markdown to stdout and all into a folder.",
)
@click.option(
    "--table",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only this table, or several: main, full, panlex, c2-over-others, lms, ablation, lambda, "
    "significance, leak-free, coverage, examples, cost, missing.",
)
@click.option("--baseline", metavar="LABEL", help="The method that others are tested against [default: C1].")
def command(
    results: str, output: str | None, form: str | None, names: tuple[str, ...], baseline: str | None
) -> None:
    """Write the paper's tables from a RESULTS file, with the paper's figures beside ours.

    Tables show what is there: pairs, seeds and methods that were not run are left out, and the last
    table says what is missing. With several data sets, each has its own tables.
    """
    import sys

    from bilex.core.errors import BilexError
    from bilex.core.files import write_text
    from bilex_bench.store import ResultsStore
    from bilex_bench.tables import TABLE_NAMES, build_tables

    with ResultsStore.open(results, create=False) as store:
        tables = build_tables(
            store.results(),
            predictions=lambda result: store.predictions(result.setup.key),
            names=names or TABLE_NAMES,
            baseline=baseline,
        )
    if not tables:
        raise BilexError(f"{results}: has no finished setups for such a table; run more of the grid first.")
    forms = _FORMATS if form == "all" or (form is None and output) else (form or "markdown",)
    if output is None:
        sys.stdout.write("\n".join(getattr(table, one)() for one in forms for table in tables))
        return
    endings = {"markdown": "md", "latex": "tex", "csv": "csv"}
    for table in tables:
        for one in forms:
            write_text(Path(output) / f"{table.name}.{endings[one]}", getattr(table, one)())
    sys.stderr.write(f"{len(tables)} tables in {output}: {', '.join(table.name for table in tables)}\n")
