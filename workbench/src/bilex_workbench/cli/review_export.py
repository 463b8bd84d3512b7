"""`bilex review export`: a dictionary, the change log, or a sheet."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bilex.cli.options import examples, limit_option
from bilex_workbench.cli.review_file import opened


@click.command(
    epilog=examples(
        "bilex review export en-fi -o confirmed.tsv",
        "bilex review export en-fi --which confident --min-confidence 0.8 -o dictionary.csv",
        "bilex review export en-fi --what changes -o changes.csv",
        "bilex review export en-fi --what sheet --status unreviewed --limit 500 -o to-review.csv",
    )
)
@click.argument("model", type=click.Path())
@click.option(
    "--what",
    type=click.Choice(["dictionary", "changes", "sheet"]),
    default="dictionary",
    show_default=True,
    help="The dictionary, who decided what and when, or a sheet that people fill in.",
)
@click.option(
    "--which",
    type=click.Choice(["confirmed", "confident", "all"]),
    default="confirmed",
    show_default=True,
    help="Of the dictionary: accepted pairs; those and sure ones; or all but rejected ones.",
)
@click.option("--min-confidence", type=click.FloatRange(0, 1), help="The least confidence of sure pairs.")
@click.option("--without", default="", help="Kinds to leave out, for example name,function,number.")
@click.option(
    "--by",
    type=click.Choice(["lemma", "form"]),
    default="lemma",
    show_default=True,
    help="One entry per headword, or one per word form.",
)
@click.option("--title", default="", help="For a site or linked data: the title of the dictionary.")
@click.option("--authors", default="", help="For a site or linked data: who made it.")
@click.option("--licence", default="", help="For a site or linked data: its licence.")
@click.option("--status", default="", help="Of the sheet: only entries of these statuses.")
@limit_option("Of the sheet: so many entries of the queue.")
@click.option(
    "--format", "form", help="As of 'bilex lexicon'.  [default: what the file's name says, else csv]"
)
@click.option("-o", "--output", metavar="FILE", help="The file to write; stdout if it is left out.")
def command(
    model: str,
    what: str,
    which: str,
    min_confidence: float | None,
    without: str,
    by: str,
    title: str,
    authors: str,
    licence: str,
    status: str,
    limit: int | None,
    form: str | None,
    output: str | None,
) -> None:
    """Export what was reviewed of MODEL's dictionary."""
    from bilex.core.files import atomic_file, check_writable
    from bilex.model.storage import read_provenance
    from bilex_workbench import publishing
    from bilex_workbench.entries import Filter
    from bilex_workbench.site import Cover

    if output is not None:
        check_writable(output)
    chosen = form or (_format_of(output, what) if output else None)
    languages = read_provenance(Path(model)).languages
    with opened(model) as store:
        if what == "sheet":
            content = publishing.sheet(store, Filter(status=status), limit).encode()
        elif what == "changes":
            content = publishing.change_log(store, chosen or "csv").encode()
        else:
            choice = publishing.Choice(which, min_confidence, without, by)
            cover = Cover(title, authors, licence)
            content = publishing.export(store, chosen or "csv", choice, languages, cover).content
    if output is None:
        sys.stdout.buffer.write(content)
        return
    with atomic_file(output) as temporary:
        temporary.write_bytes(content)


def _format_of(output: str, what: str) -> str:
    """The format that a file's name says."""
    if what != "dictionary":
        return Path(output).suffix.lower().removeprefix(".") or "csv"
    from bilex.lexicon.formats import format_of

    return format_of(output).name
