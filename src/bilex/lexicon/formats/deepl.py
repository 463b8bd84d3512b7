"""A glossary for DeepL: CSV without header, within the limits that its interface states.

The limits are those of https://developers.deepl.com/docs/api-reference/glossaries: 10 MiB in all, 1,024 bytes
of UTF-8 per word, one translation per word, no control characters or line ends, no blanks around a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.lexicon.entries import UNKNOWN_LANGUAGE, Dictionary, Entry, Languages
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions
from bilex.lexicon.formats.comma_separated import csv_line
from bilex.lexicon.formats.decoding import decode
from bilex.lexicon.formats.languages import short
from bilex.lexicon.formats.rows import csv_rows
from bilex.lexicon.reading import Collector, Layout, Reading

LARGEST_GLOSSARY = 10 << 20
LARGEST_WORD = 1024


def _read(path: Path, layout: Layout) -> Reading:
    """Read the first two columns of every row; there is no header."""
    collector = Collector(path, "deepl", layout, expected="source,target", strict=True)
    languages: Languages = (None, None)
    for row in csv_rows(decode(path).split("\n"), ","):
        if row.fault:
            collector.leave_out(row.number, row.fault)
        else:
            collector.add(row.number, [Entry(row.cells[0].strip(), row.cells[1].strip())])
            if languages == (None, None) and len(row.cells) == 4:
                languages = (short(row.cells[2].strip()) or None, short(row.cells[3].strip()) or None)
    return collector.finished(languages=languages)


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    size = 0
    languages = [code.upper() for code in dictionary.codes() if code != UNKNOWN_LANGUAGE]
    for number, entry in enumerate(dictionary.entries):
        line = csv_line([entry.source, entry.target, *(languages if len(languages) == 2 else ())])
        size += len(line.encode("utf-8"))
        if size > LARGEST_GLOSSARY:
            raise BilexError(
                f"DeepL takes glossaries of up to 10 MiB, which the first {number:,} of "
                f"{len(dictionary.entries):,} pairs fill; write fewer, for example with --ranks or "
                "--min-confidence."
            )
        yield line


def _fault(entry: Entry) -> str:
    for word in (entry.source, entry.target):
        if len(word.encode("utf-8")) > LARGEST_WORD:
            return f"a word of more than {LARGEST_WORD:,} bytes"
        if word.startswith("\ufeff"):
            return "a byte order mark before a word"
    return ""


FORMAT = DictionaryFormat(
    name="deepl",
    description="a glossary for DeepL (CSV without header; its limits are checked)",
    suffixes=(),
    noun="a DeepL glossary",
    read=_read,
    pieces=_pieces,
    fault=_fault,
    one_translation=True,
)
