"""TBX-Basic, term bases: a concept a pair; both the elements of 2008 (martif) and of 2019 (tbx) are read."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions
from bilex.lexicon.formats.languages import marked_languages, matches, two_languages
from bilex.lexicon.formats.xml_reading import DECLARATION, Node, elements, escape, quoteattr, xml_fault
from bilex.lexicon.reading import MOST_PAIRS_PER_UNIT, Collector, Layout, Reading

_NOUN = "a TBX file"
_ROOTS, _CONCEPTS = ("martif", "tbx", "TBX"), ("termEntry", "conceptEntry")
_LANGUAGES, _TERMS = ("langSet", "langSec"), ("tig", "ntig", "termSec")
# What TBX-Basic allows as part of speech, by what others call it.
_PARTS_OF_SPEECH = {
    **dict.fromkeys(("n", "noun", "subst", "nn"), "noun"),
    **dict.fromkeys(("v", "verb", "vblex"), "verb"),
    **dict.fromkeys(("adj", "adjective", "a"), "adjective"),
    **dict.fromkeys(("adv", "adverb"), "adverb"),
}


def _read(path: Path, layout: Layout) -> Reading:
    languages = marked_languages(path, layout, _ROOTS, _ROOTS, _LANGUAGES, Node.language)
    collector = Collector(
        path, "tbx", layout, units="entries", expected="a concept with terms in two languages"
    )
    for concept in elements(path, _ROOTS, _CONCEPTS):
        sources, targets = (
            [
                term
                for section in concept.children(*_LANGUAGES)
                if matches(section.language(), side)
                for term in _terms(section)
            ]
            for side in languages
        )
        if not sources or not targets:
            collector.leave_out(concept.line, "not in both languages")
        elif len(sources) * len(targets) > MOST_PAIRS_PER_UNIT:
            collector.leave_out(concept.line, f"more than {MOST_PAIRS_PER_UNIT:,} pairs in one place")
        else:
            pairs = itertools.product(sources, targets)
            collector.add(concept.line, [_entry(source, target) for source, target in pairs])
    return collector.finished(languages=languages)


def _terms(section: Node) -> list[Entry]:
    """The terms of a language, each as the target of an entry without source."""
    return [_term(group) for group in section.within(*_TERMS) if any(True for _ in group.within("term"))]


def _term(group: Node) -> Entry:
    entry = Entry("", next(group.within("term")).text())
    for note in group.within("note"):
        entry = entry.with_note(note.text())
    speech = (note for note in group.within("termNote") if note.attributes.get("type") == "partOfSpeech")
    marked = next(speech, None)
    if marked is not None and not entry.part_of_speech:
        entry = dataclasses.replace(entry, part_of_speech=marked.text())
    return entry


def _entry(source: Entry, target: Entry) -> Entry:
    speech = target.part_of_speech or source.part_of_speech
    return dataclasses.replace(target, source=source.target, part_of_speech=speech)


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    source, target = two_languages(dictionary, _NOUN)
    yield (
        f'{DECLARATION}<martif type="TBX-Basic" xml:lang={quoteattr(source)}>\n<martifHeader><fileDesc>'
        f"<titleStmt><title>{escape(dictionary.title())}</title></titleStmt>"
        "<sourceDesc><p>Written by bilex.</p></sourceDesc></fileDesc>"
        '<encodingDesc><p type="XCSURI">TBXBasicXCSV02.xcs</p></encodingDesc></martifHeader>\n<text><body>\n'
    )
    for number, entry in enumerate(dictionary.entries, 1):
        basic = _PARTS_OF_SPEECH.get(entry.part_of_speech.casefold(), "other")
        speech = f'<termNote type="partOfSpeech">{basic}</termNote>' if entry.part_of_speech else ""
        exact = basic == entry.part_of_speech
        note = entry.note(without=("part_of_speech",) if exact else ())
        noted = f"<note>{escape(note)}</note>" if note else ""
        first, second = (
            f"<langSet xml:lang={quoteattr(language)}>"
            f"<tig><term>{escape(word)}</term>{speech}{more}</tig></langSet>"
            for language, word, more in ((source, entry.source, ""), (target, entry.target, noted))
        )
        definition = f'<descrip type="definition">{escape(entry.gloss)}</descrip>' if entry.gloss else ""
        yield f'<termEntry id="c{number}">{definition}{first}{second}</termEntry>\n'
    yield "</body></text>\n</martif>\n"


FORMAT = DictionaryFormat(
    name="tbx",
    description="TBX-Basic, term bases, with the part of speech, and a note on confidence and origin",
    suffixes=(".tbx",),
    noun=_NOUN,
    read=_read,
    pieces=_pieces,
    fault=xml_fault,
)
