"""JSON Lines: one object a pair, which holds every word and everything that is known about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from bilex.core.text import encodable
from bilex.lexicon.entries import TEXTS, Dictionary, Entry, number_of, one_line
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions
from bilex.lexicon.formats.decoding import text_lines
from bilex.lexicon.formats.rows import judged
from bilex.lexicon.reading import Collector, Layout, Reading

_RANKS = ("source_rank", "target_rank")
_NUMBERS = ("score", "confidence", *_RANKS)
_SENSE = "sense"


def _read(path: Path, layout: Layout) -> Reading:
    expected = '{"source": ..., "target": ...}'
    collector = Collector(path, "jsonl", layout, expected=expected, strict=True)
    for number, line in text_lines(path):
        if line.strip():
            _take(collector, number, line)
    return collector.finished()


def parsed(line: str) -> dict[str, Any] | None:
    """The object of a line, or None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _take(collector: Collector, number: int, line: str) -> None:
    record = parsed(line)
    if record is None:
        collector.leave_out(number, "not a JSON object")
        return
    source, target = record.get("source"), record.get("target")
    if not isinstance(source, str) or not isinstance(target, str):
        collector.leave_out(number, 'no strings "source" and "target" in it')
        return
    verdict = str(record.get("verdict", "")) if collector.layout.verdicts else ""
    right = judged(verdict)
    if right is None:
        collector.leave_out(number, f"the verdict is '{one_line(verdict)[:20]}', neither yes nor no")
        return
    collector.add(number, [_entry(source.strip(), target.strip(), record)], rejected=not right)


def _entry(source: str, target: str, record: dict[str, Any]) -> Entry:
    found: dict[str, Any] = {}
    for name in (*_NUMBERS, _SENSE):
        value = record.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found[name] = number_of(value, int if name in (*_RANKS, _SENSE) else float)  # type: ignore[arg-type]
    found |= {name: encodable(record[name]) for name in TEXTS if isinstance(record.get(name), str)}
    return Entry(source, target, known=record.get("known") is True, **found)


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    scored = dictionary.scored()
    named = dict(zip(("source", "target"), dictionary.columns, strict=True))
    named |= {f"{own}_rank": f"{name}_rank" for own, name in named.items()}
    for entry in dictionary.entries:
        record = {
            named.get(field.name, field.name): getattr(entry, field.name)
            for field in fields(Entry)
            if _is_written(entry, field.name, scored)
        }
        yield json.dumps(record, ensure_ascii=False) + "\n"


def _is_written(entry: Entry, name: str, scored: bool) -> bool:
    """Numbers of a dictionary with scores always, even null; else only what there is."""
    if name in ("source", "target"):
        return True
    return scored if name == "known" or name in _NUMBERS else bool(getattr(entry, name))


FORMAT = DictionaryFormat(
    name="jsonl",
    description="JSON Lines: an object a pair, with everything that is known about it",
    suffixes=(".jsonl", ".ndjson"),
    noun="a JSON Lines file",
    read=_read,
    pieces=_pieces,
)
