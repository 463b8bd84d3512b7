"""`bilex review`: decisions about a model's dictionary, from the shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from bilex.cli.group import LazyCommands
from bilex.cli.options import examples, json_option, limit_option, write_json_line
from bilex.core.errors import BilexError
from bilex.core.text import escape_control_characters

if TYPE_CHECKING:
    from bilex_workbench.store import Store

# \b is how click leaves the lines of a paragraph as they are.
_HELP = """Decisions about the dictionary of a model: what 'bilex serve' keeps in MODEL.review.sqlite.

\b
Examples:
  bilex review status en-fi
  bilex review export en-fi --what sheet -o sheet.csv
  bilex review import en-fi sheet.csv
  bilex review agreement en-fi
  bilex review repair en-fi
"""
_SUMMARIES = {
    "export": "Write a dictionary, the change log, or a sheet to fill in.",
    "import": "Take over the verdicts of a filled-in sheet.",
    "status": "Show how far the review is.",
    "repair": "Rescue what can be read of a damaged review file.",
    "agreement": "Show how far reviewers agree (Cohen's kappa).",
}
_direction = click.option(
    "--direction",
    type=click.Choice(["forward", "backward"]),
    default="forward",
    show_default=True,
    help="The review of source words, or that of target words.",
)


@contextmanager
def _opened(model: str, direction: str) -> Iterator[Store]:
    """The review file of a model, which a server may have open as well."""
    from bilex.model.storage import read_config
    from bilex_workbench.schema import review_file
    from bilex_workbench.store import Store

    read_config(Path(model))
    path = review_file(model, direction)
    if not path.is_file():
        raise BilexError(f"{path}: is not there yet; run 'bilex serve {model}' once, which makes it.")
    store = Store(path)
    try:
        yield store
    finally:
        store.close()


@click.command(
    "export",
    epilog=examples(
        "bilex review export en-fi -o confirmed.tsv",
        "bilex review export en-fi --which confident --min-confidence 0.8 -o dictionary.csv",
        "bilex review export en-fi --what changes -o changes.csv",
        "bilex review export en-fi --what sheet --status unreviewed --limit 500 -o to-review.csv",
    ),
)
@click.argument("model", type=click.Path())
@_direction
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
def export(
    model: str,
    direction: str,
    what: str,
    which: Literal["confirmed", "confident", "all"],
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
    if direction == "backward":
        languages = languages[1], languages[0]
    with _opened(model, direction) as store:
        if what == "sheet":
            content = publishing.sheet(store, Filter(status=status), limit).encode()
        elif what == "changes":
            content = publishing.change_log(store, chosen or "csv").encode()
        else:
            choice = publishing.Choice(which, min_confidence, without, by)
            cover = Cover(title, authors, licence)
            content, _ = publishing.export(store, chosen or "csv", choice, languages, cover)
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


@click.command(
    "import",
    epilog=examples(
        "bilex review import en-fi filled-in.csv --reviewer aino",
        "bilex review import en-fi filled-in.csv --reviewer aino --dry-run",
    ),
)
@click.argument("model", type=click.Path())
@_direction
@click.argument("sheet", type=click.Path())
@click.option("--reviewer", required=True, help="Who filled it in.")
@click.option("--dry-run", is_flag=True, help="Only count; nothing is kept.")
def import_sheet_file(model: str, direction: str, sheet: str, reviewer: str, dry_run: bool) -> None:
    """Take over the verdicts of a SHEET: CSV with the columns source, target and verdict (yes or no)."""
    from bilex_workbench.importing import import_sheet

    try:
        text = Path(sheet).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BilexError(f"{sheet}: cannot be read as UTF-8 text ({error}).") from error
    with _opened(model, direction) as store:
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


@click.command("status", epilog=examples("bilex review status en-fi", "bilex review status en-fi --json"))
@click.argument("model", type=click.Path())
@_direction
@json_option
def show_status(model: str, direction: str, as_json: bool) -> None:
    """Show how far the review of MODEL's dictionary is, by status, frequency and person."""
    from bilex.model.storage import read_config
    from bilex_workbench.decisions import STATUSES
    from bilex_workbench.intervals import frequency_bands
    from bilex_workbench.reviewing import status

    side = "source" if direction == "forward" else "target"
    bands = frequency_bands(int(read_config(Path(model))[f"{side}_words"]))
    with _opened(model, direction) as store:
        found = status(store, bands)
    if as_json:
        write_json_line(found)
        return
    counts = (found["total"], found["decisions"], found["twice"])
    lines = ["{:,} entries, {:,} decisions, {:,} decided twice".format(*counts)]
    lines += [f"  {name:<13}{found[name]:>10,}" for name in STATUSES]
    lines += ["  ranks {band:<16}{decided:>7,} of {total:,}".format(**one) for one in found["by_band"]]
    lines += ["  by {name:<19}{decisions:>7,}".format(**one) for one in found["by_reviewer"]]
    sys.stdout.write("\n".join(lines) + "\n")


@click.command("repair", epilog=examples("bilex review repair en-fi"))
@click.argument("model", type=click.Path())
@_direction
def repair_file(model: str, direction: str) -> None:
    """Copy all readable decisions, notes and audits of MODEL's review file into a new one."""
    from bilex_workbench.repair import repair
    from bilex_workbench.schema import review_file

    rescued, kept = repair(review_file(model, direction))
    counts = ", ".join(f"{count:,} {table}" for table, count in rescued.items() if table != "facts")
    sys.stderr.write(f"Rescued {counts}; the damaged file is now {kept}.\n")


@click.command("agreement", epilog=examples("bilex review agreement en-fi"))
@click.argument("model", type=click.Path())
@_direction
@json_option
def show_agreement(model: str, direction: str, as_json: bool) -> None:
    """Show agreement on whether the model's first translation is right: shares and Cohen's kappa."""
    from bilex_workbench.reviewing import agreement

    with _opened(model, direction) as store:
        found = agreement(store)
    if as_json:
        write_json_line(found)
        return
    if not found["pairs"]:
        sys.stdout.write("No entry was decided by two people yet.\n")
        return
    everybody = {"reviewers": ("all together",), **found["overall"]}
    for one in (*found["pairs"], everybody):
        who = escape_control_characters(" and ".join(one["reviewers"]))
        kappa = "undefined" if one["kappa"] is None else f"{one['kappa']:.2f}"
        alike = "{agreed:,} of {entries:,} alike ({share:.0%})".format(**one)
        sys.stdout.write(f"{who}: {alike}, kappa {kappa}\n")


_COMMANDS = {one.name: one for one in (export, import_sheet_file, show_status, repair_file, show_agreement)}


class _Review(LazyCommands):
    """The commands of this module."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        return _COMMANDS.get(cmd_name)


command = _Review(
    name="review",
    summaries=_SUMMARIES,
    modules="",
    help=_HELP,
    epilog="'bilex review COMMAND --help' shows examples.",
)
