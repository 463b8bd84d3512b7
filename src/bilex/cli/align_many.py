"""`bilex align-many` and `bilex join`: one model of several languages, from vectors or from models of two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bilex
from bilex.cli import options as opt
from bilex.cli.align import parse_settings
from bilex.cli.console import progress, show, warn
from bilex.core.errors import BilexError
from bilex.core.languages import language_name, language_of_file
from bilex.core.typed_json import plain

if TYPE_CHECKING:
    from bilex.core.progress import Progress
    from bilex.model.storage import StoredModel


@opt.as_command(
    "bilex align-many en.vec fi.vec ru.vec fr.vec --seeds-dir seeds -o many",
    "bilex translate many koira --from fi --to ru",
    "bilex evaluate many --tests tests",
)
def command(
    vectors: tuple[str, ...],
    *,
    seeds_dir: opt.Input,
    codes: str | None = None,
    layout: opt.DictionaryLayout,
    output: str,
    force: bool = False,
    limit: opt.Positive = 200_000,
    preset: str = "auto",
    set_: tuple[str, ...] = (),
    frequent: opt.Positive = 20_000,
    keep_case: bool = False,
    calibrate: bool = True,
    checkpoint: opt.Checkpoint = None,
    device: opt.Device = "auto",
    random_seed: opt.RandomSeed = 0,
    json: bool = False,
) -> None:
    """Align several languages together: VECTORS of each and dictionaries of some pairs become one model.

    Not every two languages need a dictionary, as long as the dictionaries connect all languages. The
    maps of all are learned together with the method c1, from the seeds of all and from the pairs that every
    two languages then find, so that pairs with few seeds or none are helped by the others.

    Input:
        --seeds-dir FOLDER: Seed dictionaries of any two of the languages, named like en-fi.tsv.
        --codes A,B,…: The languages of the files.  [default: taken from their names]
        --limit
    Method:
        --preset NAME: A preset of c1: auto, quick, careful, best or paper.
        --frequent: How many of the most frequent words of each language take part in the fit.
        --set NAME=VALUE: Any setting of c1.
    Output:
        -o, --output MANY: The model folder to write.
        --force
        --checkpoint
        --json
    Advanced:
        --keep-case: Do not lower-case vectors and dictionaries.
    """
    opt.check_model_output(output, force, *vectors, seeds_dir)
    from bilex.aligners.advanced import check_connected
    from bilex.model.jointly import align_languages
    from bilex.model.many import read_dictionaries

    chosen = parse_settings(bilex.C1, (f"preset={preset}", *set_))
    names = _codes(vectors, codes)
    lowercase = not keep_case
    seeds = read_dictionaries(seeds_dir, names, lambda path, two: layout.read(str(path), lowercase, two))
    check_connected(names, [two for two, lexicon in seeds.items() if len(lexicon)])
    listener = progress()
    files = zip(names, vectors, strict=True)
    words = {code: opt.read_vectors(path, limit, lowercase, listener) for code, path in files}
    for (a, b), lexicon in seeds.items():
        if len(lexicon):
            opt.check_coverage(lexicon, words[a], words[b])
    many = align_languages(
        words,
        seeds,
        bilex.C1(**{**chosen, "device": device, "seed": random_seed}),
        frequent=frequent,
        calibrated=calibrate,
        lowercase=lowercase,
        progress=listener,
        checkpoint=Path(checkpoint) if checkpoint else None,
    )
    _save(many, output, json, listener)


@opt.as_command("bilex join en-fi en-ru en-fr -o many", "bilex translate many koira --from fi --to ru")
def join(models: tuple[str, ...], *, output: str, force: bool = False, json: bool = False) -> None:
    """Join MODELS of two languages into one that translates from any language to any.

    The models must share languages, as en-fi, en-ru and en-fr share English. Nothing is learned anew: the
    space of each model is rotated onto those of the others, and languages that no model holds together are
    translated through the common space.

    Options:
        -o, --output MANY: The model folder to write.
        --force --json
    """
    opt.check_model_output(output, force, *models)
    from bilex.model import joining

    opened = {model: bilex.Translator.load(model) for model in dict.fromkeys(models)}
    pairs: dict[frozenset[str], str] = {}
    for model, translator in opened.items():
        first = pairs.setdefault(frozenset(translator.language_codes), model)
        if first != model and translator.language_codes:
            warn(f"{first} and {model} are models of the same two languages: usually one of them is enough.")
    _save(joining.join(opened), output, json, progress())


def _codes(vectors: Sequence[str], codes: str | None) -> list[str]:
    """The code of each file's language, as given or as its name says."""
    if len(vectors) < 2:
        raise BilexError("align-many needs the vectors of at least two languages.")
    names = [language_of_file(path) or "" for path in vectors]
    if codes:
        names = [name.strip() for name in codes.split(",")]
    if len(names) != len(vectors):
        raise BilexError(f"--codes {codes}: names {len(names)} languages for {len(vectors)} files.")
    for name, path in zip(names, vectors, strict=True):
        if not name:
            unknown = "its name does not say which language it is"
            raise BilexError(f"{path}: {unknown}; give all with --codes en,fi,….")
        if names.count(name) > 1:
            advice = "give each language once, or name them with --codes"
            raise BilexError(f"two files are of the language '{name}'; {advice}.")
    return names


def summary(found: StoredModel | bilex.ManyLanguages) -> dict[str, Any]:
    """What a model of many languages is, for people and for JSON; P@1 is that of either direction."""
    held_out: dict[str, list[float]] = {}
    for (a, b), learned in found.calibrations.items():
        for (_, retrieval), part in learned.parts.items():
            if retrieval == "csls":
                held_out.setdefault(f"{a}-{b}", []).append(round(part.accuracy, 4))
    return {
        "languages": dict(found.words),
        "seed_pairs": {f"{a}-{b}": len(seeds) for (a, b), seeds in found.seeds.items()},
        "held_out_p@1": held_out,
        "method": found.provenance.method,
        "report": plain(found.provenance.report),
    }


def _save(many: bilex.ManyLanguages, output: str, as_json: bool, listener: Progress) -> None:
    """Write a model; report what was made, and what to do next."""
    from bilex.model.provenance import example_words

    many.save(output, progress=listener)
    found = summary(many)
    if as_json:
        opt.write_json_line({"model": output, **found}, indent=2)
        return
    for two, (forward, backward) in found["held_out_p@1"].items():
        a, b = map(language_name, two.split("-"))
        shares = f"{forward:.0%} ({a} to {b}) and {backward:.0%} ({b} to {a})"
        show(f"Held-out seeds: the first answer is right for {shares}.")
    names = ", ".join(f"{language_name(code)} {words:,}" for code, words in many.words.items())
    first, second = many.languages[:2]
    vocabulary = many.vocabularies[first].index_to_key
    word = next(iter(example_words(vocabulary, 1)), vocabulary[0])
    show(f"Saved {output}: {names} words. Next: bilex translate {output} {word} --from {first} --to {second}")
