"""`bilex info`: what is in a file or a model."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import bilex
from bilex.cli.dictionaries import DictionaryLayout, dictionary_options
from bilex.cli.kinds import kind_of
from bilex.cli.options import (
    check_readable,
    examples,
    json_option,
    limit_option,
    read_vectors,
    write_json_line,
)
from bilex.core.errors import BilexError
from bilex.core.machine import available_memory, cache_folder, library_versions, processor, total_memory

if TYPE_CHECKING:
    from bilex.model import Translator
    from bilex.model.provenance import Provenance
    from bilex.model.storage import Description


_FIRST_WORDS = 8


@click.command(
    epilog=examples(
        "bilex info en.vec.gz",
        "bilex info en-fi.tsv --source en.vec --target fi.vec   (how much of it the vectors cover)",
        "bilex info en-fi                                       (a model: how it was made, how good it is)",
        "bilex info en-fi --doubtful                            (seeds that the model finds unlikely)",
        "bilex info en-fi --verify                              (is every file as it was saved?)",
        "bilex info en.vec --json",
        "bilex info --machine                                   (what a bug report needs)",
    )
)
@click.argument("path", type=click.Path(), required=False)
@click.option("--machine", is_flag=True, help="Describe this machine and the installed libraries instead.")
@click.option("--source", metavar="VECTORS", help="For a dictionary: the source vectors to compare with.")
@click.option("--target", metavar="VECTORS", help="For a dictionary: the target vectors to compare with.")
@limit_option("Read only so many of the first words.")
@click.option(
    "--keep-case", is_flag=True, help="Do not lower-case a dictionary and what it is compared with."
)
@dictionary_options
@click.option("--doubtful", is_flag=True, help="Of a model: its most unlikely seeds, which may be wrong.")
@click.option(
    "-k", "count", type=click.IntRange(min=1), default=20, show_default=True, help="How many doubtful seeds."
)
@click.option(
    "--verify",
    is_flag=True,
    help="Of a model: compare all of its files with their checksums.",
)
@click.option("--verbose", is_flag=True, help="Of a model: also every setting, loss and measurement.")
@json_option
def command(
    path: str | None,
    machine: bool,
    source: str | None,
    target: str | None,
    limit: int | None,
    keep_case: bool,
    layout: DictionaryLayout,
    doubtful: bool,
    count: int,
    verify: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Describe a file of word vectors, a dictionary, or a model folder; or, with --machine, this machine."""
    if machine == (path is not None):
        raise click.UsageError("name one file or folder, or give --machine.")
    if path is None:
        _show(machine_facts(), "this machine", as_json)
        return
    check_readable(path, source, target)
    kind = kind_of(Path(path))
    if kind == "model":
        _show_model(path, doubtful=doubtful, count=count, verbose=verbose, verify=verify, as_json=as_json)
        return
    if kind == "many" and not doubtful:
        _show_many(path, verify, as_json)
        return
    if doubtful:
        raise BilexError(f"{path}: --doubtful is about a model's seeds; give a model folder.")
    if kind == "vectors":
        found = _vectors(path, limit)
    else:
        found = _dictionary(path, source, target, limit, not keep_case, layout)
    _show({"path": path, "kind": kind, **found} if as_json else found, f"{path}: {kind}", as_json)


def _show(found: dict[str, Any], title: str, as_json: bool = False) -> None:
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


def _show_many(path: str, verify: bool, as_json: bool) -> None:
    """A model of many languages on one screen."""
    from bilex.cli.align_many import summary
    from bilex.model.storage import describe_many

    found = {**summary(describe_many(path, verify=verify)), "checksums_compared": verify}
    title = f"{path}: model of {len(found['languages'])} languages"
    _show({"path": path, "kind": "many", **found} if as_json else found, title, as_json)


def _show_model(path: str, *, doubtful: bool, count: int, verbose: bool, verify: bool, as_json: bool) -> None:
    """A model on one screen, or everything about it, or its doubtful seeds."""
    if doubtful:
        from bilex.model import Translator

        _show_doubtful(Translator.load(path), count, as_json)
        return
    from bilex.model.storage import describe

    found = describe(path, verify=verify)
    if as_json:
        facts = {"path": path, "kind": "model", **_everything(path, found), "checksums_compared": verify}
        _show(facts, "", as_json)
    else:
        _show(_summary(path, found, verify), f"{path}: model")
        if verbose:
            _show(_everything(path, found), "everything")


def _summary(path: str, found: Description[Provenance], verified: bool) -> dict[str, Any]:
    """What a person wants to know first."""
    from bilex.model.card import known, sentences

    made, seeds = found.provenance, next(iter(found.seeds.values()))
    form, lm = made.trial.form, made.language_model
    compared = "every file is as its checksum says" if verified else "--verify compares files and checksums"
    case = "lower-cased" if found.config["lowercase"] else "case kept"
    return {
        "languages": " – ".join(made.language_names()),
        "method": made.method
        + (f", form {form}, which held-out seeds chose" if form else "")
        + (f", and the language model {lm.lm}" if lm else ""),
        "words": " × ".join(f"{words:,}" for words in found.words.values()) + f", {case}",
        "seeds": f"{seeds.name}: {len(seeds):,} pairs, {made.seed_pairs_covered} with both words in the "
        "vectors" + (f"; {len(seeds.rejected):,} rejected pairs" if seeds.rejected else ""),
        "what to expect": "\n".join(sentences(made, path)),
        "confidences": next(iter(found.calibrations.values())).note,
        "made": f"{made.made} with bilex {made.bilex_version}, in {known(made.fit_seconds)} s",
        "from": f"{made.source_file or 'vectors of a program'} and "
        f"{made.target_file or 'vectors of a program'}",
        "size": f"{_bytes(path) / 1e6:,.0f} MB; {compared}",
        "more": f"bilex info {path} --verbose, or --doubtful for seeds that may be wrong",
    }


def _show_doubtful(translator: Translator, count: int, as_json: bool) -> None:
    from bilex.cli.console import show
    from bilex.model.known import doubtful_seeds

    found = doubtful_seeds(translator, count)
    if as_json:
        for seed in found:
            write_json_line(vars(seed))
        return
    from rich.table import Table

    one, other = translator.languages
    table = Table(title="Seeds that the model finds least likely", title_justify="left")
    for heading in (one, other, "score", f"its own {other}", f"its own {one}"):
        table.add_column(heading, justify="right" if heading == "score" else "left")
    for seed in found:
        table.add_row(seed.source, seed.target, f"{seed.score:.3f}", seed.own_target, seed.own_source)
    show(table)
    show("Wrong ones can be rejected: write them with 'no' in a third column, and align with --corrections.")


def _everything(path: str, found: Description[Provenance]) -> dict[str, Any]:
    """What the model's card says, as figures."""
    calibration = next(iter(found.calibrations.values())).as_dict()
    source_words, target_words = found.words.values()
    for part in calibration.values():
        if isinstance(part, dict):
            part.pop("model")
    return {
        "source_words": source_words,
        "target_words": target_words,
        "dimension": found.config["dim"],
        "metric": found.config["metric"],
        "lowercase": found.config["lowercase"],
        "unknown_words_through": found.config["unknown"],
        **found.provenance.as_dict(),
        "calibration": calibration,
        "bytes": _bytes(path),
    }


def _bytes(path: str) -> int:
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


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
    path: str,
    source: str | None,
    target: str | None,
    limit: int | None,
    lowercase: bool,
    layout: DictionaryLayout,
) -> dict[str, Any]:
    """Pairs and words, and how much two vocabularies cover."""
    from bilex.cli.console import progress

    lexicon = layout.read(path, lowercase)
    report = lexicon.report
    golds = lexicon.translations()
    found: dict[str, Any] = {
        "pairs": len(lexicon),
        "source_words": len(golds),
        "target_words": len({target for _, target in lexicon.pairs}),
        "most_translations_of_a_word": max(map(len, golds.values()), default=0),
        "columns": list(report.header) if report and report.header else ["no names"],
        "first_pairs": [" – ".join(pair) for pair in lexicon.pairs[:3]],
        "report": report.sentence() if report else "",
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


_GIGABYTE = 1 << 30


def machine_facts() -> dict[str, Any]:
    """The processor, memory, GPU and libraries as plain values."""
    import torch

    from bilex.search.low_precision.operands import precisions

    here = processor()
    return {
        "bilex": bilex.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "processor": here.name,
        "vector_instructions": sorted(here.features),
        "torch_uses": torch.backends.cpu.get_cpu_capability(),
        "threads": here.threads,
        "torch_threads": torch.get_num_threads(),
        "memory_gigabytes": round(total_memory() / _GIGABYTE, 1),
        "memory_available_gigabytes": round(available_memory() / _GIGABYTE, 1),
        "arithmetic": precisions(),
        "gpu": _gpu(),
        "cache_folder": str(cache_folder()),
        "libraries": library_versions(),
    }


def _gpu() -> dict[str, Any] | None:
    """The GPU that torch would take; None if it sees none."""
    import torch

    if not torch.cuda.is_available():
        return None
    found = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "name": found.name,
        "count": torch.cuda.device_count(),
        "memory_gigabytes": round(found.total_memory / _GIGABYTE, 1),
        "compute_capability": f"{found.major}.{found.minor}",
        "cuda": torch.version.cuda,
    }
