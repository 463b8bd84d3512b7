"""Synonyms for Solr and Elasticsearch: a word, "=>", its translations.

A backslash before a character takes its meaning away, as Lucene's parser of this format has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, grouped, line_fault
from bilex.lexicon.formats.decoding import text_lines
from bilex.lexicon.reading import MOST_PAIRS_PER_UNIT, Collector, Layout, Reading

_WITH_MEANING = re.compile(r"[\\,=>#]")
_ARROW = "=>"


def _read(path: Path, layout: Layout) -> Reading:
    """Read explicit mappings; lists of equivalent words ("dog, hound") have no direction and are left out."""
    expected = "source word => target word, target word"
    collector = Collector(path, "synonyms", layout, expected=expected, strict=True)
    for number, line in text_lines(path):
        if line.startswith("#"):
            collector.comments += 1
        elif line.strip():
            _take(collector, number, line)
    return collector.finished()


def _take(collector: Collector, number: int, line: str) -> None:
    sides = _divided(line, _ARROW)
    if len(sides) != 2:
        collector.leave_out(number, "not exactly one '=>' in it")
        return
    sources, targets = ([_plain(word.strip()) for word in _divided(side, ",")] for side in sides)
    if len(sources) * len(targets) > MOST_PAIRS_PER_UNIT:
        collector.leave_out(number, f"more than {MOST_PAIRS_PER_UNIT:,} pairs in one place")
        return
    collector.add(number, [Entry(source, target) for source in sources for target in targets])


def _divided(text: str, mark: str) -> list[str]:
    """The parts of a text between marks that no backslash stands before."""
    return re.findall(rf"(?:^|{mark})((?:\\.|(?!{mark})[^\\]|\\$)*)", text, re.DOTALL)


def _plain(text: str) -> str:
    return re.sub(r"\\(.?)", r"\1", text, flags=re.DOTALL)


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    for source, entries in grouped(dictionary.entries).items():
        targets = ", ".join(_escaped(entry.target) for entry in entries)
        yield f"{_escaped(source)} {_ARROW} {targets}\n"


def _escaped(word: str) -> str:
    return _WITH_MEANING.sub(r"\\\g<0>", word)


FORMAT = DictionaryFormat(
    name="synonyms",
    description="synonyms for Solr, Elasticsearch and OpenSearch: word => translation, translation",
    suffixes=(".synonyms",),
    noun="a file of synonyms",
    read=_read,
    pieces=_pieces,
    fault=lambda entry: line_fault(entry, ""),
)
