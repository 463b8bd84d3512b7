"""Tab-separated text without header, so that every reader of word lists takes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bilex.core.languages import is_code
from bilex.lexicon.entries import Dictionary, Entry, number_text
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, line_fault
from bilex.lexicon.formats.decoding import is_comment
from bilex.lexicon.formats.formulas import defused
from bilex.lexicon.formats.rows import read_rows
from bilex.lexicon.headers import is_header
from bilex.lexicon.reading import Layout, Reading

_NAMES = ("source", "target", "score", "confidence", "known")


def _read(path: Path, layout: Layout) -> Reading:
    return read_rows(path, layout, "tab")


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    """Two columns, or five where pairs have scores.

    A header is written only where the first pair would be taken for one.
    """
    scored = dictionary.scored()
    first = next(iter(dictionary.entries), None)
    if first is not None and _like_a_header(first):
        yield "\t".join(_NAMES if scored else _NAMES[:2]) + "\n"
    for entry in dictionary.entries:
        cells = [entry.source, entry.target]
        if options.defuse_formulas:
            cells = [defused(cell) for cell in cells]
        if scored:
            cells += [number_text(entry.score), number_text(entry.confidence), entry.origin() or "found"]
        yield "\t".join(cells) + "\n"


def _like_a_header(entry: Entry) -> bool:
    words = (entry.source, entry.target)
    return is_header(words) or all(is_code(word) for word in words)


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
