"""`bilex review`: decisions about a model's dictionary, from the shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from bilex.cli import options as opt
from bilex.cli.group import LazyCommands
from bilex.core.errors import BilexError
from bilex.core.text import escape_control_characters

if TYPE_CHECKING:
    from bilex_workbench.database import Database

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
command = LazyCommands(
    name="review",
    summaries={
        "export": "Write a dictionary, the change log, or a sheet to fill in.",
        "import": "Import the verdicts of a filled-in sheet.",
        "status": "Show the progress of the review.",
        "repair": "Rescue what can be read of a damaged review file.",
        "agreement": "Show the agreement of reviewers (Cohen's kappa).",
    },
    modules="bilex_workbench.cli.review.",
    homes={name: f"{name}_review" for name in ("export", "import", "status", "repair", "agreement")},
    help=_HELP,
    epilog="'bilex review COMMAND --help' shows examples.",
)
Direction = Literal["forward", "backward"]
Text = Annotated[str, {"show_default": False}]


@contextmanager
def _opened(model: str, direction: Direction) -> Iterator[Database]:
    """The review file of a model, which a server may have open as well."""
    from bilex.model.storage import StoredModel
    from bilex_workbench.database import Database, review_file

    StoredModel.open(model, many=False)
    path = review_file(model, direction)
    if not path.is_file():
        raise BilexError(f"{path}: is not there yet; run 'bilex serve {model}' once, which makes it.")
    with closing(Database(path)) as database:
        yield database


@opt.as_command(
    "bilex review export en-fi -o confirmed.tsv",
    "bilex review export en-fi --which confident --min-confidence 0.8 -o dictionary.csv",
    "bilex review export en-fi --what changes -o changes.csv",
    "bilex review export en-fi --what sheet --status unreviewed --limit 500 -o to-review.csv",
)
def export_review(
    model: str,
    *,
    direction: Direction = "forward",
    what: Literal["dictionary", "changes", "sheet"] = "dictionary",
    which: Literal["confirmed", "confident", "all"] = "confirmed",
    min_confidence: opt.Share = None,
    without: Text = "",
    by: Literal["lemma", "form"] = "lemma",
    title: Text = "",
    authors: Text = "",
    licence: Text = "",
    status: Text = "",
    limit: opt.PositiveOrNone = None,
    format: str | None = None,
    output: str | None = None,
) -> None:
    """Export what was reviewed of MODEL's dictionary.

    Input:
        --direction: The review of source words, or that of target words.
        --what: The dictionary, who decided what and when, or a sheet that people fill in.
    Dictionary:
        --which: Accepted pairs; those and confident ones; or all but rejected ones.
        --min-confidence: The least confidence of confident pairs.
        --without KINDS: Kinds to leave out, for example name,function,number.
        --by: One entry per headword, or one per word form.
        --title: For a site or linked data: the title of the dictionary.
        --authors: For a site or linked data: who made it.
        --licence: For a site or linked data: its licence.
    Sheet:
        --status: Only entries of these statuses.
        --limit: The number of entries, from the start of the queue.
    Output:
        --format NAME: As of 'bilex lexicon'.  [default: what the file's name says, else csv]
        -o, --output FILE: The file to write; stdout if it is left out.
    """
    from bilex.core.files import atomic_file, check_writable
    from bilex.lexicon.formats import format_of
    from bilex.model.storage import read_provenance
    from bilex_workbench import publish, sheets
    from bilex_workbench.entries import Filter
    from bilex_workbench.site import Cover

    if output is not None:
        check_writable(output)
        suffix = Path(output).suffix.lower().removeprefix(".")
        format = format or (format_of(output).name if what == "dictionary" else suffix)
    source, target = read_provenance(model).languages
    languages = (source, target) if direction == "forward" else (target, source)
    with _opened(model, direction) as database, database.reading() as db:
        if what == "sheet":
            content = sheets.sheet(db, Filter(status=status), limit).encode()
        elif what == "changes":
            content = sheets.change_log(db, format or "csv").encode()
        else:
            choice, cover = publish.Choice(which, min_confidence, without, by), Cover(title, authors, licence)
            content, _ = publish.export(db, format or "csv", choice, languages, cover)
    if output is None:
        sys.stdout.buffer.write(content)
        return
    with atomic_file(output) as temporary:
        temporary.write_bytes(content)


@opt.as_command(
    "bilex review import en-fi filled-in.csv --reviewer aino",
    "bilex review import en-fi filled-in.csv --reviewer aino --dry-run",
)
def import_review(
    model: str, sheet: str, *, direction: Direction = "forward", reviewer: str, dry_run: bool = False
) -> None:
    """Import the verdicts of a SHEET: CSV with the columns source, target and verdict (yes or no).

    Options:
        --direction: The review of source words, or that of target words.
        --reviewer: Who filled it in.
        --dry-run: Only count; nothing is stored.
    """
    from bilex_workbench.sheets import import_sheet

    try:
        text = Path(sheet).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BilexError(f"{sheet}: cannot be read as UTF-8 text ({error}).") from error
    with _opened(model, direction) as database:
        try:
            found = import_sheet(database, text, reviewer.strip(), dry_run=dry_run)
        except BilexError as error:
            raise BilexError(f"{sheet}: {error}") from error
    sys.stderr.write(
        f"{'Would import' if dry_run else 'Imported'} {found.accepted + found.rejected:,} words: "
        f"{found.accepted:,} accepted, {found.rejected:,} rejected; {found.unchanged:,} were known, "
        f"{found.ignored:,} rows are blank.\n"
    )
    for problem in found.problems:
        sys.stderr.write(f"{sheet}: {problem}\n")


@opt.as_command("bilex review status en-fi", "bilex review status en-fi --json")
def status_review(model: str, *, direction: Direction = "forward", json: bool = False) -> None:
    """Show the progress of the review of MODEL's dictionary, by status, frequency and person.

    Options:
        --direction: The review of source words, or that of target words.
        --json
    """
    from bilex.model.storage import StoredModel
    from bilex_workbench.decisions import STATUSES
    from bilex_workbench.review import status
    from bilex_workbench.statistics import frequency_bands

    source_words, target_words = StoredModel.open(model, many=False).words.values()
    bands = frequency_bands(source_words if direction == "forward" else target_words)
    with _opened(model, direction) as database, database.reading() as db:
        found = status(db, bands)
    if json:
        opt.write_json_line(found)
        return
    counts = (found["total"], found["decisions"], found["twice"])
    lines = ["{:,} entries, {:,} decisions, {:,} decided twice".format(*counts)]
    lines += [f"  {name:<13}{found[name]:>10,}" for name in STATUSES]
    lines += ["  ranks {band:<16}{decided:>7,} of {total:,}".format(**one) for one in found["by_band"]]
    lines += ["  by {name:<19}{decisions:>7,}".format(**one) for one in found["by_reviewer"]]
    sys.stdout.write("\n".join(lines) + "\n")


@opt.as_command("bilex review repair en-fi")
def repair_review(model: str, *, direction: Direction = "forward") -> None:
    """Copy all readable decisions, notes and audits of MODEL's review file into a new one.

    Options:
        --direction: The review of source words, or that of target words.
    """
    from bilex_workbench.database import repair, review_file

    rescued, kept = repair(review_file(model, direction))
    counts = ", ".join(f"{count:,} {table}" for table, count in rescued.items() if table != "facts")
    sys.stderr.write(f"Rescued {counts}; the damaged file is now {kept}.\n")


@opt.as_command("bilex review agreement en-fi")
def agreement_review(model: str, *, direction: Direction = "forward", json: bool = False) -> None:
    """Show agreement on whether the model's first translation is right: shares and Cohen's kappa.

    Options:
        --direction: The review of source words, or that of target words.
        --json
    """
    from bilex_workbench.review import agreement

    with _opened(model, direction) as database, database.reading() as db:
        found = agreement(db)
    if json:
        opt.write_json_line(found)
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
