"""From raw corpora to one file of tokens that can be trained on, in bounded memory, phrases joined.

Phrases are neighbours that occur together far more often than their frequencies explain. The score of two
neighbouring words a and b is their normalised pointwise mutual information,

    npmi(a, b) = ln( p(a b) / (p(a) · p(b)) ) / −ln p(a b),

where p(a b) = n(a b) / N is how often b follows a among the N tokens, and p(a) = n(a) / N. It is 1 for
words that only occur together, 0 for independent ones. Pairs that score enough become one token, a_b,
everywhere; a second pass over the result finds phrases of three and four words.
"""

from __future__ import annotations

import codecs
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress, Task
from bilex.core.reading import PACKED_SUFFIXES, UTF16, FileReport, Source, open_source
from bilex.corpus.tokens import ScriptCount, Tokeniser, can_segment

Item = TypeVar("Item")
Bigram = tuple[str, str]

_CHUNK = 1 << 20
_LONGEST_RECORD = 64 << 20
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".jl")
_JOINER = "_"
_MOST_COUNTED = 3_000_000
_MOSTLY, _A_LITTLE = 0.3, 0.001
_ENOUGH_LETTERS = 100_000
_LINES_PER_STEP = 10_000


@dataclass(frozen=True)
class Preparation:
    """How text becomes tokens.

    Args:
        tokeniser: Cuts lines into words.
        field: The field of JSON Lines that holds the text; None to go by the names of the files.
        phrase_passes: How often neighbours are joined: 0 for no phrases, 1 for pairs, 2 for up to four words.
        phrase_score: The least score of a phrase (docs/guide/vectors.md).
        phrase_count: How often a phrase must occur in the text.
    """

    tokeniser: Tokeniser = field(default_factory=Tokeniser)
    field: str | None = None
    phrase_passes: int = 2
    phrase_score: float = 0.5
    phrase_count: int = 10


@dataclass(frozen=True)
class Prepared:
    """A file of tokens, and what is in it."""

    path: Path  # one line per line of text, tokens separated by spaces
    tokens: int
    words: Counter[str]  # how often each occurs; of very many distinct words the rarest are left out
    lines: int  # of text that were used
    reports: list[FileReport]  # what was left out of each file
    uncut: float = 0.0  # the share of characters of a script without spaces that could not be cut into words

    @property
    def phrases(self) -> list[str]:
        """The phrases that were joined, the most frequent first."""
        return [word for word, _ in self.words.most_common() if _JOINER in word]


def prepare(
    corpora: Sequence[str | Path], folder: Path, how: Preparation, progress: Progress = SILENT
) -> Prepared:
    """Write the tokens of some corpora into one file in a folder, which takes up to twice their size."""
    paths = [Path(corpus) for corpus in corpora]
    reports, scripts, counts = [], ScriptCount(), PhraseCounts()
    written, lines = folder / "tokens-0.txt", 0
    with written.open("w", encoding="utf-8", newline="\n") as file:
        for path in paths:
            reports.append(FileReport(str(path), "text"))
            with progress.task(f"Reading {path.name}", path.stat().st_size) as task:
                for text in read_texts(path, how.field, reports[-1], task):
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
    for number in range(1, how.phrase_passes + 1):
        phrases = find_phrases(counts, how.phrase_score, how.phrase_count)
        if not phrases:
            break
        joined, counts = folder / f"tokens-{number}.txt", PhraseCounts()
        with (
            written.open(encoding="utf-8", newline="\n") as source,
            joined.open("w", encoding="utf-8", newline="\n") as file,
            progress.task("Joining phrases", lines) as task,
        ):
            for read, line in enumerate(source, 1):
                tokens = join_phrases(line.split(), phrases)
                counts.add(tokens, pairs=number < how.phrase_passes)
                file.write(" ".join(tokens) + "\n")
                if read % _LINES_PER_STEP == 0:
                    task.advance(_LINES_PER_STEP)
        written.unlink()
        written = joined
    cut = how.tokeniser.tokenised or can_segment() or scripts.share <= _A_LITTLE
    return Prepared(written, counts.tokens, counts.words, lines, reports, 0.0 if cut else scripts.share)


def _check_script(path: Path, how: Preparation, scripts: ScriptCount) -> None:
    """Stop if most of a text cannot be cut into words."""
    if how.tokeniser.tokenised or scripts.share < _MOSTLY or can_segment():
        return
    raise BilexError(
        f"{path}: {scripts.share:.0%} of its characters belong to a script that is written without spaces "
        f"({scripts.script}), and cutting it into words needs ICU; run: pip install 'bilex[segment]', or cut "
        "it yourself and give --tokenised."
    )


def read_texts(path: Path, name: str | None, report: FileReport, task: Task) -> Iterator[str]:
    """The texts of one file, one line or piece of a very long line at a time.

    `name` is the field of JSON Lines that holds the text; None for "text" or, if the name of the file is not
    one of JSON Lines, for plain text. Lines that cannot be used are counted in `report`; if they are more
    than half, that is an error.
    """
    suffixes = [suffix for suffix in map(str.lower, path.suffixes) if suffix not in PACKED_SUFFIXES]
    if name is None and suffixes and suffixes[-1] in _JSON_SUFFIXES:
        name = "text"
    with open_source(path) as source:
        if source.head.startswith(UTF16):
            raise BilexError(
                f"{path}: is UTF-16 text; convert it to UTF-8 first, for example with iconv -f UTF-16."
            )
        for raw in _raw_lines(source, task, whole=name is not None):
            report.entries += 1
            found, reason = _texts(raw.removeprefix(codecs.BOM_UTF8) if report.entries == 1 else raw, name)
            if reason:
                report.leave_out(report.entries, reason)
            yield from found
    if 2 * report.left_out.total() > report.entries:
        raise BilexError(
            f"{path}: {report.left_out.total():,} of {report.entries:,} lines cannot be used as text "
            f"({', '.join(report.left_out)}); check the format and --field."
        )


def _raw_lines(source: Source, task: Task, *, whole: bool) -> Iterator[bytes]:
    """Lines without their ends; of more than a megabyte, unless `whole`, in pieces cut between words."""
    rest = b""
    while chunk := source.read(_CHUNK):
        task.advance(source.newly_used())
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if whole and len(rest) > _LONGEST_RECORD:
            raise BilexError(
                f"{source.name}: a line is longer than {_LONGEST_RECORD >> 20} MB, too long for JSON Lines; "
                "write one record per line."
            )
        if not whole and len(rest) > _CHUNK:
            cut = _safe_cut(rest)
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def _safe_cut(text: bytes) -> int:
    """Where bytes can be cut: at the last space, else before the last character, which may be incomplete."""
    cut = text.rfind(b" ")
    if cut <= 0:
        cut = len(text) - 1
        while cut > 0 and text[cut] & 0xC0 == 0x80:
            cut -= 1
    return cut or len(text)


def _texts(raw: bytes, name: str | None) -> tuple[list[str], str]:
    """The texts of a line, or of the field of that name of its JSON record; and why there are none."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return [], "not UTF-8"
    if "\0" in text:
        return [], "binary data, not text"
    if name is None or not text.strip():
        return ([text] if name is None else []), ""
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError):
        return [], "not a JSON object"
    value = record.get(name) if isinstance(record, dict) else None
    texts: list[Any] = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(part, str) for part in texts):
        return [], f"no text in the field '{name}'"
    return [line for part in texts for line in part.splitlines()], ""


class BoundedCounts(Counter[Item]):
    """Counts of a limited number of items: if there are more, the rarest are forgotten."""

    def __init__(self, most: int = _MOST_COUNTED) -> None:
        super().__init__()
        self.most, self.least = most, 1

    def add(self, items: Iterable[Item]) -> None:
        """Count some items."""
        self.update(items)
        while len(self) > self.most:
            self.least += 1
            kept = {item: count for item, count in self.items() if count >= self.least}
            self.clear()
            self.update(kept)


@dataclass
class PhraseCounts:
    """What the score of phrases is computed from."""

    words: BoundedCounts[str] = field(default_factory=BoundedCounts)
    pairs: BoundedCounts[Bigram] = field(default_factory=BoundedCounts)
    tokens: int = 0

    def add(self, tokens: Sequence[str], *, pairs: bool) -> None:
        """Count the tokens of a line, and their neighbours if `pairs`."""
        self.tokens += len(tokens)
        self.words.add(tokens)
        if pairs:
            self.pairs.add(pairwise(tokens))


def npmi(together: int, first: int, second: int, tokens: int) -> float:
    """The score of two neighbours, from how often each occurs among the tokens, and both together."""
    if together >= tokens:
        return 1.0
    return math.log(together * tokens / (first * second)) / -math.log(together / tokens)


def find_phrases(counts: PhraseCounts, threshold: float, least: int) -> dict[Bigram, float]:
    """The neighbours that are to become one token, with their scores of at least `threshold`."""
    scores = {
        pair: npmi(together, counts.words[pair[0]], counts.words[pair[1]], counts.tokens)
        for pair, together in counts.pairs.items()
        if together >= least and all(any(map(str.isalpha, word)) for word in pair)
    }
    return {pair: score for pair, score in scores.items() if score >= threshold}


def join_phrases(tokens: Sequence[str], phrases: Mapping[Bigram, float]) -> list[str]:
    """Join neighbours that are a phrase; of phrases that overlap, the one with the higher score."""
    scores = [phrases.get(pair, -math.inf) for pair in pairwise(tokens)] + [-math.inf] * 2
    joined: list[str] = []
    place = 0
    while place < len(tokens):
        length = 2 if -math.inf < scores[place] >= scores[place + 1] else 1
        joined.append(_JOINER.join(tokens[place : place + length]))
        place += length
    return joined
