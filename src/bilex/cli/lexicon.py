"""`bilex lexicon`: a whole dictionary out of a model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bilex.cli.dictionaries import FormatName
from bilex.cli.model_options import (
    DictionaryOutput,
    Filters,
    SeveralValues,
    dictionary_output_options,
    filter_options,
    from_option,
    ranks_of_text,
    to_languages_option,
)
from bilex.cli.options import (
    check_device,
    check_readable,
    device_option,
    direction_options,
    examples,
    model_only_option,
    retrieval_option,
)
from bilex.core.errors import BilexError
from bilex.core.text import escape_control_characters

if TYPE_CHECKING:
    from bilex.lexicon.entries import Languages
    from bilex.model.space import Direction


@click.command(
    cls=SeveralValues,
    epilog=examples(
        "bilex lexicon en-fi -o en-fi.tsv",
        "bilex lexicon en-fi --mutual --min-confidence 0.5 -o sure.tsv",
        "bilex lexicon en-fi -k 3 --ranks 1-20000 -o frequent.jsonl",
        "bilex lexicon en-fi --direction both --format csv > both.csv",
        "bilex lexicon en-fi --no-numbers --stop-words stop.txt -o words.tsv",
        "bilex lexicon en-fi --lemmas -k 5 -o entries.csv",
        "bilex lexicon en-fi -o en-fi.ifo                  (StarDict)",
        "bilex lexicon en-fi -o glossary.csv --format deepl --skip-unfit",
        "bilex lexicon many --from en --to fi ru fr -o polyglot.tsv   (a model of several languages)",
    ),
)
@click.argument("model", type=click.Path())
@click.option("-o", "--output", metavar="FILE", help="The file to write; stdout if it is left out.")
@click.option(
    "--format",
    "form",
    type=FormatName(writable=True),
    help="The format; by default what the file's name says, else tsv.",
)
@click.option(
    "-k", "count", type=click.IntRange(min=1), default=1, show_default=True, help="Translations per word."
)
@direction_options("forward", "backward", "both")
@from_option
@to_languages_option
@retrieval_option
@click.option("--mutual", is_flag=True, help="Only pairs in which each word is the other's first answer.")
@click.option(
    "--min-score", type=float, help="Of pairs that are not known, only those that score at least this."
)
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    help="Of pairs that are not known, only those of at least this confidence.",
)
@click.option(
    "--ranks",
    default="1-",
    show_default=True,
    help="Translate only words of these frequency ranks; 1-20000 are the 20,000 most frequent.",
)
@click.option(
    "--lemmas",
    is_flag=True,
    help="One entry per lemma: the votes of its forms are added, senses numbered (needs the extra lemmas).",
)
@model_only_option
@filter_options
@dictionary_output_options
@device_option
def command(
    model: str,
    output: str | None,
    form: str | None,
    count: int,
    direction: str,
    source: str | None,
    targets: tuple[str, ...],
    retrieval: str,
    mutual: bool,
    min_score: float | None,
    min_confidence: float | None,
    ranks: str,
    lemmas: bool,
    model_only: bool,
    filters: Filters,
    writing: DictionaryOutput,
    device: str,
) -> None:
    """Export a dictionary from a MODEL: every word with its best translations.

    The language whose words are translated comes first. Translations that the seeds give come before
    others, are marked as known, and need no score or confidence. TSV has five columns, both words, score,
    confidence, and known or found, and no header, so that it serves as a seed dictionary again; CSV and
    JSON Lines name their columns and add the words' frequency ranks. The other formats are those of
    dictionary programs, translators' tools and search engines: see docs/reference/formats.md. With several
    languages after --to there is a column for each, under a header with their codes.
    """
    wanted = ranks_of_text(ranks, "--ranks")
    check_device(device)
    check_readable(*filters.stop_words, *filters.tags)
    from bilex.cli.console import progress
    from bilex.core.files import check_writable
    from bilex.lexicon.formats import format_of
    from bilex.model.many.core import open_pair

    if output is not None:
        check_writable(output)
    written = format_of(output or "-", form)
    if output is None and written.pieces is None:
        raise BilexError(f"{written.noun} is no text; name a file to write with -o.")
    options: dict[str, Any] = {
        "k": count,
        "retrieval": retrieval,
        "mutual": mutual,
        "min_score": min_score,
        "min_confidence": min_confidence,
        "ranks": wanted,
        "model_only": model_only,
        "progress": progress(),
    }
    if len(targets) > 1:
        if lemmas:
            raise BilexError("a dictionary by lemmas has one target language; name one with --to.")
        write_polyglot(
            model, source, targets, device, output, written.name, {**options, "keep_of": filters.of}
        )
        return
    way: Direction = "backward" if direction == "backward" else "forward"
    translator, way = open_pair(model, source, targets[0] if targets else None, device, way)
    given = writing.languages
    found = translator.lexicon(
        direction="both" if direction == "both" else way,
        keep=filters.of(translator),
        lemmas=given if lemmas and given[0] else lemmas,  # type: ignore[arg-type]
        **options,
    )
    languages: Languages = given if given[0] else translator.provenance.languages
    if output is None:
        sys.stdout.write(found.text(written.name, languages=languages, options=writing.options))
        return
    report = found.save(output, written.name, languages=languages, options=writing.options)
    seeds = sum(entry.known for entry in found)
    wrote = f"Wrote {report.written:,} pairs to {output}, {seeds:,} of them known from the seeds."
    sys.stderr.write(escape_control_characters(wrote) + "\n")
    if report.left_out:
        sys.stderr.write(escape_control_characters(report.sentence()) + "\n")


def write_polyglot(
    model: str,
    source: str | None,
    targets: Sequence[str],
    device: str,
    output: str | None,
    form: str,
    options: dict[str, Any],
) -> None:
    """Write every word of a language with its translations into several others."""
    from bilex.model import Translator
    from bilex.model.many.core import open_model
    from bilex.model.many.polyglot import check_form

    check_form(form)
    opened = open_model(model, device)
    if isinstance(opened, Translator):
        raise BilexError(
            f"{model}: holds two languages, and {len(targets)} were named after --to; join models with "
            "'bilex join' first."
        )
    if source is None:
        raise BilexError(
            f"{model}: holds {', '.join(opened.languages)}; say whose words are translated with --from."
        )
    found = opened.lexicon(source, targets, **options)
    if output is None:
        sys.stdout.write(found.text(form))
        return
    found.save(output, form)
    sys.stderr.write(f"Wrote {len(found):,} words in {1 + len(targets)} languages to {output}.\n")
