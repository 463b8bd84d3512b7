"""`bilex review agreement`: how far reviewers agree."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from bilex.cli.options import examples, json_option, write_json_line
from bilex.core.text import escape_control_characters
from bilex_workbench.cli.review_file import opened

if TYPE_CHECKING:
    from bilex_workbench.agreement import Alike


@click.command(epilog=examples("bilex review agreement en-fi"))
@click.argument("model", type=click.Path())
@json_option
def command(model: str, as_json: bool) -> None:
    """Show agreement on whether the model's first translation is right: shares and Cohen's kappa."""
    from bilex_workbench.agreement import agreement

    with opened(model) as store:
        found = agreement(store)
    if as_json:
        write_json_line(found.as_dict())
        return
    if not found.pairs:
        sys.stdout.write("No entry was decided by two people yet.\n")
        return
    for names, alike in found.pairs.items():
        sys.stdout.write(_line(escape_control_characters(" and ".join(names)), alike))
    sys.stdout.write(_line("all together", found.overall))


def _line(who: str, found: Alike) -> str:
    kappa = "undefined" if found.kappa is None else f"{found.kappa:.2f}"
    return f"{who}: {found.agreed:,} of {found.entries:,} alike ({found.share:.0%}), kappa {kappa}\n"
