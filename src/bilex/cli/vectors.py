"""`bilex vectors`: word vectors from text."""

from __future__ import annotations

import os
import sys

import click

from bilex.cli.options import (
    check_readable,
    examples,
    json_option,
    limit_option,
    seed_option,
    write_json_line,
)
from bilex.core.errors import BilexError

_SUBWORDS_NONE = "none"
_LONGEST_RANGE = 20  # characters


@click.command(
    epilog=examples(
        "bilex vectors english.txt -o en.bin",
        "bilex vectors part1.txt.gz part2.txt.gz -o fi.vec --language fi",
        "bilex vectors pages.jsonl --field body -o ja --language ja   (a folder; needs the extra segment)",
        "bilex vectors english.txt -o en.bin --dim 100 --epochs 20 --threads 1 --random-seed 7",
    )
)
@click.argument("corpora", metavar="CORPUS...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    help="What to write: .bin (fastText's model), .vec or .txt, .npy, or a folder.",
)
@click.option(
    "--language", metavar="CODE", help="The language, such as fr; by default what names of files say."
)
@click.option("--field", metavar="NAME", help="The texts' field in JSON Lines.  [default: text, for .jsonl]")
@click.option("--keep-case", is_flag=True, help="Do not lower-case words.")
@click.option("--tokenised", is_flag=True, help="Words are divided by spaces already; cut nowhere else.")
@click.option(
    "--phrase-passes",
    type=click.IntRange(0, 4),
    default=2,
    show_default=True,
    help="How often neighbours are joined to phrases; 0 for never.",
)
@click.option(
    "--phrase-score",
    type=click.FloatRange(-1, 1),
    default=0.5,
    show_default=True,
    help="Join neighbours whose normalised mutual information is at least this.",
)
@click.option(
    "--architecture", type=click.Choice(["skipgram", "cbow"]), default="skipgram", show_default=True
)
@click.option("--dim", type=click.IntRange(1, 4096), help="Dimension.  [default: 100 to 300, by size]")
@click.option(
    "--epochs", type=click.IntRange(min=1), help="Passes over the text.  [default: 20 to 5, by size]"
)
@click.option(
    "--min-count",
    type=click.IntRange(min=1),
    help="Leave out words that occur less often.  [default: 2 to 10, by size]",
)
@limit_option("At most so many words, the most frequent.", default=200_000, least=2)
@click.option(
    "--window", type=click.IntRange(min=1), default=5, show_default=True, help="Neighbours to each side."
)
@click.option(
    "--subwords", default="3-6", show_default=True, metavar="A-B|none", help="Lengths of character n-grams."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Threads that train; with 1 the result is reproducible.  [default: all cores]",
)
@seed_option
@json_option
def command(
    corpora: tuple[str, ...],
    output: str,
    language: str | None,
    field: str | None,
    keep_case: bool,
    tokenised: bool,
    phrase_passes: int,
    phrase_score: float,
    architecture: str,
    dim: int | None,
    epochs: int | None,
    min_count: int | None,
    limit: int,
    window: int,
    subwords: str,
    threads: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Train fastText word vectors from text: CORPUS files of plain text or JSON Lines, also packed.

    Text is brought into Unicode form NFC, lower-cased and cut into words; neighbours that belong together
    become phrases, such as new_york. Chinese, Japanese, Thai, Lao, Khmer and Burmese are cut by ICU (extra
    segment). Training needs the extra train.
    """
    check_readable(*corpora)
    ngrams = _ngrams(subwords)
    from bilex.cli.console import progress, warn
    from bilex.corpus import Preparation, TrainingSettings, train_vectors
    from bilex.corpus.tokens import Tokeniser

    tokeniser = Tokeniser(_language(language, (*corpora, output)), not keep_case, tokenised)
    report = train_vectors(
        corpora,
        output,
        preparation=Preparation(tokeniser, field, phrase_passes, phrase_score),
        settings=TrainingSettings(
            architecture=architecture,  # type: ignore[arg-type]
            dim=dim,
            epochs=epochs,
            min_count=min_count,
            limit=limit,
            window=window,
            ngrams=ngrams,
            threads=threads or os.cpu_count() or 1,
            random_seed=seed,
        ),
        progress=progress(),
    )
    if report.uncut:
        warn(
            f"{report.uncut:.1%} of the characters belong to a script that is written without spaces and "
            "were not cut into words; install the extra segment to cut them."
        )
    if as_json:
        write_json_line(report.as_dict())
        return
    sys.stderr.write(f"Wrote {output}: {report.sentence()}\n")


def _language(given: str | None, names: tuple[str, ...]) -> str | None:
    """The code of the language: as given, or what the names of the files agree on."""
    from bilex.core.languages import code_of, language_of_file

    if given is not None:
        code = code_of(given)
        if code is None:
            raise BilexError(f"--language {given}: is not known; give a code such as fi.")
        return code
    found = {language_of_file(name) for name in names} - {None}
    return found.pop() if len(found) == 1 else None


def _ngrams(text: str) -> tuple[int, int]:
    if text == _SUBWORDS_NONE:
        return 0, 0
    shortest, _, longest = text.partition("-")
    if not (shortest.isdecimal() and longest.isdecimal() and len(text) <= _LONGEST_RANGE):
        raise BilexError(f"--subwords {text[:_LONGEST_RANGE]}: give two lengths such as 3-6, or none.")
    return int(shortest), int(longest)
