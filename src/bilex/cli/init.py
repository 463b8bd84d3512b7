"""`bilex init`: questions about a project, answered once and kept in bilex.toml."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bilex.cli.options import examples
from bilex.cli.project import FILE, TABLE
from bilex.core.errors import BilexError
from bilex.core.files import write_text
from bilex.core.languages import code_of, language_name

_PURPOSES = {
    "look": ('preset = "quick"', "a first look in a fraction of the time"),
    "dictionary": ('preset = "auto"', "the default: settings chosen on held-out seeds"),
    "best": ('lm = "e5-small-q4"', "adds a language model (stage C2): better, and slower without a GPU"),
}


@click.command(epilog=examples("bilex init", "bilex init --purpose look", "bilex align"))
@click.option("--source-language", prompt="Language to translate from (a code such as en)", metavar="CODE")
@click.option("--target-language", prompt="Language to translate to (a code such as fi)", metavar="CODE")
@click.option("--source-vectors", prompt="Word vectors of the first language (a file)", metavar="FILE")
@click.option("--target-vectors", prompt="Word vectors of the second language (a file)", metavar="FILE")
@click.option(
    "--seeds",
    prompt="Seed dictionary, one word pair per line (a file; nothing if you have none)",
    default="",
    show_default=False,
    metavar="FILE",
)
@click.option(
    "--purpose",
    type=click.Choice(list(_PURPOSES)),
    prompt="Purpose: a first look, a dictionary, or the best one",
    default="dictionary",
)
def command(
    source_language: str,
    target_language: str,
    source_vectors: str,
    target_vectors: str,
    seeds: str,
    purpose: str,
) -> None:
    """Ask for languages, files and purpose, and write bilex.toml in this folder.

    Afterwards 'bilex align' without arguments makes the model that the file describes.
    """
    if Path(FILE).exists():
        raise BilexError(f"{FILE}: is there already; edit it, or move it away and run 'bilex init' again.")
    for path in filter(None, (source_vectors, target_vectors, seeds)):
        if not Path(path).exists():
            raise BilexError(f"{path}: there is no such file; check the name.")
    source, target = (code_of(code) or code.strip() for code in (source_language, target_language))
    line, why = _PURPOSES[purpose]
    known = f"seeds = [{json.dumps(seeds)}]" if seeds else '# seeds = ["pairs.tsv"]'
    text = f"""\
# A bilex project: {language_name(source)} to {language_name(target)}.
# 'bilex align' in this folder reads this file; options on the command line win.
# Every long option of 'bilex align' can stand here, with _ for -; paths are relative to this file.

[{TABLE}]
source_vectors = {json.dumps(source_vectors)}
target_vectors = {json.dumps(target_vectors)}
source_language = {json.dumps(source)}
target_language = {json.dumps(target)}
{known}  # word pairs, one per line
output = {json.dumps(f"{source}-{target}")}  # the model folder to write
{line}  # {why}
random_seed = 0
"""
    write_text(FILE, text)
    click.echo(f"Wrote {FILE}. Next: bilex align")
