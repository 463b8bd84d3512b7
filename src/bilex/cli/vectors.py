"""`bilex vectors`: word vectors from text."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import click
from click import FloatRange, IntRange

from bilex.cli import options as opt
from bilex.cli.console import note, progress, warn
from bilex.core.errors import BilexError
from bilex.core.languages import code_of, language_of_file

_LONGEST_RANGE = 20  # characters


def _ngrams(text: str) -> tuple[int, int]:
    """The lengths that --subwords names."""
    if text == "none":
        return 0, 0
    shortest, _, longest = text.partition("-")
    if not (shortest.isdecimal() and longest.isdecimal() and len(text) <= _LONGEST_RANGE):
        raise click.BadParameter(f"{text[:_LONGEST_RANGE]}: give two lengths such as 3-6, or none.")
    return int(shortest), int(longest)


@opt.as_command(
    "bilex vectors english.txt -o en.bin",
    "bilex vectors part1.txt.gz part2.txt.gz -o fi.vec --language fi",
    "bilex vectors pages.jsonl --field body -o ja --language ja   (a folder; needs the extra segment)",
    "bilex vectors english.txt -o en.bin --dim 100 --epochs 20 --threads 1 --random-seed 7",
)
def command(
    corpora: Annotated[tuple[str, ...], {"metavar": "CORPUS..."}],
    *,
    output: str,
    language: str | None = None,
    field: str | None = None,
    keep_case: bool = False,
    tokenised: bool = False,
    phrase_passes: Annotated[int, {"type": IntRange(0, 4)}] = 2,
    phrase_score: Annotated[float, {"type": FloatRange(-1, 1)}] = 0.5,
    architecture: Literal["skipgram", "cbow"] = "skipgram",
    dim: Annotated[int | None, {"type": IntRange(1, 4096)}] = None,
    epochs: opt.PositiveOrNone = None,
    min_count: opt.PositiveOrNone = None,
    limit: Annotated[int, {"type": IntRange(min=2)}] = 200_000,
    window: opt.Positive = 5,
    subwords: Annotated[tuple[int, int], {"type": _ngrams, "default": "3-6"}] = (3, 6),
    threads: opt.PositiveOrNone = None,
    random_seed: opt.RandomSeed = 0,
    json: bool = False,
) -> None:
    """Train fastText word vectors from text: CORPUS files of plain text or JSON Lines, also compressed.

    Text is brought into Unicode form NFC, lower-cased and cut into words; neighbours that belong together
    become phrases, such as new_york. Chinese, Japanese, Thai, Lao, Khmer and Burmese are cut by ICU (extra
    segment). Training needs the extra train.

    Input:
        --language CODE: The language, such as fr.  [default: taken from the files' names]
        --field NAME: The texts' field in JSON Lines.  [default: text, for .jsonl]
        --keep-case: Do not lower-case words.
        --tokenised: Words are divided by spaces already; cut nowhere else.
    Output:
        -o, --output FILE: What to write: .bin (fastText's model), .vec or .txt, .npy, or a folder.
        --limit: Keep at most N words, the most frequent.
        --json
    Training:
        --dim: Dimension.  [default: 100 to 300, by size]
        --epochs: Passes over the text.  [default: 20 to 5, by size]
        --min-count: Leave out words that occur less often.  [default: 2 to 10, by size]
        --threads: Threads that train; with 1 the result is reproducible.  [default: all cores]
        --random-seed
    Advanced:
        --phrase-passes: How often neighbours are joined into phrases; 0 for never.
        --phrase-score: Join neighbours whose normalised mutual information is at least this.
        --architecture: How fastText trains.
        --window: Neighbours to each side.
        --subwords A-B|none: Lengths of character n-grams.
    """
    code = code_of(language) if language else None
    if language and code is None:
        raise BilexError(f"--language {language}: is not known; give a code such as fi.")
    named = {language_of_file(name) for name in (*corpora, output)} - {None}
    if not language and len(named) == 1:
        code = named.pop()
    from bilex.corpus import Preparation, TrainingSettings, train_vectors
    from bilex.corpus.tokens import Tokeniser

    report = train_vectors(
        corpora,
        output,
        preparation=Preparation(
            Tokeniser(code, not keep_case, tokenised), field, phrase_passes, phrase_score
        ),
        settings=TrainingSettings(
            architecture=architecture,
            dim=dim,
            epochs=epochs,
            min_count=min_count,
            limit=limit,
            window=window,
            ngrams=subwords,
            threads=threads or os.cpu_count() or 1,
            random_seed=random_seed,
        ),
        progress=progress(),
    )
    if report.uncut:
        warn(
            f"{report.uncut:.1%} of the characters belong to a script that is written without spaces and "
            "were not cut into words; install the extra segment to cut them."
        )
    if json:
        opt.write_json_line(report)
        return
    note(f"Wrote {output}: {report.sentence()}")
