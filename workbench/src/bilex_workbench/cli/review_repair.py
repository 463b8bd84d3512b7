"""`bilex review repair`: rescue what can be read of a damaged review file."""

from __future__ import annotations

import sys

import click

from bilex.cli.options import examples


@click.command(epilog=examples("bilex review repair en-fi"))
@click.argument("model", type=click.Path())
def command(model: str) -> None:
    """Copy all readable decisions, notes and audits of MODEL's review file into a new one."""
    from bilex_workbench.repair import repair
    from bilex_workbench.schema import review_file

    rescued, kept = repair(review_file(model))
    counts = ", ".join(f"{count:,} {table}" for table, count in rescued.items() if table != "facts")
    sys.stderr.write(f"Rescued {counts}; the damaged file is now {kept}.\n")
