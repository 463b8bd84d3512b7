"""`bilex align`: vectors and seeds become a model folder."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from bilex.cli.completion import complete_methods, complete_presets
from bilex.cli.dictionaries import (
    DictionaryLayout,
    dictionary_options,
    read_decisions,
    read_seeds,
    warn_of_missing,
)
from bilex.cli.options import (
    check_coverage,
    check_device,
    check_readable,
    device_option,
    examples,
    json_option,
    read_vectors,
    seed_option,
    words_limit_option,
    write_json_line,
)
from bilex.cli.project import ProjectCommand, config_option
from bilex.cli.settings import check_lm
from bilex.core.errors import BilexError
from bilex.core.files import check_writable
from bilex.core.languages import two_languages
from bilex.core.locks import exclusive_lock
from bilex.encoders.presets import DEFAULT_MIXING
from bilex.fit import DEFAULT_METHOD

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.encoders.settings import C2
    from bilex.lexicon import Lexicon
    from bilex.model.refine import Refinement
    from bilex.vectors import WordVectors

_SHOWN_WORDS = 8
_SHOWN = 5  # missing words of each language


@click.command(
    cls=ProjectCommand,
    groups={
        "Input": ("seeds", "corrections", "rejected", "limit", "source_language", "target_language"),
        "Method": ("method", "preset", "settings"),
        "Language model": ("lm", "mixing", "tuning"),
        "Output": ("output", "force", "dry_run", "checkpoint", "as_json"),
    },
    epilog=examples(
        "bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi",
        "bilex align wiki.en.bin wiki.fi.bin --seeds en-fi.tsv -o en-fi --limit 100000",
        "bilex align en.vec.gz fi.vec.gz --seeds en-fi.tsv -o en-fi --method procrustes",
        "bilex align en.vec fi.vec --seeds en-fi.tsv --corrections mine.tsv -o en-fi --force",
        "bilex align en.vec fi.vec --seeds en-fi.csv --columns english,finnish -o en-fi --dry-run",
        "bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi --lm e5-small-q4",
        "bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi --set iterations=3   (see 'bilex methods c1')",
        "bilex align   (in a folder with the bilex.toml of 'bilex init')",
    ),
)
@click.argument("source_vectors", type=click.Path())
@click.argument("target_vectors", type=click.Path())
@click.option(
    "--seeds",
    multiple=True,
    metavar="DICTIONARY",
    help="Word pairs, source word first, one pair per line; several files are joined.",
)
@click.option(
    "--corrections",
    multiple=True,
    metavar="DICTIONARY",
    help="Pairs that outweigh the seeds; 'no' in a third column rejects a pair.",
)
@click.option(
    "--rejected", multiple=True, metavar="DICTIONARY", help="Pairs that are no translations, one per line."
)
@dictionary_options
@click.option("-o", "--output", metavar="MODEL", help="The model folder to write.")
@click.option("--force", is_flag=True, help="Replace an earlier model of that name.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only read the files and show the coverage; nothing is made.",
)
@click.option(
    "--method",
    default=DEFAULT_METHOD,
    show_default=True,
    shell_complete=complete_methods,
    help="How to align; see 'bilex methods'.",
)
@click.option(
    "--lm",
    metavar="NAME",
    help="Add a language model (stage C2): a hub name, a model folder, or e5-small-q4, which needs no hub.",
)
@click.option(
    "--lambda",
    "mixing",
    metavar="NUMBER|auto",
    help="The language model's weight, 0 to 1; auto chooses it on held-out seeds.  "
    f"[default: {DEFAULT_MIXING}]",
)
@click.option(
    "--preset",
    metavar="NAME",
    shell_complete=complete_presets,
    help="A preset of the method, such as careful of c1; 'bilex methods METHOD' lists them.",
)
@click.option(
    "--tuning",
    type=click.Choice(["auto", "paper", "light"]),
    help="How the language model is tuned; auto is light on a machine without a GPU.  [default: auto]",
)
@words_limit_option
@device_option
@seed_option
@click.option(
    "--source-language",
    metavar="CODE",
    help="The source language, such as en.  [default: taken from the file's name]",
)
@click.option(
    "--target-language",
    metavar="CODE",
    help="The target language, such as fi.  [default: taken from the file's name]",
)
@click.option("--keep-case", is_flag=True, help="Do not lower-case vectors and dictionary.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any setting of the method.")
@click.option(
    "--checkpoint", metavar="FOLDER", help="Keep the state here, and resume from it if it is there."
)
@click.option(
    "--calibrate/--no-calibrate",
    default=True,
    show_default=True,
    help="Learn confidences on held-out seeds, in the trial that also chooses what is auto.",
)
@click.option("--verbose", is_flag=True, help="Show losses beside the progress bars.")
@config_option
@json_option
def command(
    source_vectors: str,
    target_vectors: str,
    seeds: tuple[str, ...],
    corrections: tuple[str, ...],
    rejected: tuple[str, ...],
    layout: DictionaryLayout,
    output: str | None,
    force: bool,
    dry_run: bool,
    method: str,
    lm: str | None,
    mixing: str | None,
    preset: str | None,
    tuning: str | None,
    limit: int,
    device: str,
    seed: int,
    source_language: str | None,
    target_language: str | None,
    keep_case: bool,
    settings: tuple[str, ...],
    checkpoint: str | None,
    calibrate: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Align two languages: two vector files and a seed dictionary become a model folder.

    SOURCE_VECTORS and TARGET_VECTORS may be word2vec or fastText text (also .gz, .bz2, .xz),
    word2vec binary, fastText .bin, .npy with a word list, or a folder of 'bilex convert', most
    frequent words first. The model folder is written whole or not at all.
    """
    check_readable(source_vectors, target_vectors, *seeds, *corrections, *rejected)
    check_device(device)
    from bilex.aligners import get_method
    from bilex.cli.console import interruptible, progress
    from bilex.cli.settings import parse_settings
    from bilex.model import Translator

    model = _checked_output(output, force, dry_run)
    if checkpoint:
        check_writable(Path(checkpoint) / "aligner")
    if lm is not None:
        check_lm(lm)
    chosen = settings if preset is None else (f"preset={preset}", *settings)
    values = parse_settings(get_method(method), chosen)
    aligner = get_method(method)(**{"device": device, "seed": seed, **values})
    encoder = _encoder(lm, mixing, tuning)
    refines = bool(seeds and corrections)
    steps = 3 + bool(seeds or corrections) + (lm is not None) + refines
    listener = progress(steps, verbose=verbose)
    started = time.monotonic()
    lowercase = not keep_case
    languages = two_languages((source_language, source_vectors), (target_language, target_vectors))
    decisions = read_decisions(layout, lowercase, languages, corrections, rejected)
    lexicon = read_seeds(layout, lowercase, languages, seeds, decisions)
    decided = read_seeds(layout, lowercase, languages, (), decisions[: len(corrections)]) if refines else None
    if not dry_run:
        listener.step("reading vectors")
    source, target = (
        read_vectors(path, limit, lowercase, listener) for path in (source_vectors, target_vectors)
    )
    if lexicon is not None and len(lexicon):
        check_coverage(lexicon, source, target)
    warn_of_missing(decisions, source, target)
    if dry_run:
        _show_plan(aligner, source, target, lexicon, languages, lm=lm, as_json=as_json)
        return
    learned, refinement = lexicon, None
    if lexicon is not None and decided is not None:  # the corrections are learned by refining, below
        wrong = tuple(pair for pair in lexicon.rejected if pair not in set(decided.rejected))
        rest = replace(lexicon.without(decided, "source"), rejected=wrong)
        if len(rest) < len(decided.pairs):  # too few seeds to begin with: learn from all pairs alike
            decided = None
        else:
            learned = rest
    with interruptible(checkpoint, listener):
        translator = Translator(aligner, encoder=encoder).fit(
            source,
            target,
            learned,
            calibrate=calibrate,
            lowercase=lowercase,
            languages=languages,
            progress=listener,
            checkpoint=checkpoint,
        )
    if decided is not None:
        listener.step("learning from corrections")
        refinement = translator.refine(decided.pairs, decided.rejected, progress=listener)
    listener.step("writing the model")
    with listener.task("Writing the model"):
        translator.save(model)
    _report(translator, model, time.monotonic() - started, as_json, refinement)


def _checked_output(output: str | None, force: bool, dry_run: bool) -> str:
    """The model's name, if it may be written."""
    if dry_run:
        return output or ""
    if output is None:
        raise click.UsageError("Missing option '-o': name the model folder to write.")
    check_writable(output)
    click.get_current_context().with_resource(exclusive_lock(output))
    from bilex.model.storage import check_destination, holds_model

    check_destination(output)
    if holds_model(output) and not force:
        raise BilexError(f"{output}: is a model already; choose another name, or replace it with --force.")
    return output


def _encoder(lm: str | None, mixing: str | None, tuning: str | None) -> C2 | None:
    """The settings of stage C2 that the options describe; None without a language model."""
    if lm is None:
        if mixing is not None or tuning is not None:
            given = f"--tuning {tuning}" if mixing is None else f"--lambda {mixing}"
            raise BilexError(f"{given} is about the language model; name one with --lm, such as e5-small-q4.")
        return None
    from bilex.encoders.settings import C2

    weight: Any = DEFAULT_MIXING
    if mixing is not None and mixing != "auto":
        try:
            weight = float(mixing)
        except ValueError:
            raise BilexError(f"--lambda {mixing}: give a number from 0 to 1, or auto.") from None
    preset = cast("Literal['auto', 'paper', 'light']", tuning or "auto")
    return C2(lm, mixing=weight, preset=preset)


def _show_plan(
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    languages: tuple[str | None, str | None],
    *,
    lm: str | None,
    as_json: bool,
) -> None:
    """Show what a fit would work on."""
    from bilex.core.languages import language_name

    plan: dict[str, Any] = {
        "source_language": languages[0],
        "target_language": languages[1],
        "source_words": len(source),
        "target_words": len(target),
        "dimensions": [source.dim, target.dim],
        "method": aligner.name,
        "language_model": lm,
    }
    if lexicon is not None:
        lexicon = lexicon.as_units(source.key_to_index, target.key_to_index)
    coverage = None if lexicon is None else lexicon.coverage(source.key_to_index, target.key_to_index)
    if lexicon is not None and coverage is not None:
        plan |= {
            "seeds": lexicon.name,
            "seed_pairs": len(lexicon),
            "seed_pairs_covered": coverage.covered,
            "rejected_pairs": len(lexicon.rejected),
            "missing_source_words": list(coverage.source_missing[:_SHOWN]),
            "missing_target_words": list(coverage.target_missing[:_SHOWN]),
        }
    if as_json:
        write_json_line(plan, indent=2)
        return
    from rich.table import Table

    from bilex.cli.console import show

    rows = {
        "languages": " – ".join(
            language_name(code) if code else side
            for code, side in zip(languages, ("source", "target"), strict=True)
        ),
        "words": f"{len(source):,} × {len(target):,}, {source.dim} and {target.dim} numbers each",
        "method": aligner.name + (f" and {lm}" if lm else ""),
    }
    if lexicon is not None and coverage is not None:
        missing = [*coverage.source_missing[:_SHOWN], *coverage.target_missing[:_SHOWN]]
        rows["seeds"] = f"{coverage.covered:,} of {len(lexicon):,} pairs have both words in the vectors"
        if missing:
            rows["not in the vectors"] = ", ".join(missing) + ", ..."
        if lexicon.rejected:
            rows["rejected pairs"] = f"{len(lexicon.rejected):,}"
    table = Table(title="Nothing is made: this is what would be.", title_justify="left", show_header=False)
    for name, value in rows.items():
        table.add_row(name, value)
    show(table)


def _report(
    translator: Any, output: str, seconds: float, as_json: bool, refinement: Refinement | None
) -> None:
    """A few translations, what the held-out seeds say, and what to do next."""
    from bilex.cli.console import show, warn
    from bilex.cli.tables import answers_table, calibration_lines, unseen_words
    from bilex.model.card import sentences

    words = unseen_words(translator, _SHOWN_WORDS)
    answers = translator.translate(words, 3)
    if as_json:
        write_json_line(
            {
                "model": output,
                "seconds": round(seconds, 2),
                **translator.provenance.as_dict(),
                "calibration": translator.calibration.as_dict(),
                "refinement": None if refinement is None else refinement.as_dict(),
                "samples": [answer.as_dict() for answer in answers],
            },
            indent=2,
        )
        return
    if answers:
        title = "Frequent words that are not among the seeds"
        show(answers_table(answers, title, languages=translator.languages))
    for line in calibration_lines(translator):
        show(line)
    if refinement is not None:
        show(f"Corrections: {refinement.note}")
    expected, *warnings = sentences(translator.provenance, output)
    show(expected)
    for sentence in warnings:
        warn(sentence)
    following = shlex.join(["bilex", "translate", output, *words[:2]])
    show(f"Saved {output} after {seconds:.0f} s. Next: {following}")
