"""From raw corpora to one file of tokens that can be trained on, in bounded memory, phrases joined.

Phrases are neighbours that stand together far more often than their frequencies explain. The score of two
neighbouring words a and b is their normalised pointwise mutual information,

    npmi(a, b) = ln( p(a b) / (p(a) · p(b)) ) / −ln p(a b),

where p(a b) = n(a b) / N is how often b follows a among the N tokens, and p(a) = n(a) / N. It is 1 for
words that never stand apart, 0 for independent ones. Pairs that score enough become one token, a_b,
wherever they stand; a second pass over the result finds phrases of three and four words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.corpus.reading import LeftOut, read_texts
from bilex.corpus.tokens import ScriptCount, Tokeniser, can_segment

Item = TypeVar("Item")
Bigram = tuple[str, str]

_JOINER = "_"
_MOST_COUNTED = 3_000_000
_MOSTLY = 0.3
_ENOUGH_LETTERS = 100_000
_A_LITTLE = 0.001
_LINES_PER_STEP = 10_000


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
        path: One line per line of text, tokens divided by spaces.
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
        return [word for word, _ in self.words.most_common() if _JOINER in word]


def prepare(
    corpora: Sequence[str | Path], folder: Path, how: Preparation, progress: Progress = SILENT
) -> Prepared:
    """Write the tokens of some corpora into one file in a folder, which takes up to twice their size."""
    paths = [Path(corpus) for corpus in corpora]
    left_out, scripts = LeftOut(), ScriptCount()
    counts = PhraseCounts()
    written, lines = folder / "tokens-0.txt", 0
    with written.open("w", encoding="utf-8", newline="\n") as file:
        for path in paths:
            with progress.task(f"Reading {path.name}", path.stat().st_size) as task:
                for text in read_texts(path, how.field, left_out, task):
                    if scripts.letters < _ENOUGH_LETTERS <= scripts.letters + len(text):
                        _check_script(path, how, scripts)
                    scripts.add(text)
                    tokens = how.tokeniser.tokens(text)
                    if tokens:
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
        joined = folder / f"tokens-{number + 1}.txt"
        more = number + 1 < how.phrase_passes
        counts = _write_joined(written, joined, phrases, progress, lines=lines, pairs=more)
        written = joined
    uncut = scripts.share if not how.tokeniser.divided and not can_segment() else 0.0
    return Prepared(
        written, counts.tokens, counts.words.counts, lines, left_out, uncut if uncut > _A_LITTLE else 0.0
    )


def _check_script(path: Path, how: Preparation, scripts: ScriptCount) -> None:
    """Stop where most of a text cannot be cut into words."""
    if how.tokeniser.divided or scripts.share < _MOSTLY or can_segment():
        return
    raise BilexError(
        f"{path}: {scripts.share:.0%} of its characters belong to a script that is written without spaces "
        f"({scripts.script}), and cutting it into words needs ICU; run: pip install 'bilex[segment]', or cut "
        "it yourself and give --tokenised."
    )


def _write_joined(
    tokens: Path, joined: Path, phrases: dict[Bigram, float], progress: Progress, *, lines: int, pairs: bool
) -> PhraseCounts:
    """Copy a file of tokens with phrases joined, and count what is in it then."""
    counts = PhraseCounts()
    with (
        tokens.open(encoding="utf-8", newline="\n") as source,
        joined.open("w", encoding="utf-8", newline="\n") as file,
        progress.task("Joining phrases", lines) as task,
    ):
        for number, line in enumerate(source, 1):
            words = join_phrases(line.split(), phrases)
            counts.add(words, pairs=pairs)
            file.write(" ".join(words) + "\n")
            if number % _LINES_PER_STEP == 0:
                task.advance(_LINES_PER_STEP)
    tokens.unlink()
    return counts


class BoundedCounts(Generic[Item]):
    """Counts of at most so many items: when there are more, the rarest are forgotten."""

    def __init__(self, most: int = _MOST_COUNTED) -> None:
        self.counts: Counter[Item] = Counter()
        self.forgotten_below = 1
        self._most = most

    def update(self, items: Iterable[Item]) -> None:
        """Count some items."""
        self.counts.update(items)
        while len(self.counts) > self._most:
            self.forgotten_below += 1
            kept = {item: count for item, count in self.counts.items() if count >= self.forgotten_below}
            self.counts = Counter(kept)


@dataclass
class PhraseCounts:
    """What the score of phrases is computed from."""

    words: BoundedCounts[str] = field(default_factory=BoundedCounts)
    pairs: BoundedCounts[Bigram] = field(default_factory=BoundedCounts)
    tokens: int = 0

    def add(self, tokens: Sequence[str], *, pairs: bool) -> None:
        """Count the tokens of a line, and their neighbours where `pairs` are wanted."""
        self.tokens += len(tokens)
        self.words.update(tokens)
        if pairs:
            self.pairs.update(pairwise(tokens))


def npmi(together: int, first: int, second: int, tokens: int) -> float:
    """The score of two neighbours, from how often each stands among the tokens, and both together."""
    if together >= tokens:
        return 1.0
    return math.log(together * tokens / (first * second)) / -math.log(together / tokens)


def find_phrases(counts: PhraseCounts, threshold: float, least: int) -> dict[Bigram, float]:
    """The neighbours that are to become one token, with their scores of at least `threshold`."""
    words = counts.words.counts
    found: dict[Bigram, float] = {}
    for (first, second), together in counts.pairs.counts.items():
        if together < least or not all(any(map(str.isalpha, word)) for word in (first, second)):
            continue
        score = npmi(together, words[first], words[second], counts.tokens)
        if score >= threshold:
            found[first, second] = score
    return found


def join_phrases(tokens: Sequence[str], phrases: Mapping[Bigram, float]) -> list[str]:
    """Join neighbours that are a phrase; of phrases that overlap, the one with the higher score."""
    joined: list[str] = []
    place, last = 0, len(tokens) - 1
    while place <= last:
        score = phrases.get((tokens[place], tokens[place + 1])) if place < last else None
        if score is not None and place + 1 < last:
            following = phrases.get((tokens[place + 1], tokens[place + 2]))
            if following is not None and following > score:
                score = None
        if score is None:
            joined.append(tokens[place])
            place += 1
        else:
            joined.append(f"{tokens[place]}{_JOINER}{tokens[place + 1]}")
            place += 2
    return joined
