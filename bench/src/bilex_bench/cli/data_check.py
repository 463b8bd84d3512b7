"""`bilex data check`: what a data folder holds and what to be wary of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bilex.cli.options import examples, json_option, write_json_line
from bilex.core.errors import BilexError

if TYPE_CHECKING:
    from rich.table import Table

    from bilex_bench.datasets.checking import DictionaryCheck, FolderCheck

_WORDS = 200_000


@click.command(
    epilog=examples(
        "bilex data check data",
        "bilex data check xling-eval/bli_datasets --vectors vectors",
        "bilex data check data --vectors 'vectors/cc.{}.300.vec.gz' --limit 100000",
        "bilex data check data --json > check.json",
    )
)
@click.argument("folder", type=click.Path())
@click.option(
    "--vectors",
    metavar="FOLDER",
    help="Where the vectors are, if not there; also a file name with {} in the place of the language.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_WORDS,
    show_default=True,
    help="Compare with so many of the first words of each language.",
)
@json_option
def command(folder: str, vectors: str | None, limit: int, as_json: bool) -> None:
    """Check a data FOLDER: dictionaries, vectors, coverage, repeated pairs, leaks from test to seeds.

    The exit code is 0, with warnings or without, if a benchmark can be run on at least one pair, else 2.
    """
    from bilex.cli.console import progress, show, warn
    from bilex_bench.datasets.checking import check_folder
    from bilex_bench.datasets.folder import DataFolder

    listener = progress()
    checks = [check_folder(part, limit, listener) for part in DataFolder.open_all(folder, vectors=vectors)]
    if as_json:
        write_json_line([check.as_dict() for check in checks], indent=2)
    else:
        for check in checks:
            if check.vectors:
                show(_vectors_table(check))
            show(_pairs_table(check))
        for sentence in dict.fromkeys(sentence for check in checks for sentence in check.warnings):
            warn(sentence)
    if not any(check.usable for check in checks):
        lacking = "no dictionary" if not checks else "no pair with a test dictionary that vectors cover"
        raise BilexError(
            f"{folder}: has nothing to run a benchmark on, {lacking}; see docs/reference/data.md."
        )


def _vectors_table(check: FolderCheck) -> Table:
    from rich.table import Table

    table = Table(title="vectors", title_justify="left")
    for name in ("language", "words", "dim", "file"):
        table.add_column(name, justify="right" if name in ("words", "dim") else "left", overflow="fold")
    for language, found in check.vectors.items():
        table.add_row(language, f"{found.words:,}", str(found.dim), found.path)
    return table


def _pairs_table(check: FolderCheck) -> Table:
    """One row per pair: of each dictionary the covered pairs of all, and of seeds the test pairs in them."""
    from rich.table import Table

    from bilex_bench.datasets.checking import TEST

    seeds = list(dict.fromkeys(name for pair in check.pairs for name in pair.dictionaries if name != TEST))
    table = Table(
        title=f"{check.path} ({check.layout}): {len(check.pairs)} pairs, {len(check.usable)} can be run",
        caption="Pairs with both words in the vectors, of all. Leaked: test pairs that stand in the seeds. "
        "Repeated: pairs that stand there again, in the order of the columns.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("pair")
    table.add_column(TEST, justify="right")
    for name in seeds:
        table.add_column(f"seeds {name}", justify="right")
        table.add_column("leaked", justify="right")
    table.add_column("repeated", justify="right")
    for pair in check.pairs:
        cells = [pair.pair, _coverage(pair.dictionaries.get(TEST))]
        for name in seeds:
            found = pair.dictionaries.get(name)
            cells += [_coverage(found), "" if found is None or found.leaked is None else str(found.leaked)]
        repeated = (pair.dictionaries.get(name) for name in [TEST, *seeds])
        table.add_row(*cells, " ".join("–" if found is None else str(found.repeated) for found in repeated))
    return table


def _coverage(found: DictionaryCheck | None) -> str:
    if found is None:
        return ""
    return f"{'–' if found.covered is None else found.covered}/{found.pairs}"
