"""`bilex lexicon`: a whole dictionary out of a model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import click

import bilex
from bilex.cli import options as opt
from bilex.cli.console import note, progress
from bilex.core.errors import BilexError
from bilex.core.files import check_writable
from bilex.core.languages import code_of


class SeveralLanguages(opt.Command):
    """A command whose `--to` takes several languages: `--to fi ru fr`, where click has `--to fi --to ru`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each further language."""
        return super().parse_args(ctx, spread(args, "--to"))


def spread(arguments: Sequence[str], option: str) -> list[str]:
    """Arguments with an option repeated before each of its values that follow the first."""
    result: list[str] = []
    expecting, taking = False, False
    for argument in arguments:
        if expecting:
            values = [value for value in argument.split(",") if value]
            result += [part for value in values for part in (option, value)][1:]
            expecting, taking = False, True
        elif taking and code_of(argument) is not None:
            result += [option, argument]
        else:
            taking, expecting = False, argument == option
            result.append(argument)
    return result


@opt.as_command(
    "bilex lexicon en-fi -o en-fi.tsv",
    "bilex lexicon en-fi --mutual --min-confidence 0.5 -o sure.tsv",
    "bilex lexicon en-fi -k 3 --ranks 1-20000 -o frequent.jsonl",
    "bilex lexicon en-fi --direction both --format csv > both.csv",
    "bilex lexicon en-fi --no-numbers --stop-words stop.txt -o words.tsv",
    "bilex lexicon en-fi --lemmas -k 5 -o entries.csv",
    "bilex lexicon en-fi -o en-fi.ifo                  (StarDict)",
    "bilex lexicon en-fi -o glossary.csv --format deepl --skip-unfit",
    "bilex lexicon many --from en --to fi ru fr -o polyglot.tsv   (a model of several languages)",
    cls=SeveralLanguages,
)
def command(
    model: str,
    *,
    output: str | None = None,
    format: opt.CompletedOrNone = None,
    k: opt.Positive = 1,
    direction: Literal["forward", "backward", "both"] | None = None,
    reverse: bool = False,
    from_: str | None = None,
    to: tuple[str, ...] = (),
    retrieval: opt.Retrieval = "csls",
    mutual: bool = False,
    min_score: float | None = None,
    min_confidence: opt.Share = None,
    ranks: opt.Ranks = None,
    lemmas: bool = False,
    model_only: bool = False,
    filters: opt.Filters,
    writing: opt.DictionaryOutput,
    device: opt.Device = "auto",
) -> None:
    """Export a dictionary from a MODEL: every word with its best translations.

    The language whose words are translated comes first. Translations that the seeds give come before
    others, are marked as known, and need no score or confidence. TSV has five columns, both words, score,
    confidence, and known or found, and no header, so that it serves as a seed dictionary again; CSV and
    JSON Lines name their columns and add the words' frequency ranks. The other formats are those of
    dictionary programs, translators' tools and search engines: see docs/reference/formats.md. With several
    languages after --to there is a column for each, under a header with their codes.

    Output:
        -o, --output FILE: The file to write; stdout if it is left out.
        --format NAME: tsv, csv, jsonl, muse, deepl, omegat, tbx, tmx, tei, stardict, apertium, synonyms,
            anki, hunalign, bicleaner, xlsx, or one of a plugin.  [default: what the file's name says, else
            tsv]
        --languages --defuse-formulas --skip-unfit
    Translations:
        -k --direction --reverse --from
        --to LANGUAGE…: The language to translate to, or several.
        --lemmas: One entry per lemma: the votes of its forms are added, senses numbered (needs the extra
            lemmas).
    Leave out:
        --mutual: Only pairs in which each word is the other's first answer.
        --min-confidence: Of pairs that are not known, only those of at least this confidence.
        --min-score: Of pairs that are not known, only those that score at least this.
        --ranks FIRST-LAST: Translate only words of these frequency ranks; 1-20000 are the 20,000 most
            frequent.
        --no-numbers --no-names --stop-words --tags --pos
    """
    from bilex.lexicon.formats import format_of
    from bilex.model.many import open_pair

    chosen = opt.resolve_direction(direction, reverse)
    if output is not None:
        check_writable(output)
    written = format_of(output or "-", format)
    if output is None and not written.is_text:
        raise BilexError(f"{written.noun} is not text; name a file to write with -o.")
    options: dict[str, Any] = {
        "k": k,
        "retrieval": retrieval,
        "mutual": mutual,
        "min_score": min_score,
        "min_confidence": min_confidence,
        "ranks": ranks or (1, None),
        "model_only": model_only,
        "progress": progress(),
    }
    if len(to) > 1:
        if lemmas:
            raise BilexError("a dictionary by lemmas has one target language; name one with --to.")
        _write_polyglot(model, from_, to, device, output, written.name, {**options, "keep_of": filters.of})
        return
    both = chosen == "both"
    translator, chosen = open_pair(model, from_, to[0] if to else None, device, "forward" if both else chosen)
    found = translator.lexicon(
        direction="both" if both else chosen,
        keep=filters.of(translator),
        lemmas=(writing.languages or True) if lemmas else False,
        **options,
    )
    languages = writing.languages or translator.provenance.languages
    if output is None:
        sys.stdout.write(found.text(written.name, languages=languages, options=writing.options))
        return
    report = found.save(output, written.name, languages=languages, options=writing.options)
    seeds = sum(entry.known for entry in found)
    note(f"Wrote {report.written:,} pairs to {output}, {seeds:,} of them known from the seeds.")
    if report.left_out:
        note(report.sentence())


def _write_polyglot(
    model: str,
    source: str | None,
    targets: Sequence[str],
    device: str,
    output: str | None,
    format: str,
    options: dict[str, Any],
) -> None:
    """Write every word of a language with its translations into several others."""
    from bilex.model.many import check_several_languages

    check_several_languages(format)
    opened = bilex.ManyLanguages.load(model, device=device)
    if source is None:
        raise BilexError(
            f"{model}: holds {', '.join(opened.languages)}; say whose words are translated with --from."
        )
    found = opened.lexicon(source, targets, **options)
    if output is None:
        sys.stdout.write(found.text(format))
        return
    found.save(output, format)
    note(f"Wrote {len(found):,} words in {1 + len(targets)} languages to {output}.")
