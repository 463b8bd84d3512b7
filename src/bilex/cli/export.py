"""`bilex export`: the aligned vectors of a model as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import bilex
from bilex.cli.console import note
from bilex.cli.options import PositiveOrNone, as_command, check_readable
from bilex.core.errors import BilexError
from bilex.core.files import check_writable


@as_command(
    "bilex export en-fi -o aligned                          (aligned/en.vec and aligned/fi.vec)",
    "bilex export en-fi -o aligned --format bin --limit 50000",
    "python eval_translation.py aligned/en.vec aligned/fi.vec -d test.txt --retrieval csls     (VecMap)",
)
def command(
    model: str,
    *,
    output: str,
    format: Literal["vec", "bin", "npy"] = "vec",
    limit: PositiveOrNone = None,
    force: bool = False,
) -> None:
    """Write the aligned vectors of MODEL into the folder DIR, one file for each language.

    gensim, fastText and the evaluation programs of VecMap and MUSE read the files. Spaces in words are
    written as underscores; words that the format cannot hold, or that become the same, are left out.

    Options:
        -o, --output DIR: The folder to write the files into.
        --format: word2vec text, word2vec binary, or npy with a word list.
        --limit: Only so many of the most frequent words of each language.
        --force: Replace files that are there already.
    """
    check_readable(model)
    from bilex.model.many import open_model
    from bilex.vectors.formats import files_written

    opened = open_model(model)
    if isinstance(opened, bilex.Translator):
        codes = opened.provenance.languages
        names = [code or side for code, side in zip(codes, ("source", "target"), strict=True)]
        if names[0] == names[1]:
            names = ["source", "target"]
        vocabularies = dict(zip(names, (opened.space.source, opened.space.target), strict=True))
    else:
        vocabularies = opened.vocabularies
    paths = {name: Path(output) / f"{name}.{format}" for name in vocabularies}
    for path in paths.values():
        for written in files_written(path):
            if written.exists() and not force:
                raise BilexError(f"{written}: is there already; choose another folder, or add --force.")
            check_writable(written)
    Path(output).mkdir(parents=True, exist_ok=True)
    for name, path in paths.items():
        vectors = vocabularies[name].head(limit)
        portable = vectors.portable()
        portable.save(path)
        lost = len(vectors) - len(portable)
        left_out = f"; {lost:,} words are left out" if lost else ""
        note(f"Wrote {len(portable):,} words × {portable.dim} to {path}{left_out}.")
