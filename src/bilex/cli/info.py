"""`bilex info` and `bilex methods`: what a file, a model, this machine or a method is."""

from __future__ import annotations

import inspect
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import bilex
from bilex.cli import options as opt
from bilex.cli.console import progress, show, show_facts
from bilex.core.errors import BilexError
from bilex.core.machine import available_memory, cache_folder, library_versions, processor, total_memory
from bilex.core.reading import UTF16, open_source
from bilex.core.tables import table

if TYPE_CHECKING:
    from bilex.model.provenance import Provenance
    from bilex.model.storage import StoredModel

_FIRST_WORDS = 8
_GIGABYTE = 1 << 30
_TWO_NUMBERS = re.compile(
    r"(?:.*\s)?" + r"\s+".join([r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"] * 2) + r"\s*"
)


@opt.as_command(
    "bilex info en.vec.gz",
    "bilex info en-fi.tsv --source en.vec --target fi.vec   (how much of it the vectors cover)",
    "bilex info en-fi                                       (a model: how it was made, how good it is)",
    "bilex info en-fi --doubtful                            (seeds that the model finds unlikely)",
    "bilex info en-fi --verify                              (is every file as it was saved?)",
    "bilex info en.vec --json",
    "bilex info --machine                                   (what a bug report needs)",
)
def command(
    path: str | None = None,
    *,
    machine: bool = False,
    source: opt.InputOrNone = None,
    target: opt.InputOrNone = None,
    limit: opt.PositiveOrNone = None,
    keep_case: bool = False,
    layout: opt.DictionaryLayout,
    doubtful: bool = False,
    k: opt.Positive = 20,
    verify: bool = False,
    verbose: bool = False,
    json: bool = False,
) -> None:
    """Describe a file of word vectors, a dictionary, or a model folder; or, with --machine, this machine.

    Options:
        --machine: Describe this machine and the installed libraries instead.
        --limit: Read only the first N words.
        --json
    Of a model:
        --doubtful: Its most unlikely seeds, which may be wrong.
        -k: How many doubtful seeds.
        --verify: Compare all of its files with their checksums.
        --verbose: Also every setting, loss and measurement.
    Of a dictionary:
        --source VECTORS: The source vectors to compare with.
        --target VECTORS: The target vectors to compare with.
        --keep-case: Do not lower-case the dictionary and what it is compared with.
        --dictionary-format --columns --delimiter --split
    """
    if machine == (path is not None):
        raise click.UsageError("name one file or folder, or give --machine.")
    if path is None:
        _show(_machine(), "this machine", json)
        return
    kind = kind_of(Path(path))
    title = f"{path}: {kind}"
    if doubtful:
        _show_doubtful(path, kind, k, json)
        return
    if kind == "vectors":
        found = _vectors(path, limit)
    elif kind == "dictionary":
        lexicon = layout.read(path, not keep_case)
        found = _dictionary(lexicon)
        if source and target:
            listener = progress()
            sides = (opt.read_vectors(side, limit, not keep_case, listener) for side in (source, target))
            found |= _coverage(lexicon, *sides)
    else:
        from bilex.cli.align_many import summary
        from bilex.model.provenance import Provenance
        from bilex.model.storage import StoredModel

        model = StoredModel.open(path).check(verify=verify)
        if isinstance(model.provenance, Provenance):
            found = _everything(model, model.provenance)
            if not json:
                show_facts(_summary(path, model, model.provenance, verify), title)
                if not verbose:
                    return
                title = "everything"
        else:
            found, title = summary(model), f"{path}: model of {len(model.words)} languages"
        found["checksums_compared"] = verify
    _show({"path": path, "kind": kind, **found} if json else found, title, json)


def kind_of(path: Path) -> str:
    """What is at a path: "model", "many" (a model of many languages), "vectors" or "dictionary".

    Folders are known by their config.json, files by their suffix or else by their first lines: a line of
    vectors ends in two numbers or more, a line of a dictionary does not.
    """
    if path.is_dir():
        from bilex.model.storage import holds_model, is_model

        return "model" if is_model(path) else "many" if holds_model(path) else "vectors"
    from bilex.lexicon.formats import all_formats

    suffixes = {suffix for known in all_formats() for suffix in known.suffixes} | {".idx", ".dz"}
    if path.suffix.lower() in suffixes - {".txt"}:
        return "dictionary"
    with open_source(path) as source:
        head = source.head
    if head.startswith(UTF16):  # as spreadsheets save text
        return "dictionary"
    text = head.decode("utf-8-sig", "replace")
    if "\0" in text or "\ufffd" in text[:-1]:  # the last character may be cut
        return "vectors"
    lines = [line for line in text.splitlines()[:20] if line.strip()]
    return "dictionary" if lines and not any(map(_TWO_NUMBERS.fullmatch, lines)) else "vectors"


def _show(found: dict[str, Any], title: str, as_json: bool) -> None:
    if as_json:
        opt.write_json_line(found, indent=2)
    else:
        show_facts(found, title)


def _summary(path: str, found: StoredModel, made: Provenance, verified: bool) -> dict[str, Any]:
    """What a person wants to know first about a model."""
    from bilex.model.provenance import known, sentences

    seeds = next(iter(found.seeds.values()))
    preset, lm = made.settings.get("preset"), made.language_model
    compared = "every file is as its checksum says" if verified else "--verify compares files and checksums"
    case = "lower-cased" if found.config["lowercase"] else "case kept"
    return {
        "languages": " – ".join(made.language_names()),
        "method": made.method
        + (f", preset {preset}" if preset else "")
        + (f", and the language model {lm.lm}" if lm else ""),
        "words": " × ".join(f"{words:,}" for words in found.words.values()) + f", {case}",
        "seeds": f"{seeds.name}: {len(seeds):,} pairs, {made.seed_pairs_covered} with both words in the "
        "vectors" + (f"; {len(seeds.rejected):,} rejected pairs" if seeds.rejected else ""),
        "what to expect": "\n".join(sentences(made, path)),
        "confidences": next(iter(found.calibrations.values())).note,
        "made": f"{made.made} with bilex {made.bilex_version}, in {known(made.fit_seconds)} s",
        "from": f"{made.source_file or 'vectors of a program'} and "
        f"{made.target_file or 'vectors of a program'}",
        "size": f"{_bytes(found.path) / 1e6:,.0f} MB; {compared}",
        "more": f"bilex info {path} --verbose, or --doubtful for seeds that may be wrong",
    }


def _everything(found: StoredModel, made: Provenance) -> dict[str, Any]:
    """What the model's card says, as numbers."""
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
        **made.as_dict(),
        "calibration": calibration,
        "bytes": _bytes(found.path),
    }


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _show_doubtful(path: str, kind: str, count: int, as_json: bool) -> None:
    from bilex.model.answers import doubtful_seeds

    if kind != "model":
        raise BilexError(f"{path}: --doubtful is about a model's seeds; give a model folder.")
    translator = bilex.Translator.load(path)
    found = doubtful_seeds(translator, count)
    if as_json:
        for seed in found:
            opt.write_json_line(vars(seed))
        return
    one, other = translator.languages
    rows = [(s.source, s.target, f"{s.score:.3f}", s.own_target, s.own_source) for s in found]
    headings = (one, other, "score", f"the model's {other}", f"the model's {one}")
    show(table(headings, rows, "Seeds that the model finds least likely"))
    show("To reject wrong ones, write them with 'no' in a third column, and align with --corrections.")


def _vectors(path: str, limit: int | None) -> dict[str, Any]:
    from bilex.vectors.stored import row_norms

    vectors = opt.read_vectors(path, limit, False, progress())
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


def _dictionary(lexicon: bilex.Lexicon) -> dict[str, Any]:
    report, translations = lexicon.report, lexicon.translations()
    return {
        "pairs": len(lexicon),
        "source_words": len(translations),
        "target_words": len({target for _, target in lexicon.pairs}),
        "most_translations_of_a_word": max(map(len, translations.values()), default=0),
        "columns": list(report.header) if report and report.header else ["no names"],
        "first_pairs": [" – ".join(pair) for pair in lexicon.pairs[:3]],
        "repeated_pairs": report.repeated if report else 0,
        "left_out": report.sentences() if report else [],
    }


def _coverage(lexicon: bilex.Lexicon, source: bilex.WordVectors, target: bilex.WordVectors) -> dict[str, Any]:
    coverage = lexicon.coverage(source.key_to_index, target.key_to_index)
    return {
        "covered_pairs": coverage.covered,
        "coverage": coverage.fraction,
        "advice": coverage.advice().strip(),
        "source_words_missing": len(coverage.source_missing),
        "target_words_missing": len(coverage.target_missing),
    }


def _machine() -> dict[str, Any]:
    import torch

    from bilex.search.low_precision.operands import precisions

    here = processor()
    gpu = torch.cuda.get_device_properties() if torch.cuda.is_available() else None
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
        "gpu": gpu
        and {
            "name": gpu.name,
            "count": torch.cuda.device_count(),
            "memory_gigabytes": round(gpu.total_memory / _GIGABYTE, 1),
            "compute_capability": f"{gpu.major}.{gpu.minor}",
            "cuda": torch.version.cuda,
        },
        "cache_folder": str(cache_folder()),
        "libraries": library_versions(),
    }


@opt.as_command("bilex methods", "bilex methods c1", "bilex methods --json")
def methods(
    name: Annotated[str | None, {"type": str, "shell_complete": opt.complete}] = None, *, json: bool = False
) -> None:
    """List the alignment methods, or the settings and presets of the method called NAME."""
    chosen = {name: bilex.get_method(name)} if name else bilex.methods()
    if json:
        described = {key: _described(method) for key, method in chosen.items()}
        opt.write_json_line(described[name] if name else described, indent=2)
        return
    if not name:
        rows = [(key, "yes" if one.needs_seeds else "no", one.summary) for key, one in chosen.items()]
        show(table(("method", "needs seeds", "what it does"), rows))
        return
    method = chosen[name]
    explained, settings = explanations(method), method.settings_fields()
    rows = []
    for key, default in settings.items():
        shown = "by preset" if default is None and method.presets else str(default)
        rows.append((key, shown, explained.get(key, "")))
    show(table(("setting", "default", "what it is"), rows, f"{name}: {method.summary}"))
    if method.presets:
        show(table(("preset", "what it is"), method.presets.items(), "--preset"))
    show(f"Set one with --set NAME=VALUE, for example: --set {next(iter(settings))}=...")


def explanations(method: type[Any]) -> dict[str, str]:
    """What each setting of a method is, from the docstrings of its class and the classes it is made of."""
    found: dict[str, str] = {}
    for cls in reversed(method.__mro__):
        doc = inspect.cleandoc(vars(cls).get("__doc__") or "")
        section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", doc, re.M)
        for entry in re.split(r"^ {4}(?=\w+: )", section[1], flags=re.M) if section else ():
            name, colon, text = entry.partition(": ")
            if colon and name.isidentifier():
                found[name] = " ".join(text.split())
    return found


def _described(method: Any) -> dict[str, Any]:
    facts = ("summary", "needs_seeds", "fewest_pairs", "equal_dimensions", "metric")
    return {
        **{name: getattr(method, name) for name in facts},
        "settings": method.settings_fields(),
        "explanations": explanations(method),
        "presets": method.presets,
    }
