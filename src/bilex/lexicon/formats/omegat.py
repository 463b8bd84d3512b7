"""A glossary for OmegaT: source, target and a comment, divided by tabs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, line_fault
from bilex.lexicon.formats.decoding import text_lines
from bilex.lexicon.reading import Collector, Layout, Reading


def _read(path: Path, layout: Layout) -> Reading:
    """Read the lines that are no comments, which begin with "#"."""
    expected = "source term, tab, target term, and perhaps a tab and a comment"
    collector = Collector(path, "omegat", layout, expected=expected, strict=True)
    for number, line in text_lines(path):
        cells = [cell.strip() for cell in line.split("\t")]
        if line.startswith("#"):
            collector.comments += 1
        elif len(cells) > 1:
            collector.add(number, [Entry(cells[0], cells[1])])
        elif cells[0]:
            collector.leave_out(number, "no tab in it")
    return collector.finished()


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    for entry in dictionary.entries:
        note = entry.remark()
        yield "\t".join([entry.source, entry.target, note] if note else [entry.source, entry.target]) + "\n"


def _fault(entry: Entry) -> str:
    if entry.source.startswith("#"):
        return "'#' before a word, which begins a comment"
    return line_fault(entry, "\t")


FORMAT = DictionaryFormat(
    name="omegat",
    description="a glossary for OmegaT: both words and a comment on the confidence",
    suffixes=(".utf8", ".tab"),
    noun="an OmegaT glossary",
    read=_read,
    pieces=_pieces,
    fault=_fault,
)
