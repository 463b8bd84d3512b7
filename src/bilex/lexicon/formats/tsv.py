"""Tab-separated text without header, so that every reader of word lists takes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.lexicon.entries import Dictionary, Entry, number_text
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, line_fault
from bilex.lexicon.formats.decoding import is_comment
from bilex.lexicon.formats.formulas import defused
from bilex.lexicon.formats.rows import read_rows
from bilex.lexicon.headers import is_header
from bilex.lexicon.reading import Layout, Reading


def _read(path: Path, layout: Layout) -> Reading:
    return read_rows(path, layout, "tab")


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    """Two columns, or five where pairs have scores, never a header.

    Pairs that a reader would take for a header ("source", "target") do not come first.
    """
    scored = dictionary.scored()
    entries = list(dictionary.entries)
    first = next((place for place, entry in enumerate(entries) if not _like_a_header(entry)), None)
    if first is None and entries:
        raise BilexError(
            f"the pair {entries[0].source!r}, {entries[0].target!r} does not fit into a TSV file alone "
            "(it reads as a header); write another format, such as .jsonl."
        )
    if first:
        entries.insert(0, entries.pop(first))
    for entry in entries:
        cells = [entry.source, entry.target]
        if options.defuse_formulas:
            cells = [defused(cell) for cell in cells]
        if scored:
            cells += [number_text(entry.score), number_text(entry.confidence), entry.origin() or "found"]
        yield "\t".join(cells) + "\n"


def _like_a_header(entry: Entry) -> bool:
    return is_header((entry.source, entry.target))


def _fault(entry: Entry) -> str:
    if is_comment(f"{entry.source}\t{entry.target}"):
        return "'# ' before a word, which begins a comment"
    return line_fault(entry, "\t")


FORMAT = DictionaryFormat(
    name="tsv",
    description="tab-separated text: both words, then score, confidence, and known or found",
    suffixes=(".tsv", ".txt", ".dict"),
    noun="a TSV file",
    read=_read,
    pieces=_pieces,
    fault=_fault,
)
