"""From raw corpora to one file of tokens that can be trained on, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress, Task
from bilex.corpus.phrases import JOINER, Bigram, PhraseCounts, find_phrases, join_phrases
from bilex.corpus.reading import LeftOut, read_texts
from bilex.corpus.scripts import ScriptCount, can_segment
from bilex.corpus.tokens import Tokeniser

_MOSTLY = 0.3
_ENOUGH_LETTERS = 100_000
_A_LITTLE = 0.001
_LINES_A_STEP = 10_000


@dataclass(frozen=True)
class Preparation:
    """How text becomes tokens.

    Args:
        tokeniser: Cuts lines into words.
        field: The field of JSON Lines that holds the text; None to go by the names of the files.
        phrase_passes: How often neighbours are joined: 0 for no phrases, 1 for pairs, 2 for up to four words.
        phrase_score: The least score of a phrase (docs/guide/vectors.md).
        phrase_count: How often a phrase must stand in the text.
    """

    tokeniser: Tokeniser = field(default_factory=Tokeniser)
    field: str | None = None
    phrase_passes: int = 2
    phrase_score: float = 0.5
    phrase_count: int = 10


@dataclass(frozen=True)
class Prepared:
    """A file of tokens, and what is in it.

    Attributes:
        path: One line of text a line, tokens divided by spaces.
        tokens: How many tokens.
        words: How often each word occurs; of very many distinct words the rarest are left out.
        lines: How many lines of text were used.
        left_out: Lines that were not.
        uncut: The share of characters of a script without spaces that could not be cut into words.
    """

    path: Path
    tokens: int
    words: Counter[str]
    lines: int
    left_out: LeftOut
    uncut: float = 0.0

    @property
    def phrases(self) -> list[str]:
        """The phrases that were joined, the most frequent first."""
        return [word for word, _ in self.words.most_common() if JOINER in word]


def prepare(
    corpora: Sequence[str | Path], folder: Path, how: Preparation, progress: Progress = SILENT
) -> Prepared:
    """Write the tokens of some corpora into one file.

    Args:
        corpora: Files of text.
        folder: Where to write; it takes up to twice the size of the unpacked text.
        how: How text becomes tokens.
        progress: Shows how far the work is.

    Raises:
        BilexError: A corpus cannot be read, holds no words, or needs ICU, which is not installed.
    """
    paths = [Path(corpus) for corpus in corpora]
    left_out, scripts = LeftOut(), ScriptCount()
    counts = PhraseCounts()
    written, lines = folder / "tokens-0.txt", 0
    with written.open("w", encoding="utf-8", newline="\n") as file:
        for path in paths:
            with progress.task(f"Reading {path.name}", path.stat().st_size) as task:
                for tokens in _token_lines(path, how, left_out, scripts, task):
                    lines += 1
                    counts.add(tokens, pairs=how.phrase_passes > 0)
                    file.write(" ".join(tokens) + "\n")
            _check_script(path, how, scripts)
    if not counts.tokens:
        raise BilexError(f"{paths[0]}: holds no words; give a file of text.")
    for number in range(how.phrase_passes):
        phrases = find_phrases(counts, how.phrase_score, how.phrase_count)
        if not phrases:
            break
        counts = PhraseCounts()
        joined = folder / f"tokens-{number + 1}.txt"
        more = number + 1 < how.phrase_passes
        _write_joined(written, joined, phrases, counts, progress, lines=lines, pairs=more)
        written.unlink()
        written = joined
    uncut = scripts.share if not how.tokeniser.divided and not can_segment() else 0.0
    return Prepared(
        written, counts.tokens, counts.words.counts, lines, left_out, uncut if uncut > _A_LITTLE else 0.0
    )


def _token_lines(
    path: Path, how: Preparation, left_out: LeftOut, scripts: ScriptCount, task: Task
) -> Iterator[list[str]]:
    """The tokens of each line of one file that has any."""
    for text in read_texts(path, how.field, left_out, task):
        if scripts.letters < _ENOUGH_LETTERS <= scripts.letters + len(text):
            _check_script(path, how, scripts)
        scripts.add(text)
        tokens = how.tokeniser.tokens(text)
        if tokens:
            yield tokens


def _check_script(path: Path, how: Preparation, scripts: ScriptCount) -> None:
    """Stop where most of a text cannot be cut into words.

    Raises:
        BilexError: It cannot, and what to do.
    """
    if how.tokeniser.divided or scripts.share < _MOSTLY or can_segment():
        return
    raise BilexError(
        f"{path}: {scripts.share:.0%} of its characters belong to a script that is written without spaces "
        f"({scripts.script}), and cutting it into words needs ICU; run: pip install 'bilex[segment]', or cut "
        "it yourself and give --tokenised."
    )


def _write_joined(
    tokens: Path,
    joined: Path,
    phrases: dict[Bigram, float],
    counts: PhraseCounts,
    progress: Progress,
    *,
    lines: int,
    pairs: bool,
) -> None:
    """Copy a file of tokens with phrases joined, and count what is in it then."""
    with (
        tokens.open(encoding="utf-8", newline="\n") as source,
        joined.open("w", encoding="utf-8", newline="\n") as file,
        progress.task("Joining phrases", lines) as task,
    ):
        for number, line in enumerate(source, 1):
            words = join_phrases(line.split(), phrases)
            counts.add(words, pairs=pairs)
            file.write(" ".join(words) + "\n")
            if number % _LINES_A_STEP == 0:
                task.advance(_LINES_A_STEP)
