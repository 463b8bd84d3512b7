"""TEI P5 as FreeDict has it: one entry per word, one sense per translation."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

from bilex.lexicon.entries import EXAMPLE, TEXTS, Dictionary, Entry, Languages, number_of, number_text
from bilex.lexicon.formats import DictionaryFormat, WriteOptions
from bilex.lexicon.languages import matches, short
from bilex.lexicon.reading import Collector, Layout, Reading
from bilex.lexicon.xml import DECLARATION, Node, elements, escape, quoteattr, xml_fault

_TRANSLATION_KINDS = ("trans", "translation", "translationEquivalent")
_OTHER_FORMS = ("infl", "inflected", "variant")
_NAMESPACE = "http://www.tei-c.org/ns/1.0"


@dataclasses.dataclass
class _Direction:
    """Which languages the file goes between, as far as its marks say, against those that are wanted."""

    wanted: Languages
    source: str = ""
    target: str = ""

    def backward(self) -> bool:
        """Whether the file translates from the target language that is wanted into the source language."""
        source, target = self.wanted
        if not (source and target and self.source):
            return False
        return matches(self.source, target) and not matches(self.source, source)

    def takes(self, language: str) -> bool:
        """Whether a translation into a language is wanted."""
        wanted = self.wanted[0 if self.backward() else 1]
        if wanted and language:
            return matches(language, wanted)
        self.target = self.target or language
        return not language or language == self.target


def read_tei(path: Path, layout: Layout) -> Reading:
    """Read the translations of every entry; examples and related entries are not read."""
    direction = _Direction(layout.languages)
    collector = Collector(path, "tei", layout, units="entries", expected="an <entry> with a translation")
    for node in elements(path, ("TEI", "TEI.2", "teiCorpus"), ("entry",), ("text", "body")):
        if node.name != "entry":
            direction.source = node.language() or direction.source
        else:
            _take(collector, node, direction)
    found: Languages = (short(direction.source) or None, short(direction.target) or None)
    return collector.finished(languages=found)


def _take(collector: Collector, entry: Node, direction: _Direction) -> None:
    heads = [
        orth.text()
        for form in entry.children("form")
        if form.attributes.get("type") not in _OTHER_FORMS
        for orth in form.children("orth")
    ]
    translations = [found for found in _translations(entry) if direction.takes(found[0].language())]
    if not heads:
        collector.leave_out(entry.line, "no headword")
    elif not translations:
        collector.leave_out(entry.line, "no translation")
    else:
        speech = " ".join(pos.text() for group in entry.children("gramGrp") for pos in group.children("pos"))
        targets = [_entry(node, speech, sense) for node, sense in translations]
        found = (dataclasses.replace(one, source=head) for head, one in itertools.product(heads, targets))
        collector.add(entry.line, (one.swapped() for one in found) if direction.backward() else found)


def _translations(node: Node, sense: Node | None = None) -> Iterator[tuple[Node, Node | None]]:
    """The elements that hold translations of a word itself, each with its sense, wherever it is."""
    for child in node.content:
        if isinstance(child, str) or child.name in ("re", "form", "note", "def"):
            continue
        if child.name == "tr" or (child.name == "cit" and child.attributes.get("type") in _TRANSLATION_KINDS):
            yield child, sense
        elif child.name != "cit":
            yield from _translations(child, child if child.name == "sense" else sense)


def _entry(node: Node, speech: str, sense: Node | None) -> Entry:
    """A translation, for any headword."""
    quotes = [quote.text() for quote in node.children("quote", "orth")]
    word = quotes[0] if quotes else node.text()
    certainty = number_of(node.attributes.get("cert", ""))
    confidence = certainty if certainty is not None and 0 <= certainty <= 1 else None
    entry = Entry("", word, confidence=confidence, part_of_speech=speech)
    if sense is not None:
        examples = (one for one in sense.children("cit") if one.attributes.get("type") == "example")
        entry = dataclasses.replace(
            entry,
            gloss=" ".join(one.text() for one in sense.children("def")),
            labels=", ".join(one.text() for one in sense.children("usg")),
            example=EXAMPLE.join(quote.text() for one in examples for quote in one.within("quote")),
        )
    for note in node.children("note"):
        if note.attributes.get("type") == "comment":
            entry = dataclasses.replace(entry, comment=note.text())
        else:
            entry = entry.with_note(note.text())
    return entry


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    source, target = dictionary.codes()
    heads: dict[tuple[str, str], list[Entry]] = {}
    for entry in dictionary.entries:
        heads.setdefault((entry.source, entry.part_of_speech), []).append(entry)
    yield (
        f'{DECLARATION}<TEI xmlns="{_NAMESPACE}" version="5.0">\n<teiHeader><fileDesc>'
        f"<titleStmt><title>{escape(dictionary.title())}</title></titleStmt>"
        f"<extent>{len(heads)} headwords</extent>"
        "<publicationStmt><p>Written by bilex.</p></publicationStmt>"
        "<sourceDesc><p>Word vectors of two languages, aligned.</p></sourceDesc></fileDesc></teiHeader>\n"
        f"<text xml:lang={quoteattr(source)}><body>\n"
    )
    for (word, speech), entries in heads.items():
        marked = f"<gramGrp><pos>{escape(' '.join(speech.split()))}</pos></gramGrp>" if speech else ""
        senses = "".join(_sense(entry, target) for entry in entries)
        yield f"<entry><form><orth>{escape(word)}</orth></form>{marked}{senses}</entry>\n"
    yield "</body></text>\n</TEI>\n"


def _sense(entry: Entry, target: str) -> str:
    certainty = f' cert="{number_text(entry.confidence)}"' if entry.confidence is not None else ""
    note = entry.note(without=("confidence", "part_of_speech", "gloss", "labels", "comment", "example"))
    noted = f'<note type="comment">{escape(entry.comment)}</note>' if entry.comment else ""
    noted += f'<note type="bilex">{escape(note)}</note>' if note else ""
    head = f"<def>{escape(entry.gloss)}</def>" if entry.gloss else ""
    head += "".join(f"<usg>{escape(one.strip())}</usg>" for one in entry.labels.split(",") if one.strip())
    return (
        f'<sense>{head}<cit type="trans" xml:lang={quoteattr(target)}{certainty}>'
        f"<quote>{escape(entry.target)}</quote>{noted}</cit>{_example(entry, target)}</sense>"
    )


def _example(entry: Entry, target: str) -> str:
    if not entry.example:
        return ""
    sentence, _, translated = entry.example.partition(EXAMPLE)
    other = f'<cit type="trans" xml:lang={quoteattr(target)}><quote>{escape(translated)}</quote></cit>'
    other = other if translated else ""
    return f'<cit type="example"><quote>{escape(sentence)}</quote>{other}</cit>'


TEI = DictionaryFormat(
    name="tei",
    description="TEI P5 as FreeDict has it, with senses, labels, examples, and confidence as certainty",
    suffixes=(".tei", ".xml"),
    noun="a TEI file",
    read=read_tei,
    pieces=_pieces,
    fault=lambda entry: xml_fault(entry, *TEXTS),
)
