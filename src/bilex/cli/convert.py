"""`bilex convert`: vectors and dictionaries from one format into another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bilex.cli.dictionaries import DictionaryLayout, conversion_options
from bilex.cli.kinds import kind_of
from bilex.cli.model_options import DictionaryOutput, dictionary_output_options
from bilex.cli.options import check_readable, examples, limit_option, read_vectors
from bilex.core.errors import BilexError
from bilex.core.text import escape_control_characters


@click.command(
    epilog=examples(
        "bilex convert wiki.en.bin -o en               (fastText to our folder, subwords kept)",
        "bilex convert en.vec.gz -o en --dtype float16 --limit 200000 --lowercase",
        "bilex convert en -o en.vec                    (our folder to word2vec text)",
        "bilex convert vectors.npy -o en.bin --format binary",
        "bilex convert en-fi.csv -o en-fi.tsv --columns 3,1 --split ';'     (a dictionary)",
        "bilex convert freedict-eng-fin.index -o en-fi.tmx --languages en,fi",
        "bilex convert terms.tbx -o terms.csv --from tbx --to deepl",
    )
)
@click.argument("input_file", metavar="INPUT", type=click.Path())
@click.argument("old_output", metavar="[OUTPUT]", required=False, type=click.Path())
@click.option("-o", "--output", metavar="OUTPUT", help="What to write; may also stand after INPUT.")
@click.option(
    "--format",
    "--to",
    "form",
    metavar="NAME",
    help="The format to write; by default what OUTPUT's name says.",
)
@click.option(
    "--kind",
    type=click.Choice(["auto", "vectors", "dictionary"]),
    default="auto",
    show_default=True,
    help="What INPUT is.",
)
@conversion_options
@dictionary_output_options
@limit_option("Only so many of the first entries.")
@click.option("--lowercase", is_flag=True, help="Lower-case the words; the first of equal ones stays.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float16", "int8"]),
    default="float32",
    show_default=True,
    help="Numbers in a safetensors folder.",
)
@click.option(
    "--preprocess",
    multiple=True,
    type=click.Choice(["unit", "center"]),
    help="Make rows unit or subtract the mean, in the order given; recorded in a safetensors folder.",
)
def command(
    input_file: str,
    old_output: str | None,
    output: str | None,
    form: str | None,
    kind: str,
    layout: DictionaryLayout,
    writing: DictionaryOutput,
    limit: int | None,
    lowercase: bool,
    dtype: str,
    preprocess: tuple[Any, ...],
) -> None:
    """Convert INPUT, vectors or a dictionary, into OUTPUT in another format.

    Vectors are written as word2vec text (.vec, .txt, also .gz, .bz2, .xz), word2vec binary (.bin),
    npy with a word list (.npy), or, without a suffix, a safetensors folder that opens at once. All but the
    last have underscores for spaces in words, since other programs divide lines at spaces.
    Dictionaries are read (--from) and written (--to) as tsv, csv, jsonl, muse, deepl, omegat, tbx, tmx,
    tei, stardict, apertium, synonyms, anki, hunalign, bicleaner and xlsx, and read as dictd and
    wiktextract too.
    """
    if (output is None) == (old_output is None):
        raise click.UsageError("Name what to write once: bilex convert INPUT -o OUTPUT.")
    output = output or str(old_output)
    check_readable(input_file)
    from bilex.cli.console import progress
    from bilex.core.files import check_not_an_input, check_writable
    from bilex.vectors.formats import files_read, files_written, format_of_name

    check_not_an_input(output, input_file)
    if kind == "auto":
        kind = "dictionary" if layout.format else kind_of(Path(input_file))
    if kind == "model":
        raise BilexError(f"{input_file}: is a model; its vectors are the folders source and target in it.")
    if kind == "dictionary":
        _convert_dictionary(input_file, output, form, layout, writing, limit, lowercase)
        return
    for written in files_written(Path(output), form):
        for read in files_read(Path(input_file)):
            check_not_an_input(written, read)
        check_writable(written)
    vectors = read_vectors(input_file, limit, lowercase, progress())
    if preprocess:
        vectors = vectors.preprocessed(*preprocess)
    if (form or format_of_name(Path(output))) in ("text", "binary", "npy"):
        vectors = vectors.portable()
    vectors.save(output, form, dtype=dtype)
    sys.stderr.write(
        escape_control_characters(f"Wrote {len(vectors):,} words × {vectors.dim} to {output}.") + "\n"
    )


def _convert_dictionary(
    path: str,
    output: str,
    form: str | None,
    layout: DictionaryLayout,
    writing: DictionaryOutput,
    limit: int | None,
    lowercase: bool,
) -> None:
    from bilex.core.files import check_writable
    from bilex.lexicon.formats import format_of, write

    written_as = format_of(output, form)
    check_writable(output)
    dictionary = layout.read_entries(path, lowercase, writing.languages)
    kept = dictionary.with_entries(dictionary.entries[:limit])
    report = write(output, kept, written_as.name, writing.options)
    sys.stderr.write(escape_control_characters(f"Wrote {report.written:,} pairs to {output}.") + "\n")
    if report.left_out:
        sys.stderr.write(escape_control_characters(report.sentence()) + "\n")
