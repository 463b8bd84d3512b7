"""JSON Lines: our own, which hold everything known about a pair, and Wiktextract's, a whole Wiktionary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.languages import short_code
from bilex.core.text import encodable
from bilex.lexicon.entries import NUMBERS, TEXTS, Dictionary, Entry, number_of, one_line
from bilex.lexicon.formats import DictionaryFormat, WriteOptions
from bilex.lexicon.reading import Collector, Layout, Reading, Units, json_object, reader, text_lines
from bilex.lexicon.tables import judged

_SHOWN = 8


def _read(path: Path, layout: Layout) -> Reading:
    expected = '{"source": ..., "target": ...}'
    collector = Collector(path, "jsonl", layout, expected=expected, strict=True)
    for number, line in text_lines(path):
        if not line.strip():
            continue
        record = json_object(line)
        verdict = str(record.get("verdict", "")) if record and layout.verdicts else ""
        right = judged(verdict)
        if record is None:
            collector.leave_out(number, "not a JSON object")
        elif not isinstance(record.get("source"), str) or not isinstance(record.get("target"), str):
            collector.leave_out(number, 'no strings "source" and "target" in it')
        elif right is None:
            collector.leave_out(number, f"the verdict is '{one_line(verdict)[:20]}', neither yes nor no")
        else:
            collector.add(number, [_entry(record)], rejected=not right)
    return collector.finished()


def _entry(record: dict[str, Any]) -> Entry:
    found: dict[str, Any] = {}
    for name, kind in NUMBERS.items():
        value = record.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found[name] = number_of(value, kind)
    found |= {name: encodable(record[name]) for name in TEXTS if isinstance(record.get(name), str)}
    return Entry(record["source"], record["target"], known=record.get("known") is True, **found)


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    """One object per pair: what is known; in a dictionary with scores also numbers that are null."""
    scored, named = dictionary.scored(), dictionary.column_names()
    always = {"source", "target"}
    if_scored = {"known", *NUMBERS} - {"sense"}
    for entry in dictionary.entries:
        record = {}
        for name in (field.name for field in fields(Entry)):
            value = getattr(entry, name)
            if name in always or (scored if name in if_scored else value):
                record[named.get(name, name)] = value
        yield json.dumps(record, ensure_ascii=False) + "\n"


JSONL = DictionaryFormat(
    name="jsonl",
    description="JSON Lines: one object per pair, with everything that is known about it",
    suffixes=(".jsonl", ".ndjson"),
    noun="a JSON Lines file",
    read=_read,
    pieces=_pieces,
)


def _wiktextract_units(path: Path, layout: Layout) -> Units:
    """Translations between two languages, in whichever of the two the entries are."""
    source, target = (short_code(side) if side else "" for side in layout.languages)
    into: dict[str, None] = {}
    heads: dict[str, None] = {}
    for number, line in text_lines(path):
        if not line.strip():
            continue
        record = json_object(line)
        if record is None or not isinstance(record.get("word"), str):
            yield number, "no object with a word"
            continue
        language, speech = short_code(_text(record, "lang_code")), _text(record, "pos")
        heads[language] = None
        entries = []
        for code, word in _translations(record):
            into[code] = None
            entry = Entry(record["word"], word, part_of_speech=speech.encode("utf-8", "replace").decode())
            if _between(language, code, source, target):
                entries.append(entry)
            elif source and target and _between(language, code, target, source):
                entries.append(entry.swapped())
        yield number, entries or "no translation into the language"
    if len(into) > 1 and not target:
        raise BilexError(
            f"{path}: holds translations into {len(into)} languages ({', '.join(list(into)[:_SHOWN])}"
            f"{', ...' if len(into) > _SHOWN else ''}); name the two that you mean with --languages, for "
            "example --languages en,fi."
        )
    first = next(iter(heads), "") if len(heads) == 1 else ""
    return first or None, next(iter(into), None)


def _between(language: str, code: str, source: str, target: str) -> bool:
    """Whether a translation is from one language into another; an unmarked entry is of any."""
    return (not source or not language or language == source) and (not target or code == target)


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return value.strip() if isinstance(value, str) else ""


def _translations(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Language and word of every translation, of the entry and of its senses, each once."""
    senses = record.get("senses")
    holders = [record, *(senses if isinstance(senses, list) else ())]
    found: dict[tuple[str, str], None] = {}
    for holder in holders:
        listed = holder.get("translations") if isinstance(holder, dict) else None
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict) and _text(item, "word"):
                found[short_code(_text(item, "code") or _text(item, "lang_code")), _text(item, "word")] = None
    return list(found)


WIKTEXTRACT = DictionaryFormat(
    name="wiktextract",
    description="Wiktextract: JSON Lines of a Wiktionary with translations into many languages",
    suffixes=(),
    noun="a Wiktextract file",
    read=reader("wiktextract", _wiktextract_units, '{"word": ..., "translations": [...]}'),
)
