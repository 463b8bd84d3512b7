"""`bilex convert` and `bilex export`: vectors and dictionaries in other formats, for other programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import click

from bilex.cli import options as opt
from bilex.cli.console import note, progress, warn
from bilex.cli.info import kind_of
from bilex.core.errors import BilexError
from bilex.core.files import check_not_an_input, check_writable


@opt.as_command(
    "bilex convert wiki.en.bin -o en               (fastText to our folder, subwords kept)",
    "bilex convert en.vec.gz -o en --dtype float16 --limit 200000 --lowercase",
    "bilex convert en -o en.vec                    (our folder to word2vec text)",
    "bilex convert vectors.npy -o en.bin --format binary",
    "bilex convert en-fi.csv -o en-fi.tsv --columns 3,1 --split ';'     (a dictionary)",
    "bilex convert freedict-eng-fin.index -o en-fi.tmx --languages en,fi",
    "bilex convert terms.tbx -o terms.csv --from tbx --to deepl",
)
def command(
    input_file: Annotated[str, {"metavar": "INPUT"}],
    old_output: Annotated[str | None, {"metavar": "[OUTPUT]", "type": click.Path()}] = None,
    *,
    output: str | None = None,
    format: str | None = None,
    kind: Literal["auto", "vectors", "dictionary"] = "auto",
    from_: opt.CompletedOrNone = None,
    columns: opt.Columns = None,
    delimiter: str | None = None,
    split: str | None = None,
    writing: opt.DictionaryOutput,
    limit: opt.PositiveOrNone = None,
    lowercase: bool = False,
    dtype: Literal["float32", "float16", "int8"] = "float32",
    preprocess: Annotated[
        tuple[Literal["unit", "center"], ...], {"type": click.Choice(["unit", "center"]), "multiple": True}
    ] = (),
) -> None:
    """Convert INPUT, vectors or a dictionary, into OUTPUT in another format.

    Vectors are written as word2vec text (.vec, .txt, also .gz, .bz2, .xz), word2vec binary (.bin),
    npy with a word list (.npy), or, without a suffix, a safetensors folder that opens at once. All but the
    last have underscores for spaces in words, since other programs divide lines at spaces.
    Dictionaries are read (--from) and written (--to) as tsv, csv, jsonl, muse, deepl, omegat, tbx, tmx,
    tei, stardict, apertium, synonyms, anki, hunalign, bicleaner and xlsx, and read as dictd and
    wiktextract too.

    Options:
        -o, --output OUTPUT: What to write; may also follow INPUT.
        --format, --to NAME: The format to write.  [default: what OUTPUT's name says]
        --kind: What INPUT is.
        --limit: Convert only the first N entries.
        --lowercase: Lower-case the words; of equal ones the first is kept.
    Dictionaries:
        --from NAME: The format of INPUT.  [default: detected automatically]
        --columns --delimiter --split --languages --defuse-formulas --skip-unfit
    Vectors:
        --dtype: The number type in a safetensors folder.
        --preprocess: Scale rows to unit length or subtract the mean, in the order given; recorded in a
            safetensors folder.
    """
    if (output is None) == (old_output is None):
        raise click.UsageError("Name what to write once: bilex convert INPUT -o OUTPUT.")
    output = output or str(old_output)
    from bilex.vectors.formats import files_read, files_written, format_of_name

    check_not_an_input(output, input_file)
    found = kind if kind != "auto" else "dictionary" if from_ else kind_of(Path(input_file))
    if found == "model":
        raise BilexError(f"{input_file}: is a model; write its vectors with 'bilex export'.")
    if found == "dictionary":
        layout = opt.DictionaryLayout(from_, columns, delimiter, split)
        _convert_dictionary(input_file, output, format, layout, writing, limit, lowercase)
        return
    for written in files_written(Path(output), format):
        check_not_an_input(written, *files_read(Path(input_file)))
        check_writable(written)
    vectors = opt.read_vectors(input_file, limit, lowercase, progress())
    if preprocess:
        vectors = vectors.preprocessed(*preprocess)
    if (format or format_of_name(Path(output))) in ("text", "binary", "npy"):
        vectors = vectors.portable()
    vectors.save(output, format, dtype=dtype)
    note(f"Wrote {len(vectors):,} words × {vectors.dim} to {output}.")


def _convert_dictionary(
    path: str,
    output: str,
    write_as: str | None,
    layout: opt.DictionaryLayout,
    writing: opt.DictionaryOutput,
    limit: int | None,
    lowercase: bool,
) -> None:
    """Read a dictionary with all that it says about its pairs, and write that."""
    from bilex.lexicon.entries import Dictionary, normalized
    from bilex.lexicon.files import Layout
    from bilex.lexicon.formats import format_of, read, write

    written_as = format_of(output, write_as)
    check_writable(output)
    columns = Layout(layout.columns, layout.delimiter, layout.split, writing.languages or (None, None))
    reading = read(path, columns, layout.dictionary_format)
    for sentence in reading.report.sentences():
        warn(sentence)
    spelt = [(entry.source, entry.target) for entry in reading.entries]
    pairs = normalized(spelt, lowercase=lowercase, normal_form="NFC")
    words = zip(reading.entries, pairs, strict=True)
    entries = [replace(entry, source=source, target=target) for entry, (source, target) in words]
    report = write(output, Dictionary(entries[:limit], reading.languages), written_as.name, writing.options)
    note(f"Wrote {report.written:,} pairs to {output}.")
    if report.left_out:
        note(report.sentence())


@opt.as_command(
    "bilex export en-fi -o aligned                          (aligned/en.vec and aligned/fi.vec)",
    "bilex export en-fi -o aligned --format bin --limit 50000",
    "python eval_translation.py aligned/en.vec aligned/fi.vec -d test.txt --retrieval csls     (VecMap)",
)
def export(
    model: str,
    *,
    output: str,
    format: Literal["vec", "bin", "npy"] = "vec",
    limit: opt.PositiveOrNone = None,
    force: bool = False,
) -> None:
    """Write the aligned vectors of MODEL into the folder DIR, one file for each language.

    gensim, fastText and the evaluation programs of VecMap and MUSE read the files. Spaces in words are
    written as underscores; words that the format cannot hold, or that become the same, are left out.

    Options:
        -o, --output DIR: The folder to write the files into.
        --format: word2vec text, word2vec binary, or npy with a word list.
        --limit: Write only the N most frequent words of each language.
        --force: Replace files that are there already.
    """
    from bilex.model.storage import load_model
    from bilex.vectors.formats import files_written

    vocabularies = load_model(model).vocabularies
    paths = {name: Path(output) / f"{name}.{format}" for name in vocabularies}
    for written in (file for path in paths.values() for file in files_written(path)):
        if written.exists() and not force:
            raise BilexError(f"{written}: is there already; choose another folder, or add --force.")
        check_writable(written)
    for name, path in paths.items():
        vectors = vocabularies[name].head(limit)
        portable = vectors.portable()
        portable.save(path)
        lost = len(vectors) - len(portable)
        left_out = f"; {lost:,} words are left out" if lost else ""
        note(f"Wrote {len(portable):,} words × {portable.dim} to {path}{left_out}.")
