"""`bilex lexicon`: a whole dictionary out of a model."""

from __future__ import annotations

import sys

import click

from bilex.cli.options import check_device, device_option, examples, retrieval_option
from bilex.errors import BilexError


def _ranks(text: str) -> tuple[int, int | None]:
    """'1-20000', '500-' or '2000' (the first 2000) as a first and a last rank.

    Raises:
        BilexError: The text is none of these.
    """
    first, dash, last = text.replace("_", "").replace(",", "").partition("-")
    try:
        if not dash:
            return 1, int(first)
        return int(first or 1), int(last) if last else None
    except ValueError:
        raise BilexError(f"--ranks {text}: write it as FIRST-LAST, for example 1-20000.") from None


@click.command(
    epilog=examples(
        "bilex lexicon en-fi -o en-fi.tsv",
        "bilex lexicon en-fi --mutual --min-confidence 0.5 -o sure.tsv",
        "bilex lexicon en-fi -k 3 --ranks 1-20000 -o frequent.jsonl",
        "bilex lexicon en-fi --direction both --format csv > both.csv",
    )
)
@click.argument("model", type=click.Path())
@click.option("-o", "--output", metavar="FILE", help="The file to write; stdout if it is left out.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["tsv", "csv", "jsonl"]),
    help="The format; by default what the file's name says, else tsv.",
)
@click.option(
    "-k", "count", type=click.IntRange(min=1), default=1, show_default=True, help="Translations a word."
)
@click.option(
    "--direction",
    type=click.Choice(["forward", "backward", "both"]),
    default="forward",
    show_default=True,
    help="Whose words ask: the source's, the target's, or both.",
)
@retrieval_option
@click.option("--mutual", is_flag=True, help="Only pairs in which each word is the other's best.")
@click.option("--min-score", type=float, help="Only pairs that score at least this.")
@click.option("--min-confidence", type=click.FloatRange(0, 1), help="Only pairs of at least this confidence.")
@click.option(
    "--ranks", default="1-", show_default=True, help="Frequency ranks of the asking words, as 1-20000."
)
@device_option
def command(
    model: str,
    output: str | None,
    form: str | None,
    count: int,
    direction: str,
    retrieval: str,
    mutual: bool,
    min_score: float | None,
    min_confidence: float | None,
    ranks: str,
    device: str,
) -> None:
    """Export a dictionary from a MODEL: every word with its best translations.

    TSV has four columns, source, target, score and confidence, and no header, so that it serves as a
    seed dictionary again; CSV and JSON Lines name their columns and add the words' frequency ranks.
    """
    wanted = _ranks(ranks)
    check_device(device)
    from bilex.cli.console import progress
    from bilex.files import check_not_a_part, check_writable
    from bilex.lexicon.writing import format_of
    from bilex.translator import Translator
    from bilex.translator.storage import own_files

    if output is not None:
        check_not_a_part(output, model, own_files)
        check_writable(output)
    found = Translator.load(model, device=device).lexicon(
        k=count,
        direction=direction,
        method=retrieval,
        mutual=mutual,
        min_score=min_score,
        min_confidence=min_confidence,
        ranks=wanted,
        progress=progress(),
    )
    if output is None:
        sys.stdout.write(found.text(format_of("-", form)))
        return
    found.write(output, format_of(output, form))
    sys.stderr.write(f"Wrote {len(found):,} pairs to {output}.\n")
