"""A dictionary for hunalign: target, " @ ", source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, line_fault
from bilex.lexicon.formats.decoding import text_lines
from bilex.lexicon.reading import Collector, Layout, Reading

_BETWEEN = " @ "


def _read(path: Path, layout: Layout) -> Reading:
    expected = "target words, space, @, space, source words"
    collector = Collector(path, "hunalign", layout, expected=expected, strict=True)
    for number, line in text_lines(path):
        target, between, source = line.partition(_BETWEEN)
        if between and _BETWEEN not in source:
            collector.add(number, [Entry(source.strip(), target.strip())])
        elif line.strip():
            collector.leave_out(number, "not exactly one ' @ ' in it")
    return collector.finished()


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    for entry in dictionary.entries:
        yield f"{entry.target}{_BETWEEN}{entry.source}\n"


def _fault(entry: Entry) -> str:
    for word in (entry.source, entry.target):
        if "@" in word.split(" "):
            return "'@' as a word"
    return line_fault(entry, "\t")


FORMAT = DictionaryFormat(
    name="hunalign",
    description="a dictionary for hunalign: target, ' @ ', source",
    suffixes=(".dic",),
    noun="a hunalign dictionary",
    read=_read,
    pieces=_pieces,
    fault=_fault,
)
