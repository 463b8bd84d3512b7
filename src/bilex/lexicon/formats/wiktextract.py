"""Wiktextract: JSON Lines of a whole Wiktionary, an entry with translations into many languages a line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.lexicon.entries import Entry
from bilex.lexicon.formats.base import DictionaryFormat
from bilex.lexicon.formats.decoding import text_lines
from bilex.lexicon.formats.json_lines import parsed
from bilex.lexicon.formats.languages import short
from bilex.lexicon.reading import Collector, Layout, Reading

_SHOWN = 8


def _read(path: Path, layout: Layout) -> Reading:
    """Read translations between two languages, in whichever of the two the entries are."""
    source, target = (short(side) if side else "" for side in layout.languages)
    collector = Collector(path, "wiktextract", layout, expected='{"word": ..., "translations": [...]}')
    into: Counter[str] = Counter()
    heads: Counter[str] = Counter()
    for number, line in text_lines(path):
        if not line.strip():
            continue
        record = parsed(line)
        if record is None or not isinstance(record.get("word"), str):
            collector.leave_out(number, "no object with a word")
            continue
        head, language = record["word"].strip(), _text(record, "lang_code")
        heads[short(language)] += 1
        entries = []
        for code, word in _translations(record):
            into[code] += 1
            entry = Entry(head, word, part_of_speech=_text(record, "pos").encode("utf-8", "replace").decode())
            if _between(short(language), code, source, target):
                entries.append(entry)
            elif source and target and _between(short(language), code, target, source):
                entries.append(entry.swapped())
        if entries:
            collector.add(number, entries)
        else:
            collector.leave_out(number, "no translation into the language")
    if len(into) > 1 and not target:
        raise BilexError(
            f"{path}: holds translations into {len(into)} languages ({', '.join(list(into)[:_SHOWN])}"
            f"{', ...' if len(into) > _SHOWN else ''}); name the two that you mean with --languages, for "
            "example --languages en,fi."
        )
    first = next(iter(heads), "") if len(heads) == 1 else ""
    return collector.finished(languages=(first or None, next(iter(into), None)))


def _between(language: str, code: str, source: str, target: str) -> bool:
    """Whether a translation is from one language into another; an unmarked entry is of any."""
    return (not source or not language or language == source) and (not target or code == target)


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return value.strip() if isinstance(value, str) else ""


def _translations(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Language and word of every translation, of the entry and of its senses, each once."""
    lists = [record.get("translations")]
    senses = record.get("senses")
    lists += (
        [sense.get("translations") for sense in senses if isinstance(sense, dict)]
        if isinstance(senses, list)
        else []
    )
    found: dict[tuple[str, str], None] = {}
    for listed in lists:
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict) and _text(item, "word"):
                found[short(_text(item, "code") or _text(item, "lang_code")), _text(item, "word")] = None
    return list(found)


FORMAT = DictionaryFormat(
    name="wiktextract",
    description="Wiktextract: JSON Lines of a Wiktionary with translations into many languages",
    suffixes=(),
    noun="a Wiktextract file",
    read=_read,
)
