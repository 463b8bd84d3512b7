"""Notes for Anki: a text file to import, one note a source word."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, grouped
from bilex.lexicon.formats.decoding import text_lines
from bilex.lexicon.reading import Collector, Layout, Reading

_HEADER = "#separator:tab\n#html:true\n#notetype:Basic\n#tags column:3\n"
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*>")
_REFERENCES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "#": "&#35;"}
)
_REFUSED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff\ufdd0-\ufdef]")
_TAGS = {"known": "bilex::known", "found": "bilex::found"}


def _read(path: Path, layout: Layout) -> Reading:
    """Read the notes: the first field, and each line of the second as a translation."""
    expected = "front, tab, back"
    collector = Collector(path, "anki", layout, expected=expected, strict=True)
    for number, line in text_lines(path):
        if line.startswith("#"):
            collector.comments += 1
        elif line.strip():
            _take(collector, number, line.split("\t"))
    return collector.finished()


def _take(collector: Collector, number: int, fields: list[str]) -> None:
    if len(fields) < 2:
        collector.leave_out(number, "no tab in it")
        return
    known = len(fields) > 2 and _TAGS["known"] in fields[2].split(" ")
    source = _plain(fields[0])
    targets = [_plain(part) for part in _LINE_BREAK.split(fields[1])]
    collector.add(number, [Entry(source, target, known=known) for target in targets if target])


def _plain(text: str) -> str:
    return html.unescape(_MARKUP.sub("", text)).strip()


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    yield _HEADER
    for source, entries in grouped(dictionary.entries).items():
        targets = "<br>".join(_escaped(entry.target) for entry in entries)
        tag = _TAGS["known"] if all(entry.known for entry in entries) else _TAGS["found"]
        yield f"{_escaped(source)}\t{targets}\t{tag if any(entry.origin() for entry in entries) else ''}\n"


def _escaped(word: str) -> str:
    return word.translate(_REFERENCES)


def _fault(entry: Entry) -> str:
    return "a control character in a word" if _REFUSED.search(entry.source + entry.target) else ""


FORMAT = DictionaryFormat(
    name="anki",
    description="notes for Anki: the word on the front, its translations on the back",
    suffixes=(".anki",),
    noun="a file for Anki",
    read=_read,
    pieces=_pieces,
    fault=_fault,
)
