"""`bilex align`: vectors and seeds become a model folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from bilex.cli.options import (
    check_coverage,
    check_device,
    check_readable,
    device_option,
    examples,
    json_option,
    read_lexicon,
    read_vectors,
    write_json_line,
)
from bilex.encoders.presets import DEFAULT_MIXING, Mixing
from bilex.errors import BilexError

if TYPE_CHECKING:
    from bilex.encoders.stage import StageC2

_SHOWN_WORDS = 8
_OLD_LIGHT = "cpu"


@click.command(
    epilog=examples(
        "bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi",
        "bilex align wiki.en.bin wiki.fi.bin --seeds en-fi.tsv -o en-fi --limit 100000",
        "bilex align en.vec.gz fi.vec.gz --seeds en-fi.tsv -o en-fi --method procrustes",
        "bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi --lm e5-small-q4",
        "bilex align en.vec fi.vec --seeds en-fi.tsv -o en-fi --set iterations=3   (see 'bilex methods c1')",
    )
)
@click.argument("source_vectors", type=click.Path())
@click.argument("target_vectors", type=click.Path())
@click.option("--seeds", metavar="DICTIONARY", help="Word pairs, source word first, one pair a line.")
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model folder to write.")
@click.option("--method", default="c1", show_default=True, help="How to align; see 'bilex methods'.")
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
@click.option("--preset", metavar="NAME", help="A preset of the method: of c1 auto, paper or best.")
@click.option(
    "--tuning",
    type=click.Choice(["auto", "paper", "light"]),
    help="How the language model is tuned; auto is light on a machine without a GPU.  [default: auto]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    help="Read only so many of the most frequent words of each language.",
)
@device_option
@click.option("--seed", type=int, default=0, show_default=True, help="For methods with chance in them.")
@click.option("--keep-case", is_flag=True, help="Do not lower-case vectors and dictionary.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any setting of the method.")
@click.option(
    "--checkpoint", metavar="FOLDER", help="Keep the state here, and resume from it if it is there."
)
@click.option(
    "--calibrate/--no-calibrate",
    default=True,
    show_default=True,
    help="Learn confidences on held-out seeds; takes a second, smaller fit.",
)
@json_option
def command(
    source_vectors: str,
    target_vectors: str,
    seeds: str | None,
    output: str,
    method: str,
    lm: str | None,
    mixing: str | None,
    preset: str | None,
    tuning: str | None,
    limit: int,
    device: str,
    seed: int,
    keep_case: bool,
    settings: tuple[str, ...],
    checkpoint: str | None,
    calibrate: bool,
    as_json: bool,
) -> None:
    """Align two languages: two vector files and a seed dictionary become a model folder.

    SOURCE_VECTORS and TARGET_VECTORS may be word2vec or fastText text (also .gz, .bz2, .xz),
    word2vec binary, fastText .bin, .npy with a word list, or a folder of 'bilex convert', most
    frequent words first. The model folder is written whole or not at all.
    """
    check_readable(source_vectors, target_vectors, seeds)
    check_device(device)
    from bilex.aligners import get_method
    from bilex.cli.console import progress
    from bilex.cli.settings import parse_settings
    from bilex.encoders.processes import is_first_process
    from bilex.translator import Translator
    from bilex.translator.storage import check_destination

    check_destination(output)
    if preset == _OLD_LIGHT:
        preset, tuning = None, _renamed(lm, tuning)
    stage = _stage(lm, mixing, tuning, device)
    chosen = get_method(method)
    wishes = settings if preset is None else (f"preset={preset}", *settings)
    aligner = chosen(**{"device": device, "seed": seed, **parse_settings(chosen, wishes)})
    listener = progress()
    started = time.monotonic()
    lowercase = not keep_case
    lexicon = read_lexicon(seeds, lowercase) if seeds else None
    source = read_vectors(source_vectors, limit, lowercase, listener)
    target = read_vectors(target_vectors, limit, lowercase, listener)
    if lexicon is not None:
        check_coverage(lexicon, source, target)
    try:
        translator = Translator.fit(
            aligner,
            source,
            target,
            lexicon,
            stage=stage,
            calibrate=calibrate,
            lowercase=lowercase,
            progress=listener,
            checkpoint=Path(checkpoint) if checkpoint else None,
        )
    except KeyboardInterrupt:
        if checkpoint and Path(checkpoint).exists():
            listener.say(f"What was finished is kept in {checkpoint}; run the same command to go on from it.")
        raise
    if not is_first_process():
        return
    translator.save(output)
    _report(translator, output, time.monotonic() - started, as_json)


def _renamed(lm: str | None, tuning: str | None) -> str:
    """What `--preset cpu`, the spelling of version 0.1, means now.

    Raises:
        BilexError: --tuning says otherwise.
    """
    from bilex.cli.console import warn

    if tuning not in (None, "light"):
        raise BilexError(f"--preset {_OLD_LIGHT} means --tuning light; leave it out with --tuning {tuning}.")
    if lm is not None:
        warn(f"--preset {_OLD_LIGHT} is called --tuning light now; the old name goes with the next version.")
    return "light"


def _stage(lm: str | None, mixing: str | None, tuning: str | None, device: str) -> StageC2 | None:
    """The settings of stage C2, if a language model was asked for.

    Raises:
        BilexError: A wish makes no sense, or none without a language model.
    """
    if lm is None:
        if mixing is not None or tuning is not None:
            wish = f"--tuning {tuning}" if mixing is None else f"--lambda {mixing}"
            raise BilexError(f"{wish} is about the language model; name one with --lm, such as e5-small-q4.")
        return None
    from bilex.encoders.stage import StageC2

    weight: Mixing | None = None
    if mixing is not None:
        try:
            weight = "auto" if mixing == "auto" else float(mixing)
        except ValueError:
            raise BilexError(f"--lambda {mixing}: give a number from 0 to 1, or auto.") from None
    return StageC2(
        lm=lm,
        mixing=weight,
        preset=cast("Literal['auto', 'paper', 'light']", tuning or "auto"),
        device=device,
    )


def _report(translator: Any, output: str, seconds: float, as_json: bool) -> None:
    """A few translations, what the held-out seeds say, and what to do next."""
    from bilex.cli.console import show
    from bilex.cli.tables import answers_table, calibration_lines, unseen_words

    words = unseen_words(translator, _SHOWN_WORDS)
    answers = translator.translate(words, 3)
    if as_json:
        write_json_line(
            {
                "model": output,
                "seconds": round(seconds, 2),
                **translator.provenance,
                "calibration": translator.calibration.as_dict(),
                "samples": [answer.as_dict() for answer in answers],
            },
            indent=2,
        )
        return
    if answers:
        show(answers_table(answers, "Frequent words that are not among the seeds"))
    for line in calibration_lines(translator.calibration):
        show(line)
    show(f"Saved {output} after {seconds:.0f} s. Next: bilex translate {output} {' '.join(words[:2])}")
