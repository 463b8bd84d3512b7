"""`bilex review status`: how far the review is."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bilex.cli.options import examples, json_option, write_json_line
from bilex_workbench.cli.review_file import opened


@click.command(epilog=examples("bilex review status en-fi", "bilex review status en-fi --json"))
@click.argument("model", type=click.Path())
@json_option
def command(model: str, as_json: bool) -> None:
    """Show how far the review of MODEL's dictionary is, by status, frequency and person."""
    from bilex.model.storage import read_config
    from bilex_workbench.bands import frequency_bands
    from bilex_workbench.reviewing import status

    bands = frequency_bands(int(read_config(Path(model))["source_words"]))
    with opened(model) as store:
        found = status(store, bands)
    if as_json:
        write_json_line(found.as_dict())
        return
    lines = [f"{found.total:,} entries, {found.decisions:,} decisions, {found.twice:,} decided twice"]
    lines += [f"  {name:<13}{count:>10,}" for name, count in found.by_status.items()]
    lines += [f"  ranks {one.band:<16}{one.decided:>7,} of {one.total:,}" for one in found.by_band]
    lines += [f"  by {one.name:<19}{one.decisions:>7,}" for one in found.by_reviewer]
    sys.stdout.write("\n".join(lines) + "\n")
