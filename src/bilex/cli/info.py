"""`bilex info`: what is in a file or a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bilex.cli.kinds import kind_of
from bilex.cli.options import check_readable, examples, json_option, read_vectors, write_json_line

_FIRST_WORDS = 8


@click.command(
    epilog=examples(
        "bilex info en.vec.gz",
        "bilex info en-fi.tsv --source en.vec --target fi.vec   (how much of it the vectors cover)",
        "bilex info en-fi                                       (a model: how it was made, how good it is)",
        "bilex info en.vec --json",
        "bilex info --machine                                   (what a bug report needs)",
    )
)
@click.argument("path", type=click.Path(), required=False)
@click.option("--machine", is_flag=True, help="Describe this machine and the installed libraries instead.")
@click.option("--source", metavar="VECTORS", help="For a dictionary: the source vectors to compare with.")
@click.option("--target", metavar="VECTORS", help="For a dictionary: the target vectors to compare with.")
@click.option("--limit", type=click.IntRange(min=1), help="Read only so many of the first words.")
@click.option(
    "--keep-case", is_flag=True, help="Do not lower-case a dictionary and what it is compared with."
)
@json_option
def command(
    path: str | None,
    machine: bool,
    source: str | None,
    target: str | None,
    limit: int | None,
    keep_case: bool,
    as_json: bool,
) -> None:
    """Describe a file of word vectors, a dictionary, or a model folder; or, with --machine, this machine."""
    if machine == (path is not None):
        raise click.UsageError("name one file or folder, or give --machine.")
    if path is None:
        from bilex.cli.machine_facts import machine_facts

        _show(machine_facts(), "this machine", as_json)
        return
    check_readable(path, source, target)
    kind = kind_of(Path(path))
    if kind == "model":
        found = _model(path)
    elif kind == "vectors":
        found = _vectors(path, limit)
    else:
        found = _dictionary(path, source, target, limit, not keep_case)
    _show({"path": path, "kind": kind, **found} if as_json else found, f"{path}: {kind}", as_json)


def _show(found: dict[str, Any], title: str, as_json: bool) -> None:
    if as_json:
        write_json_line(found, indent=2)
        return
    from rich.table import Table

    from bilex.cli.console import show

    table = Table(title=title, title_justify="left", show_header=False)
    for name, value in found.items():
        table.add_row(name.replace("_", " "), _readable(value))
    show(table)


def _readable(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_readable(part)}" for key, part in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "–"
    return str(value)


def _model(path: str) -> dict[str, Any]:
    """What the model's card says, as figures; its checksums are verified on the way."""
    from bilex.translator import Translator

    translator = Translator.load(path)
    space = translator.space
    shown = dict(translator.provenance)
    calibration = translator.calibration.as_dict()
    for part in calibration.values():
        if isinstance(part, dict):
            part.pop("model")
    return {
        "source_words": len(space.source),
        "target_words": len(space.target),
        "dimension": space.dim,
        "metric": space.metric,
        "lowercase": translator.lowercase,
        "unknown_words_through": [source.kind for source in translator.unknown],
        **shown,
        "calibration": calibration,
        "bytes": sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file()),
    }


def _vectors(path: str, limit: int | None) -> dict[str, Any]:
    """Words, dimension, preprocessing, and all that the reader left out."""
    from bilex.cli.console import progress
    from bilex.vectors.core import row_norms

    vectors = read_vectors(path, limit, False, progress())
    norms = row_norms(vectors.vectors)
    report = vectors.report
    return {
        "format": report.format if report else None,
        "words": len(vectors),
        "dimension": vectors.dim,
        "preprocessing": list(vectors.preprocessing) or ["none recorded"],
        "rows_are_unit": bool(abs(norms - 1).max() < 1e-3),
        "mean_row_length": float(norms.mean()),
        "subwords": vectors.subwords is not None,
        "first_words": vectors.index_to_key[:_FIRST_WORDS],
        "left_out": report.sentences() if report else [],
    }


def _dictionary(
    path: str, source: str | None, target: str | None, limit: int | None, lowercase: bool
) -> dict[str, Any]:
    """Pairs and words, and how much two vocabularies cover."""
    from bilex.cli.console import progress
    from bilex.lexicon import Lexicon

    lexicon = Lexicon.read(path, lowercase=lowercase)
    golds = lexicon.golds()
    found: dict[str, Any] = {
        "pairs": len(lexicon),
        "source_words": len(golds),
        "target_words": len({target for _, target in lexicon.pairs}),
        "most_translations_of_a_word": max(map(len, golds.values()), default=0),
        "report": lexicon.report.sentence() if lexicon.report else "",
    }
    if source and target:
        listener = progress()
        left = read_vectors(source, limit, lowercase, listener)
        right = read_vectors(target, limit, lowercase, listener)
        coverage = lexicon.coverage(left.key_to_index, right.key_to_index)
        found["covered_pairs"] = coverage.covered
        found["coverage"] = coverage.fraction
        found["advice"] = coverage.advice().strip()
        found["source_words_missing"] = len(coverage.source_missing)
        found["target_words_missing"] = len(coverage.target_missing)
    return found
