"""Formats of XML: TMX 1.4, TBX-Basic, dictionaries of Apertium, and TEI P5 as FreeDict has it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import ClassVar
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from bilex.core.errors import BilexError
from bilex.core.languages import matching_codes, short_code
from bilex.core.text import listed
from bilex.lexicon.entries import (
    EXAMPLE,
    TEXTS,
    UNKNOWN_LANGUAGE,
    Dictionary,
    Entry,
    number_of,
    number_text,
    parsed_facts,
)
from bilex.lexicon.files import Reading, WriteOptions
from bilex.lexicon.formats.xml import (
    DECLARATION,
    XmlFormat,
    element,
    elements,
    folded,
    folded_text,
    language_of,
)

_SHOWN = 8
_INLINE_CODES = ("bpt", "ept", "ph", "it", "ut")
_PROPERTIES = {f"x-{field.name.replace('_', '-')}": field.name for field in fields(Entry)[2:]}
_TERMS = ("tig", "ntig", "termSec")
# What TBX-Basic allows as part of speech, by what others call it.
_PARTS_OF_SPEECH = {
    **dict.fromkeys(("n", "noun", "subst", "nn"), "noun"),
    **dict.fromkeys(("v", "verb", "vblex"), "verb"),
    **dict.fromkeys(("adj", "adjective", "a"), "adjective"),
    **dict.fromkeys(("adv", "adverb"), "adverb"),
}
# Apertium's tags by what others call the part of speech.
_TAGS = {
    **dict.fromkeys(("n", "noun"), "n"),
    **dict.fromkeys(("pn", "np", "propn", "proper noun"), "np"),
    **dict.fromkeys(("v", "verb"), "vblex"),
    **dict.fromkeys(("adj", "adjective"), "adj"),
    **dict.fromkeys(("adv", "adverb"), "adv"),
}
_TRANSLATION_KINDS = ("trans", "translation", "translationEquivalent")
_OTHER_FORMS = ("infl", "inflected", "variant")
_TEI_ELEMENTS = ("part_of_speech", "confidence", "gloss", "labels", "comment", "example")


class MarkedFormat(XmlFormat):
    """A format that marks each word with its language.

    A subclass sets which elements hold words, are marked, and may name the source language, by an attribute.
    """

    unit_elements: ClassVar[tuple[str, ...]]
    marked_elements: ClassVar[tuple[str, ...]]
    head_elements: ClassVar[tuple[str, ...]]
    head_attribute: ClassVar[str]
    most_sources: ClassVar[int | None] = None  # how many source words of a unit are read; None for all

    def _parse(self, reading: Reading) -> None:
        reading.languages = languages = self._read_languages(reading)
        for line, unit in elements(reading.path, self.roots, self.unit_elements):
            sources, targets = (list(self._words(unit, side)) for side in languages)
            pairs = (
                replace(other, source=one.target, part_of_speech=other.part_of_speech or one.part_of_speech)
                for one, other in itertools.product(sources[: self.most_sources], targets)
            )
            reading.add(line, pairs if sources and targets else "not in both languages")

    def _words(self, unit: Element, language: str) -> Iterator[Entry]:
        """The words of a unit in a language, each as the target of an entry without source."""
        raise NotImplementedError

    def _read_languages(self, reading: Reading) -> tuple[str, str]:
        """The two languages to read: those of the layout, else those that words are marked with."""
        source, target = (code and short_code(code) for code in reading.layout.languages)
        if source and target:
            return source, target
        found: dict[str, None] = {}
        stated = ""
        for _, node in elements(reading.path, self.roots, (), self.head_elements + self.marked_elements):
            if node.tag in self.head_elements:
                stated = short_code(node.get(self.head_attribute, "").strip())
            elif language := language_of(node):
                found[short_code(language)] = None
        shown = listed(found, _SHOWN)
        if missing := [side for side in (source, target) if side and found and side not in found]:
            raise BilexError(
                f"{reading.path}: holds no words in '{missing[0]}'; it has {shown}; name two of them with "
                "--languages."
            )
        rest = [language for language in found if language not in (source, target)]
        if source is None and rest:
            source = rest.pop(rest.index(stated) if stated in rest else 0)
        if target is None and len(rest) > 1:
            raise BilexError(
                f"{reading.path}: holds {len(found)} languages ({shown}); name the two that you "
                "mean with --languages, for example --languages en,fi."
            )
        target = target or next(iter(rest), None)
        if source is None or target is None:
            raise BilexError(f"{reading.path}: does not mark words of two languages; give a file that does.")
        return source, target

    def _written_languages(self, dictionary: Dictionary) -> tuple[str, str]:
        """The codes of the two languages of a dictionary, quoted; they must be known and differ."""
        source, target = dictionary.codes()
        if short_code(source) == short_code(target):
            what = "are not known" if source == UNKNOWN_LANGUAGE else f"are both '{source}'"
            raise BilexError(
                f"the languages of the words {what}, and {self.noun} marks each word with its language; name "
                "them with --languages, for example --languages en,fi."
            )
        return quoteattr(source), quoteattr(target)


class TMX(MarkedFormat):
    """TMX 1.4, translation memories, with properties for score, confidence and origin."""

    name, noun, suffixes, roots = "tmx", "a TMX file", (".tmx",), ("tmx",)
    expected = "a <tu> with two languages"
    unit_elements, marked_elements = ("tu",), ("tuv",)
    head_elements, head_attribute, most_sources = ("header",), "srclang", 1

    def _words(self, unit: Element, language: str) -> Iterator[Entry]:
        properties = {prop.get("type", ""): folded_text(prop) for prop in unit.findall("prop")}
        facts = {name: properties[kind] for kind, name in _PROPERTIES.items() if kind in properties}
        for variant in unit.findall("tuv"):
            if matching_codes(language_of(variant), language):
                text = next((folded_text(segment, _INLINE_CODES) for segment in variant.findall("seg")), "")
                yield Entry("", text, **parsed_facts(facts))

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        from bilex import __version__

        source, target = self._written_languages(dictionary)
        yield (
            f'{DECLARATION}<tmx version="1.4">\n<header creationtool="bilex" '
            f'creationtoolversion="{__version__}" segtype="phrase" o-tmf="bilex" adminlang="en" '
            f'srclang={source} datatype="plaintext"/>\n<body>\n'
        )
        for entry in dictionary.entries:
            facts = entry.facts()
            properties = "".join(
                element("prop", facts[name], f' type="{kind}"')
                for kind, name in _PROPERTIES.items()
                if name in facts
            )
            yield (
                f"<tu>{properties}<tuv xml:lang={source}><seg>{escape(entry.source)}</seg></tuv>"
                f"<tuv xml:lang={target}><seg>{escape(entry.target)}</seg></tuv></tu>\n"
            )
        yield "</body>\n</tmx>\n"


class TBX(MarkedFormat):
    """TBX-Basic, term bases, with the part of speech, and a note on confidence and origin."""

    name, noun, suffixes, roots = "tbx", "a TBX file", (".tbx",), ("martif", "tbx", "TBX")
    expected = "a concept with terms in two languages"
    unit_elements, marked_elements = ("termEntry", "conceptEntry"), ("langSet", "langSec")  # of 2008 and 2019
    head_elements, head_attribute = roots, "lang"

    def _words(self, unit: Element, language: str) -> Iterator[Entry]:
        for section in unit:
            if section.tag not in self.marked_elements or not matching_codes(language_of(section), language):
                continue
            for group in section.iter():
                if group.tag in _TERMS and (term := group.find(".//term")) is not None:
                    speech = group.find(".//termNote[@type='partOfSpeech']")
                    marked = "" if speech is None else folded_text(speech)
                    entry = Entry("", folded_text(term), part_of_speech=marked)
                    for note in group.iter("note"):
                        entry = entry.with_note(folded_text(note))
                    yield entry

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        source, target = self._written_languages(dictionary)
        yield (
            f'{DECLARATION}<martif type="TBX-Basic" xml:lang={source}>\n<martifHeader><fileDesc>'
            f"<titleStmt><title>{escape(dictionary.title())}</title></titleStmt>"
            "<sourceDesc><p>Written by bilex.</p></sourceDesc></fileDesc>"
            '<encodingDesc><p type="XCSURI">TBXBasicXCSV02.xcs</p></encodingDesc></martifHeader>\n'
            "<text><body>\n"
        )
        for number, entry in enumerate(dictionary.entries, 1):
            basic = _PARTS_OF_SPEECH.get(entry.part_of_speech.casefold(), "other")
            speech = element("termNote", entry.part_of_speech and basic, ' type="partOfSpeech"')
            note = entry.note(without=("part_of_speech",) if basic == entry.part_of_speech else ())
            terms = "".join(
                f"<langSet xml:lang={code}><tig><term>{escape(word)}</term>{speech}{more}</tig></langSet>"
                for code, word, more in (
                    (source, entry.source, ""),
                    (target, entry.target, element("note", note)),
                )
            )
            definition = element("descrip", entry.gloss, ' type="definition"')
            yield f'<termEntry id="c{number}">{definition}{terms}</termEntry>\n'
        yield "</body></text>\n</martif>\n"


class Apertium(XmlFormat):
    """A bilingual dictionary of Apertium, with the part of speech where it is known."""

    name, noun, suffixes, roots = "apertium", "an Apertium dictionary", (".dix",), ("dictionary",)
    expected = "an <e> with <p><l>…</l><r>…</r></p>"

    def _parse(self, reading: Reading) -> None:
        """The entries of the sections, for either direction; paradigms are not expanded."""
        for line, node in elements(reading.path, self.roots, ("e", "pardef")):
            if node.tag == "pardef":
                continue
            if node.get("i") == "yes":
                reading.add(line, "marked to be ignored")
            elif not {"par", "re"}.isdisjoint(one.tag for one in node.iter()):
                reading.add(line, "a paradigm or an expression, not words")
            else:
                source, target = (
                    "".join(
                        self._text(part)
                        for pair in node
                        if pair.tag in ("p", "i")
                        for part in (pair.findall(side) if pair.tag == "p" else [pair])
                    )
                    for side in ("l", "r")
                )
                tag = next((symbol.get("n", "") for symbol in node.iter("s")), "")
                entry = Entry(folded(source), folded(target), part_of_speech=tag)
                reading.add(line, [entry.with_note(node.get("c", ""))])

    def _text(self, node: Element) -> str:
        """The text of an element, blanks and groups in it; symbols are none."""
        if node.tag in ("b", "j"):
            return " "
        inside = (
            (self._text(child) if child.tag in ("b", "j", "g") else "") + (child.tail or "") for child in node
        )
        return (node.text or "") + "".join(inside)

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        tags = dict.fromkeys(filter(None, map(self._tag, dictionary.entries)))
        symbols = "".join(f"<sdef n={quoteattr(tag)}/>" for tag in tags or ("n",))
        yield (
            f"{DECLARATION}<dictionary>\n<alphabet/>\n<sdefs>{symbols}</sdefs>\n"
            '<section id="main" type="standard">\n'
        )
        for entry in dictionary.entries:
            tag, note = self._tag(entry), entry.note(without=("part_of_speech",))
            symbol = f"<s n={quoteattr(tag)}/>" if tag else ""
            comment = f" c={quoteattr(note)}" if note else ""
            left, right = (escape(word).replace(" ", "<b/>") for word in (entry.source, entry.target))
            yield f"<e{comment}><p><l>{left}{symbol}</l><r>{right}{symbol}</r></p></e>\n"
        yield "</section>\n</dictionary>\n"

    @staticmethod
    def _tag(entry: Entry) -> str:
        """The symbol for a part of speech; none if it is not known, so that the entry fits any."""
        speech = entry.part_of_speech.casefold()
        return _TAGS.get(speech, re.sub(r"\W+", "_", speech).strip("_"))


class TEI(XmlFormat):
    """TEI P5 as FreeDict has it, with senses, labels, examples, and confidence as certainty."""

    name, noun, suffixes, roots = "tei", "a TEI file", (".tei", ".xml"), ("TEI", "TEI.2", "teiCorpus")
    expected = "an <entry> with a translation"
    folded_texts = TEXTS

    def _parse(self, reading: Reading) -> None:
        """The translations of every entry; examples and related entries are not read."""
        wanted = reading.layout.languages
        source = target = ""  # the languages that the file is marked with
        for line, node in elements(reading.path, self.roots, ("entry",), ("text", "body")):
            if node.tag != "entry":
                source = language_of(node) or source
                continue
            one, other = wanted
            backward = bool(
                one and other and source and matching_codes(source, other) and not matching_codes(source, one)
            )
            into = one if backward else other
            translations = []
            for cit, sense in self._translations(node):
                language = language_of(cit)
                if not (into and language):
                    target = target or language
                if matching_codes(language, into) if into and language else language in ("", target):
                    translations.append(self._entry(cit, sense))
            reading.add(line, self._entries(node, translations, backward))
        reading.languages = short_code(source) or None, short_code(target) or None

    @staticmethod
    def _entries(entry: Element, translations: list[Entry], backward: bool) -> Iterator[Entry] | str:
        """The pairs of an entry, or why there are none."""
        heads = [
            folded_text(orth)
            for form in entry.findall("form")
            if form.get("type") not in _OTHER_FORMS
            for orth in form.findall("orth")
        ]
        if not heads or not translations:
            return "no translation" if heads else "no headword"
        speech = " ".join(map(folded_text, entry.findall("gramGrp/pos")))
        found = (
            replace(one, source=head, part_of_speech=one.part_of_speech or speech)
            for head, one in itertools.product(heads, translations)
        )
        return (one.swapped() for one in found) if backward else found

    def _translations(
        self, node: Element, sense: Element | None = None
    ) -> Iterator[tuple[Element, Element | None]]:
        """The elements that hold translations of a word itself, each with its sense, wherever it is."""
        for child in node:
            if child.tag == "tr" or (child.tag == "cit" and child.get("type") in _TRANSLATION_KINDS):
                yield child, sense
            elif child.tag not in ("cit", "re", "form", "note", "def"):
                yield from self._translations(child, child if child.tag == "sense" else sense)

    @staticmethod
    def _entry(node: Element, sense: Element | None) -> Entry:
        """A translation, for any headword."""
        quoted = next((child for child in node if child.tag in ("quote", "orth")), node)
        certainty = number_of(node.get("cert", ""))
        confidence = certainty if certainty is not None and 0 <= certainty <= 1 else None
        entry = Entry("", folded_text(quoted), confidence=confidence)
        if sense is not None:
            entry = replace(
                entry,
                gloss=" ".join(map(folded_text, sense.findall("def"))),
                labels=", ".join(map(folded_text, sense.findall("usg"))),
                example=EXAMPLE.join(map(folded_text, sense.findall("cit[@type='example']//quote"))),
            )
        for note in node.findall("note"):
            text = folded_text(note)
            is_comment = note.get("type") == "comment"
            entry = replace(entry, comment=text) if is_comment else entry.with_note(text)
        return entry

    def _pieces(self, dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
        source, target = map(quoteattr, dictionary.codes())
        heads: dict[tuple[str, str], list[Entry]] = {}
        for entry in dictionary.entries:
            heads.setdefault((entry.source, entry.part_of_speech), []).append(entry)
        yield (
            f'{DECLARATION}<TEI xmlns="http://www.tei-c.org/ns/1.0" version="5.0">\n<teiHeader><fileDesc>'
            f"<titleStmt><title>{escape(dictionary.title())}</title></titleStmt>"
            f"<extent>{len(heads)} headwords</extent>"
            "<publicationStmt><p>Written by bilex.</p></publicationStmt>"
            "<sourceDesc><p>Word vectors of two languages, aligned.</p></sourceDesc></fileDesc></teiHeader>\n"
            f"<text xml:lang={source}><body>\n"
        )
        for (word, speech), entries in heads.items():
            marked = f"<gramGrp>{element('pos', speech)}</gramGrp>" if speech else ""
            senses = "".join(self._sense(entry, target) for entry in entries)
            yield f"<entry><form><orth>{escape(word)}</orth></form>{marked}{senses}</entry>\n"
        yield "</body></text>\n</TEI>\n"

    @staticmethod
    def _sense(entry: Entry, target: str) -> str:
        certainty = f' cert="{number_text(entry.confidence)}"' if entry.confidence is not None else ""
        noted = element("note", entry.comment, ' type="comment"')
        noted += element("note", entry.note(without=_TEI_ELEMENTS), ' type="bilex"')
        labels = "".join(element("usg", label.strip()) for label in entry.labels.split(","))
        translated = f'<cit type="trans" xml:lang={target}'
        example = ""
        if entry.example:
            sentence, _, other = entry.example.partition(EXAMPLE)
            other = f"{translated}>{element('quote', other)}</cit>" if other else ""
            example = f'<cit type="example"><quote>{escape(sentence)}</quote>{other}</cit>'
        return (
            f"<sense>{element('def', entry.gloss)}{labels}{translated}{certainty}>"
            f"<quote>{escape(entry.target)}</quote>{noted}</cit>{example}</sense>"
        )
