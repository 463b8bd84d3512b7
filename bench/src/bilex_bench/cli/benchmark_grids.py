"""`bilex benchmark grids`: the ready grids."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from bilex.cli.options import examples, json_option, write_json_line
from bilex.core.errors import BilexError


@click.command(
    epilog=examples(
        "bilex benchmark grids",
        "bilex benchmark grids paper-main",
        "bilex benchmark grids shared-data -o my-grid.toml",
    )
)
@click.argument("name", required=False)
@click.option("-o", "--output", metavar="FILE", help="Write the grid there, to be edited and run.")
@json_option
def command(name: str | None, output: str | None, as_json: bool) -> None:
    """List the ready grids, or show the one called NAME as TOML."""
    from bilex_bench.grid import ready_grids, ready_text

    if name is None:
        if output is not None:
            raise BilexError(f"-o {output}: name the grid to write, such as 'bilex benchmark grids quick'.")
        _list(ready_grids(), as_json)
        return
    text = ready_text(name)
    if output is None:
        sys.stdout.write(text)
        return
    from bilex.cli.console import show
    from bilex.core.files import write_text

    if Path(output).exists():
        raise BilexError(f"{output}: exists already; choose another name or remove it first.")
    write_text(output, text)
    show(f"Wrote {output}. Next: bilex benchmark run {shlex.quote(output)} --dry-run")


def _list(grids: dict[str, str], as_json: bool) -> None:
    if as_json:
        write_json_line(grids, indent=2)
        return
    from rich.table import Table

    from bilex.cli.console import show

    table = Table("grid", "what it is for")
    for grid, about in grids.items():
        table.add_row(grid, about)
    show(table)
