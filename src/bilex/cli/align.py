"""`bilex align`: vectors and seeds become a model folder."""

from __future__ import annotations

import functools
import operator
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import bilex
from bilex.cli import options as opt
from bilex.cli.console import answers_table, interruptible, progress, show, show_confidences, show_facts, warn
from bilex.cli.init import ProjectCommand
from bilex.cli.settings import check_lm, parse_settings
from bilex.core.errors import BilexError
from bilex.core.files import check_writable
from bilex.core.languages import two_languages
from bilex.encoders.settings import DEFAULT_MIXING
from bilex.fit import DEFAULT_METHOD

if TYPE_CHECKING:
    from bilex.encoders.settings import C2
    from bilex.lexicon import Lexicon
    from bilex.model import Translator
    from bilex.model.refine import Refinement
    from bilex.vectors import WordVectors

_SHOWN_WORDS, _SHORTEST = 8, 5  # words of five letters and more say more than "from"
_SHOWN_MISSING = 5  # of each language


@opt.as_command(
    "bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi",
    "bilex align wiki.en.bin wiki.fi.bin --seeds en-fi.tsv -o en-fi --limit 100000",
    "bilex align en.vec.gz fi.vec.gz --seeds en-fi.tsv -o en-fi --method procrustes",
    "bilex align en.vec fi.vec --seeds en-fi.tsv --corrections mine.tsv -o en-fi --force",
    "bilex align en.vec fi.vec --seeds en-fi.csv --columns english,finnish -o en-fi --dry-run",
    "bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi --lm e5-small-q4",
    "bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi --set iterations=3   (see 'bilex methods c1')",
    "bilex align   (in a folder with the bilex.toml of 'bilex init')",
    cls=ProjectCommand,
)
def command(
    source_vectors: str,
    target_vectors: str,
    *,
    seeds: tuple[str, ...] = (),
    corrections: tuple[str, ...] = (),
    rejected: tuple[str, ...] = (),
    layout: opt.DictionaryLayout,
    output: str | None = None,
    force: bool = False,
    dry_run: bool = False,
    method: opt.Method = DEFAULT_METHOD,
    lm: str | None = None,
    lambda_: str | None = None,
    preset: opt.Preset = None,
    tuning: Literal["auto", "paper", "light"] | None = None,
    limit: opt.Positive = 200_000,
    device: str = "auto",
    random_seed: opt.RandomSeed = 0,
    source_language: str | None = None,
    target_language: str | None = None,
    keep_case: bool = False,
    set_: tuple[str, ...] = (),
    checkpoint: str | None = None,
    calibrate: bool = True,
    verbose: bool = False,
    config: str | None = None,
    json: bool = False,
) -> None:
    """Align two languages: two vector files and a seed dictionary become a model folder.

    SOURCE_VECTORS and TARGET_VECTORS may be word2vec or fastText text (also .gz, .bz2, .xz),
    word2vec binary, fastText .bin, .npy with a word list, or a folder of 'bilex convert', most
    frequent words first. The model folder is written whole or not at all.

    Input:
        --seeds DICTIONARY: Word pairs, source word first, one pair per line; several files are joined.
        --corrections DICTIONARY: Pairs that outweigh the seeds; 'no' in a third column rejects a pair.
        --rejected DICTIONARY: Pairs that are not translations, one per line.
        --limit
        --source-language CODE: The source language, such as en.  [default: taken from the file's name]
        --target-language CODE: The target language, such as fi.  [default: taken from the file's name]
    Method:
        --method
        --preset NAME: A preset of the method, such as careful of c1; 'bilex methods METHOD' lists them.
        --set NAME=VALUE: Any setting of the method.
    Language model:
        --lm NAME: Add a language model (stage C2): a hub name, a model folder, or e5-small-q4, which needs
            no hub.
        --lambda NUMBER|auto: The language model's weight, 0 to 1; auto chooses it on held-out seeds.
            [default: auto]
        --tuning: How the language model is tuned; auto is light on a machine without a GPU.
            [default: auto]
    Output:
        -o, --output MODEL: The model folder to write.
        --force
        --dry-run: Only read the files and show the coverage; nothing is written.
        --checkpoint
        --json
    Advanced:
        --keep-case: Do not lower-case vectors and dictionary.
        --verbose: Show losses beside the progress bars.
        --config FILE: Read options from this project file; those of the command line win.  [default:
            bilex.toml in this folder, where no vectors are named]
    """
    opt.check_readable(source_vectors, target_vectors, *seeds, *corrections, *rejected)
    opt.check_device(device)
    if output is None and not dry_run:
        raise click.UsageError("Missing option '-o': name the model folder to write.")
    model = output or ""
    if not dry_run:
        opt.check_model_output(model, force)
    if checkpoint:
        check_writable(Path(checkpoint) / "aligner")
    encoder = _encoder(lm, lambda_, tuning)
    chosen = parse_settings(bilex.get_method(method), (*([f"preset={preset}"] if preset else []), *set_))
    aligner = bilex.get_method(method)(**{"device": device, "seed": random_seed, **chosen})
    started = time.monotonic()
    lowercase = not keep_case
    languages = two_languages((source_language, source_vectors), (target_language, target_vectors))
    read = functools.partial(layout.read, lowercase=lowercase, languages=languages)
    wrong = [bilex.Lexicon([], path, rejected=read(path).pairs) for path in rejected]
    decisions = [*(read(path, verdicts=True) for path in corrections), *wrong]
    lexicon = _joined(list(map(read, seeds)), decisions)
    decided = _joined([], decisions[: len(corrections)]) if seeds else None
    learned, decided = _apart(lexicon, decided)
    steps = 3 + bool(lexicon) + (lm is not None) + (decided is not None)
    listener = progress(steps, verbose=verbose)
    if not dry_run:
        listener.step("reading vectors")
    source, target = (
        opt.read_vectors(path, limit, lowercase, listener) for path in (source_vectors, target_vectors)
    )
    if lexicon is not None and len(lexicon):
        opt.check_coverage(lexicon, source, target)
    _warn_of_missing(decisions, source, target)
    if dry_run:
        _show_plan(method, lm, languages, source, target, lexicon, json)
        return
    with interruptible(checkpoint, listener):
        translator = bilex.Translator(aligner, encoder=encoder).fit(
            source,
            target,
            learned,
            calibrate=calibrate,
            lowercase=lowercase,
            languages=languages,
            progress=listener,
            checkpoint=checkpoint,
        )
    refinement = None
    if decided is not None:
        listener.step("learning from corrections")
        refinement = translator.refine(decided.pairs, decided.rejected, progress=listener)
    listener.step("writing the model")
    with listener.task("Writing the model"):
        translator.save(model)
    _report(translator, model, time.monotonic() - started, json, refinement)


def _encoder(lm: str | None, mixing: str | None, tuning: Any) -> C2 | None:
    """The settings of stage C2 that the options describe; None without a language model."""
    if lm is None:
        if mixing is not None or tuning is not None:
            given = f"--tuning {tuning}" if mixing is None else f"--lambda {mixing}"
            raise BilexError(f"{given} is about the language model; name one with --lm, such as e5-small-q4.")
        return None
    check_lm(lm)
    try:
        weight: Any = DEFAULT_MIXING if mixing in (None, "auto") else float(mixing)
    except ValueError:
        raise BilexError(f"--lambda {mixing}: give a number from 0 to 1, or auto.") from None
    return bilex.C2(lm, mixing=weight, preset=tuning or "auto")


def _joined(seeds: list[Lexicon], decisions: list[Lexicon]) -> Lexicon | None:
    """Several lists of seeds as one, corrected by decisions; None if there is neither."""
    if not (seeds or decisions):
        return None
    first, *others = seeds or [bilex.Lexicon([], "no seeds")]
    joined = functools.reduce(operator.add, others, first)
    return functools.reduce(bilex.Lexicon.corrected, decisions, joined)


def _apart(lexicon: Lexicon | None, decided: Lexicon | None) -> tuple[Lexicon | None, Lexicon | None]:
    """What the fit learns from, and the corrections by which its model is refined.

    Where the corrections outnumber the seeds, the fit learns from all pairs alike.
    """
    if lexicon is None or decided is None:
        return lexicon, None
    wrong = tuple(pair for pair in lexicon.rejected if pair not in set(decided.rejected))
    rest = replace(lexicon.without(decided, "source"), rejected=wrong)
    return (lexicon, None) if len(rest) < len(decided.pairs) else (rest, decided)


def _warn_of_missing(decisions: list[Lexicon], source: WordVectors, target: WordVectors) -> None:
    """Name every pair of the corrections and rejections that does nothing, because a word has no vector."""
    for decided in decisions:
        given = decided.as_units(source.key_to_index, target.key_to_index)
        pairs = (*given.pairs, *given.rejected)
        missing = [f"{a}–{b}" for a, b in pairs if a not in source or b not in target]
        if missing:
            warn(
                f"{decided.name}: {len(missing)} pairs have no effect, because a word has no vector: "
                f"{', '.join(missing)}."
            )


def _show_plan(
    method: str,
    lm: str | None,
    languages: opt.Languages,
    source: WordVectors,
    target: WordVectors,
    lexicon: Lexicon | None,
    as_json: bool,
) -> None:
    """Show what a fit would work on."""
    plan: dict[str, Any] = {
        "source_language": languages[0],
        "target_language": languages[1],
        "source_words": len(source),
        "target_words": len(target),
        "dimensions": [source.dim, target.dim],
        "method": method,
        "language_model": lm,
    }
    if lexicon is not None:
        lexicon = lexicon.as_units(source.key_to_index, target.key_to_index)
        coverage = lexicon.coverage(source.key_to_index, target.key_to_index)
        plan |= {
            "seeds": lexicon.name,
            "seed_pairs": len(lexicon),
            "seed_pairs_covered": coverage.covered,
            "coverage": coverage.sentence(),
            "rejected_pairs": len(lexicon.rejected),
            "missing_source_words": coverage.source_missing[:_SHOWN_MISSING],
            "missing_target_words": coverage.target_missing[:_SHOWN_MISSING],
        }
    if as_json:
        opt.write_json_line(plan, indent=2)
    else:
        rows = {name: value for name, value in plan.items() if value and not name.startswith("seed_pairs")}
        show_facts(rows, "A dry run: nothing was written. A fit would work on this:")


def _report(
    translator: Translator, output: str, seconds: float, as_json: bool, refinement: Refinement | None
) -> None:
    """A few translations, what the held-out seeds say, and what to do next."""
    from bilex.model.card import sentences

    seeds = {source for source, _ in translator.seeds.pairs}
    frequent = [word for word in translator.space.source.index_to_key if word not in seeds]
    words = [word for word in frequent if len(word) >= _SHORTEST and word.isalpha()][:_SHOWN_WORDS]
    answers = translator.translate(words, 3)
    if as_json:
        report = {
            "model": output,
            "seconds": round(seconds, 2),
            **translator.provenance.as_dict(),
            "calibration": translator.calibration.as_dict(),
            "refinement": None if refinement is None else refinement.as_dict(),
            "samples": [answer.as_dict() for answer in answers],
        }
        opt.write_json_line(report, indent=2)
        return
    if answers:
        title = "Frequent words that are not among the seeds"
        show(answers_table(answers, translator.languages, title))
    show_confidences(translator)
    if refinement is not None:
        show(f"Corrections: {refinement.note}")
    expected, *warnings = sentences(translator.provenance, output)
    show(expected)
    for sentence in warnings:
        warn(sentence)
    following = shlex.join(["bilex", "translate", output, *words[:2]])
    show(f"Saved {output} after {seconds:.0f} s. Next: {following}")
