"""`bilex align`: vectors and seeds become a model folder."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import re
import shlex
import socket
import time
import types
import urllib.parse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import click

import bilex
from bilex.cli import options as opt
from bilex.cli.console import answers_table, progress, show, show_confidences, show_facts, warn
from bilex.cli.setup import ProjectCommand
from bilex.core.errors import BilexError, nearest_name, optional_library
from bilex.core.languages import two_languages
from bilex.encoders.settings import DEFAULT_MIXING, OFFLINE_ENCODER, PRESETS
from bilex.fit import DEFAULT_METHOD

if TYPE_CHECKING:
    from bilex.aligners import Aligner
    from bilex.model.refine import Refinement

_SHOWN_WORDS = 8
_SHOWN_MISSING = 5  # of each language
_TRUTHS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_HUB_ADDRESS = re.compile(r"https?://(?:www\.)?huggingface\.co/([\w.-]+/[\w.-]+|[\w.-]+)/?")
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_HUB_SECONDS = 5
_HUB_ERRORS = (OSError, ValueError, KeyError, RuntimeError)


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
    seeds: opt.Inputs = (),
    corrections: opt.Inputs = (),
    rejected: opt.Inputs = (),
    layout: opt.DictionaryLayout,
    output: str | None = None,
    force: bool = False,
    dry_run: bool = False,
    method: opt.Completed = DEFAULT_METHOD,
    lm: str | None = None,
    lambda_: str | None = None,
    preset: opt.CompletedOrNone = None,
    tuning: Literal["auto", "paper", "light"] | None = None,
    limit: opt.Positive = 200_000,
    device: opt.Device = "auto",
    random_seed: opt.RandomSeed = 0,
    source_language: str | None = None,
    target_language: str | None = None,
    keep_case: bool = False,
    set_: tuple[str, ...] = (),
    checkpoint: opt.Checkpoint = None,
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
    if not dry_run:
        if output is None:
            raise click.UsageError("Missing option '-o': name the model folder to write.")
        opt.check_model_output(output, force)
    encoder = _encoder(lm, lambda_, tuning)
    chosen = parse_settings(bilex.get_method(method), (f"preset={preset}", *set_) if preset else set_)
    aligner = bilex.get_method(method)(**{"device": device, "seed": random_seed, **chosen})
    started = time.monotonic()
    lowercase = not keep_case
    languages = two_languages((source_language, source_vectors), (target_language, target_vectors))
    read = functools.partial(layout.read, lowercase=lowercase, languages=languages)
    corrected = [read(path, verdicts=True) for path in corrections]
    wrong = [bilex.Lexicon([], path, rejected=read(path).pairs) for path in rejected]
    lexicon = _joined([read(path) for path in seeds], [*corrected, *wrong])
    learned, decided = _split(lexicon, _joined([], corrected) if seeds else None)
    steps = 3 + bool(lexicon) + (lm is not None) + (decided is not None)
    listener = progress(steps, verbose=verbose)
    if not dry_run:
        listener.step("reading vectors")
    source = opt.read_vectors(source_vectors, limit, lowercase, listener)
    target = opt.read_vectors(target_vectors, limit, lowercase, listener)
    if lexicon is not None and len(lexicon):
        opt.check_coverage(lexicon, source, target)
    for decided_pairs in (*corrected, *wrong):
        _warn_of_missing(decided_pairs, source, target)
    if output is None or dry_run:
        plan: dict[str, Any] = {
            "source_language": languages[0],
            "target_language": languages[1],
            "source_words": len(source),
            "target_words": len(target),
            "dimensions": [source.dim, target.dim],
            "method": method,
            "language_model": lm,
            **({} if lexicon is None else _seeds_plan(lexicon, source, target)),
        }
        if json:
            opt.write_json_line(plan, indent=2)
            return
        facts = {name: value for name, value in plan.items() if value and not name.startswith("seed_pairs")}
        show_facts(facts, "A dry run: nothing was written. A fit would work on this:")
        return
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
        translator.save(output)
    _report(translator, output, time.monotonic() - started, json, refinement)


def _encoder(lm: str | None, mixing: str | None, tuning: Any) -> bilex.C2 | None:
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


def _joined(seeds: list[bilex.Lexicon], decisions: list[bilex.Lexicon]) -> bilex.Lexicon | None:
    """Several lists of seeds as one, corrected by decisions; None if there is neither."""
    if not (seeds or decisions):
        return None
    joined = functools.reduce(operator.add, seeds or [bilex.Lexicon([], "no seeds")])
    return functools.reduce(bilex.Lexicon.corrected, decisions, joined)


def _split(
    lexicon: bilex.Lexicon | None, decided: bilex.Lexicon | None
) -> tuple[bilex.Lexicon | None, bilex.Lexicon | None]:
    """What the fit learns from, and the corrections by which its model is refined.

    Where the corrections outnumber the seeds, the fit learns from all pairs alike.
    """
    if lexicon is None or decided is None:
        return lexicon, None
    wrong = tuple(pair for pair in lexicon.rejected if pair not in set(decided.rejected))
    rest = replace(lexicon.without(decided, "source"), rejected=wrong)
    return (lexicon, None) if len(rest) < len(decided.pairs) else (rest, decided)


def _warn_of_missing(decided: bilex.Lexicon, source: bilex.WordVectors, target: bilex.WordVectors) -> None:
    """Name every correction or rejection that does nothing, because a word has no vector."""
    given = decided.as_units(source.key_to_index, target.key_to_index)
    pairs = (*given.pairs, *given.rejected)
    missing = [f"{a}–{b}" for a, b in pairs if a not in source or b not in target]
    if missing:
        why = f"{len(missing)} pairs have no effect, because a word has no vector"
        warn(f"{decided.name}: {why}: {', '.join(missing)}.")


def _seeds_plan(
    lexicon: bilex.Lexicon, source: bilex.WordVectors, target: bilex.WordVectors
) -> dict[str, Any]:
    lexicon = lexicon.as_units(source.key_to_index, target.key_to_index)
    coverage = lexicon.coverage(source.key_to_index, target.key_to_index)
    return {
        "seeds": lexicon.name,
        "seed_pairs": len(lexicon),
        "seed_pairs_covered": coverage.covered,
        "coverage": coverage.sentence(),
        "rejected_pairs": len(lexicon.rejected),
        "missing_source_words": coverage.source_missing[:_SHOWN_MISSING],
        "missing_target_words": coverage.target_missing[:_SHOWN_MISSING],
    }


def _report(
    translator: bilex.Translator, output: str, seconds: float, as_json: bool, refinement: Refinement | None
) -> None:
    """A few translations, what the held-out seeds say, and what to do next."""
    from bilex.model.provenance import example_words, sentences

    seeds = {source for source, _ in translator.seeds.pairs}
    words = example_words(translator.space.source.index_to_key, _SHOWN_WORDS, but=seeds)
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
        show(answers_table(answers, translator.languages, "Frequent words that are not among the seeds"))
    show_confidences(translator)
    if refinement is not None:
        show(f"Corrections: {refinement.note}")
    expected, *warnings = sentences(translator.provenance, output)
    show(expected)
    for sentence in warnings:
        warn(sentence)
    following = shlex.join(["bilex", "translate", output, *words[:2]])
    show(f"Saved {output} after {seconds:.0f} s. Next: {following}")


def parse_settings(method: type[Aligner], given: Sequence[str]) -> dict[str, Any]:
    """Turn NAME=VALUE texts into keyword arguments of a method."""
    from bilex.aligners.base import check_settings

    known, kinds = method.settings_fields(), get_type_hints(method)
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise BilexError(f"--set {text}: write it as NAME=VALUE.")
        if name not in known:
            raise BilexError(
                f"--set {text}: method '{method.name}' has no setting '{name}'; "
                f"it has {', '.join(known)}.{nearest_name(name, known)}"
            )
        settings[name] = _value(value.strip(), kinds[name])
    check_settings(method.name, settings, kinds, method.limits)
    return settings


def _value(text: str, kind: Any) -> Any:
    """A text as the value of a setting of some type; the text itself where none fits."""
    if get_origin(kind) is tuple:
        return tuple(_value(part.strip(), get_args(kind)[0]) for part in text.split(",") if part.strip())
    kinds = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if types.NoneType in kinds and text.lower() in ("none", "null"):
        return None
    if bool in kinds:
        return _TRUTHS.get(text.lower(), text)
    for number in (int, float):
        if number in kinds:
            with contextlib.suppress(ValueError):
                return number(text.replace("_", ""))
    return text


def check_lm(name: str) -> None:
    """Make sure that a language model exists: here, fetched earlier, or on the Hugging Face hub."""
    if "://" in name:
        known = _HUB_ADDRESS.match(name)
        hint = f"--lm {known[1]}" if known else "--lm intfloat/multilingual-e5-small"
        raise BilexError(f"--lm {name}: an address cannot be opened; give the model's name alone, as {hint}.")
    if name == OFFLINE_ENCODER or Path(name).is_dir():
        return
    if name.startswith((".", "/")) or not _HUB_NAME.fullmatch(name):
        raise BilexError(f"--lm {name}: is neither a folder here nor a name that the hub could have.")
    with optional_library("a language model", "bilex[lm]"):
        from transformers import AutoConfig
    with contextlib.suppress(*_HUB_ERRORS):
        AutoConfig.from_pretrained(name, local_files_only=True)
        return
    address = urllib.parse.urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    similar = [OFFLINE_ENCODER]
    try:
        # Once, where the library would try for a minute.
        socket.create_connection((address.hostname or "", address.port or 443), _HUB_SECONDS).close()
        similar = [] if name in PRESETS else list(PRESETS)
        AutoConfig.from_pretrained(name)
    except _HUB_ERRORS as error:
        raise BilexError(
            f"--lm {name}: the Hugging Face hub has no such model or cannot be reached; check name and "
            f"network, give the path of a model folder, or use {OFFLINE_ENCODER}, which needs no hub."
            f"{nearest_name(name, similar)}"
        ) from error
