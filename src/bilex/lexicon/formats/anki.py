"""Notes for Anki: a text file to import, one note a source word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, grouped
from bilex.lexicon.formats.decoding import decode, unescaped
from bilex.lexicon.formats.rows import Row, csv_rows
from bilex.lexicon.reading import Collector, Layout, Reading

_HEADER = "#separator:tab\n#html:true\n#notetype:Basic\n#tags column:3\n"
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*>")
_REFERENCES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "#": "&#35;"}
)
_REFUSED = re.compile("[\ufdd0-\ufdef]")
_SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|", "colon": ":"}
_MOST_DIGITS = 6
_TAGS = {"known": "bilex::known", "found": "bilex::found"}


@dataclass
class _Directives:
    """What the head of a file says: what divides fields, whether they are HTML, and columns that are none."""

    separator: str = "\t"
    markup: bool = True
    tags: int | None = None
    others: set[int] = field(default_factory=set)

    def take(self, line: str) -> None:
        """Understand a line that begins with "#"; others of them are comments."""
        name, _, value = line[1:].strip().partition(":")
        if name == "separator":
            self.separator = _SEPARATORS.get(
                value.casefold(), value if len(value) == 1 and value != '"' else "\t"
            )
        elif name == "html":
            self.markup = value.casefold() != "false"
        elif name.endswith(" column") and value.isdecimal() and len(value) < _MOST_DIGITS:
            self.others.add(int(value) - 1)
            self.tags = int(value) - 1 if name == "tags column" else self.tags


def _read(path: Path, layout: Layout) -> Reading:
    """Read the notes: the first field, and each line of the second as a translation."""
    collector = Collector(path, "anki", layout, expected="front, tab, back", strict=True)
    directives = _Directives()
    lines = decode(path).split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("#"):
            break
        directives.take(line)
        collector.comments += 1
        lines[number] = ""  # the numbers of the lines stay
    for row in csv_rows(lines, directives.separator):
        if row.cells and row.cells[0].startswith("#"):
            collector.comments += 1
        elif row.fault:
            collector.leave_out(row.number, row.fault)
        else:
            _take(collector, row, directives)
    return collector.finished()


def _take(collector: Collector, row: Row, directives: _Directives) -> None:
    fields = [cell for place, cell in enumerate(row.cells) if place not in directives.others]
    if len(fields) < 2:
        collector.leave_out(row.number, "fewer than two fields")
        return
    tags = directives.tags
    known = tags is not None and tags < len(row.cells) and _TAGS["known"] in row.cells[tags].split(" ")
    if directives.markup:
        source, targets = _plain(fields[0]), [_plain(part) for part in _LINE_BREAK.split(fields[1])]
    else:
        source, targets = fields[0].strip(), [part.strip() for part in fields[1].split("\n")]
    collector.add(row.number, [Entry(source, target, known=known) for target in targets if target])


def _plain(text: str) -> str:
    return unescaped(_MARKUP.sub("", text)).strip()


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    yield _HEADER
    for source, entries in grouped(dictionary.entries).items():
        targets = "<br>".join(_escaped(entry.target) for entry in entries)
        tag = _TAGS["known"] if all(entry.known for entry in entries) else _TAGS["found"]
        yield f"{_escaped(source)}\t{targets}\t{tag if any(entry.origin() for entry in entries) else ''}\n"


def _escaped(word: str) -> str:
    return word.translate(_REFERENCES)


def _fault(entry: Entry) -> str:
    return "a noncharacter in a word" if _REFUSED.search(entry.source + entry.target) else ""


FORMAT = DictionaryFormat(
    name="anki",
    description="notes for Anki: the word on the front, its translations on the back",
    suffixes=(".anki",),
    noun="a file for Anki",
    read=_read,
    pieces=_pieces,
    fault=_fault,
)
