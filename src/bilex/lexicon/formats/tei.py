"""TEI P5 as FreeDict has it: one entry per word, one sense per translation."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

from bilex.core.languages import matching_codes, short_code
from bilex.lexicon.entries import EXAMPLE, TEXTS, Dictionary, Entry, Languages, number_of, number_text
from bilex.lexicon.formats import DictionaryFormat, WriteOptions
from bilex.lexicon.reading import Layout, Units, reader
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
        return matching_codes(self.source, target) and not matching_codes(self.source, source)

    def takes(self, language: str) -> bool:
        """Whether a translation into a language is wanted."""
        wanted = self.wanted[0 if self.backward() else 1]
        if wanted and language:
            return matching_codes(language, wanted)
        self.target = self.target or language
        return not language or language == self.target


def _units(path: Path, layout: Layout) -> Units:
    """The translations of every entry; examples and related entries are not read."""
    direction = _Direction(layout.languages)
    for node in elements(path, ("TEI", "TEI.2", "teiCorpus"), ("entry",), ("text", "body")):
        if node.name == "entry":
            yield node.line, _entries(node, direction)
        else:
            direction.source = node.language() or direction.source
    return short_code(direction.source) or None, short_code(direction.target) or None


def _entries(entry: Node, direction: _Direction) -> Iterator[Entry] | str:
    """The pairs of an entry, or why there are none."""
    heads = [
        orth.text()
        for form in entry.children("form")
        if form.attributes.get("type") not in _OTHER_FORMS
        for orth in form.children("orth")
    ]
    translations = [found for found in _translations(entry) if direction.takes(found[0].language())]
    if not heads or not translations:
        return "no translation" if heads else "no headword"
    speech = " ".join(pos.text() for group in entry.children("gramGrp") for pos in group.children("pos"))
    targets = [_entry(node, speech, sense) for node, sense in translations]
    found = (dataclasses.replace(one, source=head) for head, one in itertools.product(heads, targets))
    return (one.swapped() for one in found) if direction.backward() else found


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
    example = ""
    if entry.example:
        sentence, _, translated = entry.example.partition(EXAMPLE)
        other = _quoted(translated, target) if translated else ""
        example = f'<cit type="example"><quote>{escape(sentence)}</quote>{other}</cit>'
    return f"<sense>{head}{_quoted(entry.target, target, certainty, noted)}{example}</sense>"


def _quoted(text: str, target: str, more: str = "", note: str = "") -> str:
    """A translation."""
    return f'<cit type="trans" xml:lang={quoteattr(target)}{more}><quote>{escape(text)}</quote>{note}</cit>'


read_tei = reader("tei", _units, "an <entry> with a translation", units="entries")
TEI = DictionaryFormat(
    name="tei",
    description="TEI P5 as FreeDict has it, with senses, labels, examples, and confidence as certainty",
    suffixes=(".tei", ".xml"),
    noun="a TEI file",
    read=read_tei,
    pieces=_pieces,
    fault=lambda entry: xml_fault(entry, *TEXTS),
)
