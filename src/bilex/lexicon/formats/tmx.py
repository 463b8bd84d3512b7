"""TMX 1.4, translation memories: a unit a pair, with properties for all that is known about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from bilex.lexicon.entries import Dictionary, Entry, number_text, one_line
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions
from bilex.lexicon.formats.languages import marked_languages, matches, two_languages
from bilex.lexicon.formats.xml_reading import DECLARATION, Node, elements, escape, quoteattr, xml_fault
from bilex.lexicon.reading import Collector, Layout, Reading

_NOUN = "a TMX file"
_INLINE_CODES = frozenset(("bpt", "ept", "ph", "it", "ut"))
_FACTS = {field.name: f"x-{field.name.replace('_', '-')}" for field in fields(Entry)[2:]}


def _read(path: Path, layout: Layout) -> Reading:
    languages = marked_languages(path, layout, ("tmx",), ("header",), ("tuv",), _source)
    collector = Collector(path, "tmx", layout, units="entries", expected="a <tu> with two languages")
    for unit in elements(path, ("tmx",), ("tu",)):
        variants = [(variant.language(), _segment(variant)) for variant in unit.children("tuv")]
        sources, targets = (
            [text for language, text in variants if matches(language, side)] for side in languages
        )
        if sources and targets:
            note = _facts(unit)
            collector.add(unit.line, [Entry(sources[0], target).with_note(note) for target in targets])
        else:
            collector.leave_out(unit.line, "not in both languages")
    return collector.finished(languages=languages)


def _source(header: Node) -> str:
    stated = header.attributes.get("srclang", "")
    return "" if stated == "*all*" else stated


def _segment(variant: Node) -> str:
    return next((segment.text(without=_INLINE_CODES) for segment in variant.children("seg")), "")


def _facts(unit: Node) -> str:
    """The properties as a note that an entry understands."""
    named = {kind: name for name, kind in _FACTS.items()}
    parts = []
    for prop in unit.children("prop"):
        name = named.get(prop.attributes.get("type", ""))
        if name == "known":
            parts.append(prop.text())
        elif name:
            parts.append(f"{name}={prop.text()}")
    return "; ".join(sorted(parts, key=lambda part: part.startswith("provenance=")))


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    from bilex import __version__

    source, target = two_languages(dictionary, _NOUN)
    yield (
        f'{DECLARATION}<tmx version="1.4">\n<header creationtool="bilex" creationtoolversion="{__version__}" '
        f'segtype="phrase" o-tmf="bilex" adminlang="en" srclang={quoteattr(source)} datatype="plaintext"/>\n'
        "<body>\n"
    )
    for entry in dictionary.entries:
        yield (
            f"<tu>{_properties(entry)}"
            f"<tuv xml:lang={quoteattr(source)}><seg>{escape(entry.source)}</seg></tuv>"
            f"<tuv xml:lang={quoteattr(target)}><seg>{escape(entry.target)}</seg></tuv></tu>\n"
        )
    yield "</body>\n</tmx>\n"


def _properties(entry: Entry) -> str:
    values = {
        "score": number_text(entry.score),
        "confidence": number_text(entry.confidence),
        "source_rank": "" if entry.source_rank is None else str(entry.source_rank),
        "target_rank": "" if entry.target_rank is None else str(entry.target_rank),
        "known": entry.origin(),
        "sense": "" if entry.sense is None else str(entry.sense),
        "part_of_speech": entry.part_of_speech,
        "status": entry.status,
        "provenance": entry.provenance,
    }
    return "".join(
        f'<prop type="{_FACTS[name]}">{escape(one_line(value))}</prop>'
        for name, value in values.items()
        if value
    )


FORMAT = DictionaryFormat(
    name="tmx",
    description="TMX 1.4, translation memories, with properties for score, confidence and origin",
    suffixes=(".tmx",),
    noun=_NOUN,
    read=_read,
    pieces=_pieces,
    fault=xml_fault,
)
