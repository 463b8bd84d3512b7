"""A probabilistic dictionary for bicleaner: gzipped lines of target, source and P(target | source).

The translations of a word share its probability by their confidences where all have one, else equally. What
is read is the pairs alone: how often a translation is chosen is not how likely it is to be right.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from bilex.core.files import atomic_file
from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, grouped
from bilex.lexicon.formats.decoding import packed_text_lines
from bilex.lexicon.reading import Collector, Layout, Reading


def _read(path: Path, layout: Layout) -> Reading:
    expected = "target word, space, source word, space, probability"
    collector = Collector(path, "bicleaner", layout, expected=expected, strict=True)
    for number, line in packed_text_lines(path):
        parts = line.split()
        if len(parts) == 3 and is_probability(parts[2]):
            collector.add(number, [Entry(parts[1], parts[0])])
        elif parts:
            collector.leave_out(number, "not two words and a probability")
    return collector.finished()


def is_probability(text: str) -> bool:
    """Whether a text is a number from 0 to 1."""
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def _save(path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
    with (
        atomic_file(path) as temporary,
        temporary.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
    ):
        for entries in grouped(dictionary.entries).values():
            for entry, share in zip(entries, _shares(entries), strict=True):
                packed.write(f"{entry.target} {entry.source} {share:.7f}\n".encode())


def _shares(entries: Sequence[Entry]) -> list[float]:
    """The probability of each translation of a word."""
    weights = [1.0 if entry.confidence is None else entry.confidence for entry in entries]
    if any(entry.confidence is None for entry in entries) or sum(weights) <= 0:
        weights = [1.0] * len(entries)
    return [weight / sum(weights) for weight in weights]


def _fault(entry: Entry) -> str:
    return "a blank in a word" if any(len(word.split()) > 1 for word in (entry.source, entry.target)) else ""


FORMAT = DictionaryFormat(
    name="bicleaner",
    description="a probabilistic dictionary for bicleaner: gzipped target, source, probability",
    suffixes=(),
    noun="a bicleaner dictionary",
    read=_read,
    save=_save,
    fault=_fault,
    single_words=True,
)
