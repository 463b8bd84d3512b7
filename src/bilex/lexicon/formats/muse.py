"""MUSE and VecMap: two words and a blank a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, line_fault
from bilex.lexicon.formats.decoding import text_lines
from bilex.lexicon.reading import Collector, Layout, Reading


def _read(path: Path, layout: Layout) -> Reading:
    """Read pairs divided by a space or a tab; every line is a pair, there are no comments or headers."""
    expected = "source word, space, target word"
    collector = Collector(path, "muse", layout, expected=expected, strict=True)
    for number, line in text_lines(path):
        words = [word for word in line.replace("\t", " ").split(" ") if word.strip()]
        if len(words) == 2:
            collector.add(number, [Entry(words[0].strip(), words[1].strip())])
        elif words:
            collector.leave_out(number, f"{len(words)} words where two are expected")
    return collector.finished()


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    for entry in dictionary.entries:
        yield f"{entry.source} {entry.target}\n"


FORMAT = DictionaryFormat(
    name="muse",
    description="MUSE and VecMap: two words and a space a line",
    suffixes=(".muse",),
    noun="a MUSE file",
    read=_read,
    pieces=_pieces,
    fault=lambda entry: line_fault(entry, " \t"),
    single_words=True,
)
