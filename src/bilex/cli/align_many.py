"""`bilex align-many`: vectors of several languages become one model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilex.cli.dictionaries import DictionaryLayout, dictionary_options
from bilex.cli.options import (
    Grouped,
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
from bilex.core import typed_json
from bilex.core.errors import BilexError
from bilex.core.languages import language_of_file

if TYPE_CHECKING:
    from bilex.model.many import ManyLanguages
    from bilex.model.provenance import ManyProvenance
    from bilex.model.storage import Description, Two

_FEWEST = 2


@click.command(
    cls=Grouped,
    groups={
        "Input": ("seeds_dir", "codes", "limit"),
        "Method": ("preset", "frequent"),
        "Output": ("output", "force", "as_json"),
    },
    epilog=examples(
        "bilex align-many en.vec fi.vec ru.vec fr.vec --seeds-dir seeds -o many",
        "bilex translate many koira --from fi --to ru",
        "bilex evaluate many --tests tests",
    ),
)
@click.argument("vectors", nargs=-1, required=True, type=click.Path())
@click.option(
    "--seeds-dir",
    metavar="FOLDER",
    required=True,
    help="Seed dictionaries of any two of the languages, named like en-fi.tsv.",
)
@click.option(
    "--codes", metavar="A,B,…", help="The languages of the files.  [default: taken from their names]"
)
@dictionary_options
@click.option("-o", "--output", metavar="MANY", required=True, help="The model folder to write.")
@click.option("--force", is_flag=True, help="Replace an earlier model of that name.")
@words_limit_option
@click.option(
    "--preset",
    metavar="NAME",
    default="auto",
    show_default=True,
    help="A preset of c1: auto leaves the choice to held-out seeds; quick, careful, best, paper.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any setting of c1.")
@click.option(
    "--frequent",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="How many of the most frequent words of each language take part in the fit.",
)
@click.option("--keep-case", is_flag=True, help="Do not lower-case vectors and dictionaries.")
@click.option(
    "--calibrate/--no-calibrate",
    default=True,
    show_default=True,
    help="Learn confidences on held-out seeds, in the trial that also chooses what is auto.",
)
@click.option(
    "--checkpoint", metavar="FOLDER", help="Keep the state here, and resume from it if it is there."
)
@device_option
@seed_option
@json_option
def command(
    vectors: tuple[str, ...],
    seeds_dir: str,
    codes: str | None,
    layout: DictionaryLayout,
    output: str,
    force: bool,
    limit: int,
    preset: str,
    settings: tuple[str, ...],
    frequent: int,
    keep_case: bool,
    calibrate: bool,
    checkpoint: str | None,
    device: str,
    seed: int,
    as_json: bool,
) -> None:
    """Align several languages together: VECTORS of each and dictionaries of some pairs become one model.

    Not every two languages need a dictionary, as long as those that there are connect all languages. The
    maps of all are learned together with the method c1, from the seeds of all and from the pairs that every
    two languages then find, so that pairs with few seeds or none are helped by the others.
    """
    check_readable(*vectors, seeds_dir)
    check_device(device)
    check_output(output, force, (*vectors, seeds_dir))
    from bilex.aligners.advanced import check_connected
    from bilex.aligners.c1 import C1
    from bilex.cli.console import interruptible, progress
    from bilex.cli.settings import parse_settings
    from bilex.core.files import check_writable
    from bilex.model.many.core import read_dictionaries
    from bilex.model.many.fitting import align_languages

    if checkpoint:
        check_writable(Path(checkpoint) / "rounds")
    chosen = parse_settings(C1, (f"preset={preset}", *settings))
    names = codes_of(vectors, codes)
    lowercase = not keep_case

    def read(path: Path, two: Two) -> object:
        return layout.read(str(path), lowercase, two)

    seeds = read_dictionaries(seeds_dir, names, read)  # type: ignore[arg-type]
    check_connected(names, [two for two, lexicon in seeds.items() if len(lexicon)])
    listener = progress()
    words = {
        code: read_vectors(path, limit, lowercase, listener)
        for code, path in zip(names, vectors, strict=True)
    }
    for (a, b), lexicon in seeds.items():
        if len(lexicon):
            check_coverage(lexicon, words[a], words[b])
    with interruptible(checkpoint, listener):
        many = align_languages(
            words,
            seeds,
            C1(**{**chosen, "device": device, "seed": seed}),
            frequent=frequent,
            calibrated=calibrate,
            lowercase=lowercase,
            progress=listener,
            checkpoint=Path(checkpoint) if checkpoint else None,
        )
    many.save(output, progress=listener)
    report_many(many, output, as_json)


def codes_of(vectors: Sequence[str], codes: str | None) -> list[str]:
    """The code of each file's language, as given or as its name says."""
    if len(vectors) < _FEWEST:
        raise BilexError("align-many needs the vectors of at least two languages.")
    if codes is not None:
        names = [name.strip() for name in codes.split(",")]
        if len(names) != len(vectors):
            raise BilexError(f"--codes {codes}: names {len(names)} languages for {len(vectors)} files.")
    else:
        found = [language_of_file(path) for path in vectors]
        for path, name in zip(vectors, found, strict=True):
            if name is None:
                raise BilexError(
                    f"{path}: its name does not say which language it is; give all with --codes en,fi,…."
                )
        names = [name for name in found if name is not None]
    for name in names:
        if names.count(name) > 1:
            raise BilexError(
                f"two files are of the language '{name}'; give each language once, or name them with --codes."
            )
    return names


def check_output(output: str, force: bool, inputs: Sequence[str]) -> None:
    """Make sure, before the work, that the model may be written."""
    from bilex.core.files import check_not_an_input
    from bilex.model.storage import check_destination, holds_model

    check_not_an_input(output, *inputs)
    check_destination(output)
    if holds_model(output) and not force:
        raise BilexError(f"{output}: is a model already; choose another name, or replace it with --force.")


def _held_out(found: Description[ManyProvenance]) -> dict[tuple[str, str], list[float]]:
    """P@1 of held-out seeds, forward and backward, by two languages."""
    return {
        two: [round(part.accuracy, 4) for (_, method), part in learned.parts.items() if method == "csls"]
        for two, learned in found.calibrations.items()
        if learned.parts
    }


def summary(found: Description[ManyProvenance]) -> dict[str, Any]:
    """What a model of many languages is, for people and for JSON."""
    made = found.provenance
    return {
        "languages": dict(found.words),
        "seed_pairs": {f"{a}-{b}": len(seeds) for (a, b), seeds in found.seeds.items()},
        "held_out_p@1": {f"{a}-{b}": shares for (a, b), shares in _held_out(found).items()},
        "method": made.method,
        "report": None if made.report is None else typed_json.as_json(made.report),
    }


def report_many(many: ManyLanguages, output: str, as_json: bool) -> None:
    """What was made, and what to do next."""
    from bilex.model.storage import Description

    found = Description.of(many)
    if as_json:
        write_json_line({"model": output, **summary(found)}, indent=2)
        return
    from bilex.cli.console import show
    from bilex.core.languages import language_name

    for two, (forward, backward) in _held_out(found).items():
        a, b = map(language_name, two)
        show(
            f"Held-out seeds: the first answer is right for {forward:.0%} ({a} to {b}) and {backward:.0%} "
            f"({b} to {a})."
        )
    names = ", ".join(f"{language_name(code)} {words:,}" for code, words in found.words.items())
    first, second = many.languages[:2]
    word = many.vocabularies[first].index_to_key[0]
    show(f"Saved {output}: {names} words. Next: bilex translate {output} {word} --from {first} --to {second}")
