"""`bilex data list`: the data sets that can be fetched, and what of them is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilex.cli.options import check_readable, examples, json_option, write_json_line

if TYPE_CHECKING:
    from bilex_bench.datasets.catalogue import KnownData


@click.command(
    epilog=examples(
        "bilex data list",
        "bilex data list data           (and what of them is in the folder 'data')",
        "bilex data list --json",
    )
)
@click.argument("folder", required=False, type=click.Path())
@json_option
def command(folder: str | None, as_json: bool) -> None:
    """List the known data sets: what they are, licence, size, address; what of them is in FOLDER."""
    check_readable(folder)
    from bilex_bench.datasets.catalogue import KNOWN

    rows = [_described(data, Path(folder) if folder else None) for data in KNOWN]
    if as_json:
        write_json_line(rows, indent=2)
        return
    from rich.table import Table

    from bilex.cli.console import show

    table = Table(show_header=False, show_lines=True)
    for row in rows:
        facts = {name: value for name, value in row.items() if name not in ("name", "what", "there")}
        if folder:
            facts[f"in {folder}"] = ", ".join(row["there"]) or "nothing"
        table.add_row(row["name"], "\n".join([row["what"], *(f"{k}: {v}" for k, v in facts.items())]))
    show(table)


def _described(data: KnownData, folder: Path | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": data.name,
        "what": data.what,
        "licence": data.licence,
        "size": data.size,
        "address": data.address,
        "checksums": data.checksums,
    }
    return row if folder is None else row | {"there": _there(data, folder)}


def _there(data: KnownData, folder: Path) -> list[str]:
    """The languages of vectors, or the pairs of dictionaries, that a folder has of a data set."""
    from bilex_bench.datasets.catalogue import VECTORS
    from bilex_bench.datasets.folder import find_dictionaries, find_vectors

    if data.kind == VECTORS:
        files = find_vectors(folder, folder / VECTORS)
        if data.packages:
            notes = {code: path.with_suffix(".source.json") for code, path in files.items()}
            return [language for language, note in notes.items() if note.is_file()]
        sign = data.name.removeprefix("fasttext-")
        return [language for language, path in files.items() if f"{sign}.{language}." in path.name]
    return [pair for part in find_dictionaries(folder) if part.layout == data.name for pair in part.pairs]
