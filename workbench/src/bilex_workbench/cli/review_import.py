"""`bilex review import`: verdicts of a filled-in sheet."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bilex.cli.options import examples
from bilex.core.errors import BilexError
from bilex_workbench.cli.review_file import opened


@click.command(
    epilog=examples(
        "bilex review import en-fi filled-in.csv --reviewer aino",
        "bilex review import en-fi filled-in.csv --reviewer aino --dry-run",
    )
)
@click.argument("model", type=click.Path())
@click.argument("sheet", type=click.Path())
@click.option("--reviewer", required=True, help="Who filled it in.")
@click.option("--dry-run", is_flag=True, help="Only count; nothing is kept.")
def command(model: str, sheet: str, reviewer: str, dry_run: bool) -> None:
    """Take over the verdicts of a SHEET: CSV with the columns source, target and verdict (yes or no)."""
    from bilex_workbench.importing import import_sheet

    try:
        text = Path(sheet).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BilexError(f"{sheet}: cannot be read as UTF-8 text ({error}).") from error
    with opened(model) as store:
        try:
            found = import_sheet(store, text, reviewer.strip(), dry_run=dry_run)
        except BilexError as error:
            raise BilexError(f"{sheet}: {error}") from error
    would = "Would take" if dry_run else "Took"
    sys.stderr.write(
        f"{would} over {found.accepted + found.rejected:,} words: {found.accepted:,} accepted, "
        f"{found.rejected:,} rejected; {found.unchanged:,} were known, {found.ignored:,} rows are blank.\n"
    )
    for problem in found.problems:
        sys.stderr.write(f"{sheet}: {problem}\n")
