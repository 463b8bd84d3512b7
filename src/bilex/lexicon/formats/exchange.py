"""XML for translators' programs: TMX 1.4 (memories), TBX-Basic (term bases) and Apertium's dictionaries."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.languages import matching_codes, short_code
from bilex.lexicon.entries import UNKNOWN_LANGUAGE, Dictionary, Entry, number_text, one_line
from bilex.lexicon.formats import DictionaryFormat, WriteOptions
from bilex.lexicon.reading import Layout, Units, reader
from bilex.lexicon.xml import DECLARATION, Node, elements, escape, folded, quoteattr, xml_fault

_SHOWN = 8
_INLINE_CODES = frozenset(("bpt", "ept", "ph", "it", "ut"))
_PROPERTIES = {f"x-{field.name.replace('_', '-')}": field.name for field in dataclasses.fields(Entry)[2:]}
_TBX_ROOTS, _CONCEPTS = (("martif", "tbx", "TBX"), ("termEntry", "conceptEntry"))  # of 2008 and of 2019
_LANGUAGES, _TERMS = ("langSet", "langSec"), ("tig", "ntig", "termSec")
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


def _marked_languages(
    path: Path,
    layout: Layout,
    roots: tuple[str, ...],
    heads: tuple[str, ...],
    words: tuple[str, ...],
    first: Callable[[Node], str],
) -> tuple[str, str]:
    """The two languages to read: those of the layout, else those that elements `words` are marked with.

    `first` gives the source language, or nothing, of an element of `heads`.
    """
    source, target = layout.languages
    if source and target:
        return source, target
    found: dict[str, None] = {}
    stated = ""
    for node in elements(path, roots, (), heads + words):
        if node.name in heads:
            stated = short_code(first(node))
        elif node.language():
            found[short_code(node.language())] = None
    listed = ", ".join([*list(found)[:_SHOWN], "..."] if len(found) > _SHOWN else found)
    for side in (source, target):
        if side and found and short_code(side) not in found:
            raise BilexError(
                f"{path}: holds no words in '{side}'; it has {listed}; name two of them with --languages."
            )
    source, target = (side and short_code(side) for side in (source, target))
    rest = [language for language in found if language not in (source, target)]
    if source is None and rest:
        source = stated if stated in rest else rest[0]
        rest.remove(source)
    if target is None and len(rest) > 1:
        raise BilexError(
            f"{path}: holds {len(found)} languages ({listed}); name the two that you "
            "mean with --languages, for example --languages en,fi."
        )
    target = target or next(iter(rest), None)
    if source is None or target is None:
        raise BilexError(f"{path}: does not mark words of two languages; give a file that does.")
    return source, target


def _required_languages(dictionary: Dictionary, noun: str) -> tuple[str, str]:
    """The languages of a dictionary for a format that marks each word with one: known, and two."""
    source, target = dictionary.codes()
    if short_code(source) == short_code(target):
        what = "are not known" if source == UNKNOWN_LANGUAGE else f"are both '{source}'"
        raise BilexError(
            f"the languages of the words {what}, and {noun} marks each word with its language; name them "
            "with --languages, for example --languages en,fi."
        )
    return source, target


def _tmx_units(path: Path, layout: Layout) -> Units:
    languages = _marked_languages(path, layout, ("tmx",), ("header",), ("tuv",), _tmx_source)
    for unit in elements(path, ("tmx",), ("tu",)):
        sources, targets = (
            [
                next((segment.text(without=_INLINE_CODES) for segment in variant.children("seg")), "")
                for variant in unit.children("tuv")
                if matching_codes(variant.language(), side)
            ]
            for side in languages
        )
        note = _tmx_note(unit)
        entries = [Entry(source, target).with_note(note) for source in sources[:1] for target in targets]
        yield unit.line, entries or "not in both languages"
    return languages


def _tmx_source(header: Node) -> str:
    stated = header.attributes.get("srclang", "")
    return "" if stated == "*all*" else stated


def _tmx_note(unit: Node) -> str:
    """The properties as a note that an entry understands."""
    parts = []
    for prop in unit.children("prop"):
        name = _PROPERTIES.get(prop.attributes.get("type", ""))
        if name:
            parts.append(prop.text() if name == "known" else f"{name}={prop.text()}")
    return "; ".join(sorted(parts, key=lambda part: part.startswith("provenance=")))


def _tmx_pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    from bilex import __version__

    source, target = _required_languages(dictionary, TMX.noun)
    yield (
        f'{DECLARATION}<tmx version="1.4">\n<header creationtool="bilex" creationtoolversion="{__version__}" '
        f'segtype="phrase" o-tmf="bilex" adminlang="en" srclang={quoteattr(source)} datatype="plaintext"/>\n'
        "<body>\n"
    )
    for entry in dictionary.entries:
        yield (
            f"<tu>{_tmx_properties(entry)}"
            f"<tuv xml:lang={quoteattr(source)}><seg>{escape(entry.source)}</seg></tuv>"
            f"<tuv xml:lang={quoteattr(target)}><seg>{escape(entry.target)}</seg></tuv></tu>\n"
        )
    yield "</body>\n</tmx>\n"


def _tmx_properties(entry: Entry) -> str:
    values = {
        "score": number_text(entry.score),
        "confidence": number_text(entry.confidence),
        "source-rank": entry.source_rank,
        "target-rank": entry.target_rank,
        "known": entry.origin(),
        "sense": entry.sense,
        "part-of-speech": entry.part_of_speech,
        "status": entry.status,
        "provenance": entry.provenance,
    }
    return "".join(
        f'<prop type="x-{name}">{escape(one_line(str(value)))}</prop>'
        for name, value in values.items()
        if value not in (None, "")
    )


TMX = DictionaryFormat(
    name="tmx",
    description="TMX 1.4, translation memories, with properties for score, confidence and origin",
    suffixes=(".tmx",),
    noun="a TMX file",
    read=reader("tmx", _tmx_units, "a <tu> with two languages", units="entries"),
    pieces=_tmx_pieces,
    fault=xml_fault,
)


def _tbx_units(path: Path, layout: Layout) -> Units:
    languages = _marked_languages(path, layout, _TBX_ROOTS, _TBX_ROOTS, _LANGUAGES, Node.language)
    for concept in elements(path, _TBX_ROOTS, _CONCEPTS):
        sources, targets = (
            [
                _term(group)
                for section in concept.children(*_LANGUAGES)
                if matching_codes(section.language(), side)
                for group in section.within(*_TERMS)
                if any(group.within("term"))
            ]
            for side in languages
        )
        both = itertools.starmap(_joined, itertools.product(sources, targets))
        yield concept.line, both if sources and targets else "not in both languages"
    return languages


def _term(group: Node) -> Entry:
    """A term as the target of an entry without source."""
    entry = Entry("", next(group.within("term")).text())
    for note in group.within("note"):
        entry = entry.with_note(note.text())
    speech = (note for note in group.within("termNote") if note.attributes.get("type") == "partOfSpeech")
    marked = next(speech, None)
    if marked is not None and not entry.part_of_speech:
        entry = dataclasses.replace(entry, part_of_speech=marked.text())
    return entry


def _joined(source: Entry, target: Entry) -> Entry:
    speech = target.part_of_speech or source.part_of_speech
    return dataclasses.replace(target, source=source.target, part_of_speech=speech)


def _tbx_pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    source, target = _required_languages(dictionary, TBX.noun)
    yield (
        f'{DECLARATION}<martif type="TBX-Basic" xml:lang={quoteattr(source)}>\n<martifHeader><fileDesc>'
        f"<titleStmt><title>{escape(dictionary.title())}</title></titleStmt>"
        "<sourceDesc><p>Written by bilex.</p></sourceDesc></fileDesc>"
        '<encodingDesc><p type="XCSURI">TBXBasicXCSV02.xcs</p></encodingDesc></martifHeader>\n<text><body>\n'
    )
    for number, entry in enumerate(dictionary.entries, 1):
        basic = _PARTS_OF_SPEECH.get(entry.part_of_speech.casefold(), "other")
        speech = f'<termNote type="partOfSpeech">{basic}</termNote>' if entry.part_of_speech else ""
        note = entry.note(without=("part_of_speech",) if basic == entry.part_of_speech else ())
        noted = f"<note>{escape(note)}</note>" if note else ""
        first, second = (
            f"<langSet xml:lang={quoteattr(language)}>"
            f"<tig><term>{escape(word)}</term>{speech}{more}</tig></langSet>"
            for language, word, more in ((source, entry.source, ""), (target, entry.target, noted))
        )
        definition = f'<descrip type="definition">{escape(entry.gloss)}</descrip>' if entry.gloss else ""
        yield f'<termEntry id="c{number}">{definition}{first}{second}</termEntry>\n'
    yield "</body></text>\n</martif>\n"


TBX = DictionaryFormat(
    name="tbx",
    description="TBX-Basic, term bases, with the part of speech, and a note on confidence and origin",
    suffixes=(".tbx",),
    noun="a TBX file",
    read=reader("tbx", _tbx_units, "a concept with terms in two languages", units="entries"),
    pieces=_tbx_pieces,
    fault=xml_fault,
)


def _apertium_units(path: Path, layout: Layout) -> Units:
    """The entries of the sections, whichever direction they are for; paradigms are not expanded."""
    for node in elements(path, ("dictionary",), ("e", "pardef")):
        if node.name == "pardef":
            continue
        if node.attributes.get("i") == "yes":
            yield node.line, "marked to be ignored"
        elif any(node.within("par", "re")):
            yield node.line, "a paradigm or an expression, not words"
        else:
            yield node.line, [_apertium_entry(node)]
    return None


def _apertium_entry(node: Node) -> Entry:
    source = target = ""
    for part in node.children("p", "i"):
        lefts, rights = (part.children("l"), part.children("r")) if part.name == "p" else ([part], [part])
        source += "".join(_apertium_text(side) for side in lefts)
        target += "".join(_apertium_text(side) for side in rights)
    tag = next((tag.attributes.get("n", "") for tag in node.within("s")), "")
    return Entry(folded(source), folded(target), part_of_speech=tag).with_note(node.attributes.get("c", ""))


def _apertium_text(part: Node | str) -> str:
    """The text of an element, blanks and groups in it; symbols are none."""
    if isinstance(part, str):
        return part
    if part.name in ("b", "j"):
        return " "
    inside = (one for one in part.content if isinstance(one, str) or one.name in ("b", "j", "g"))
    return "".join(map(_apertium_text, inside))


def _apertium_pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    tags = dict.fromkeys(_apertium_tag(entry) for entry in dictionary.entries)
    symbols = "".join(f"<sdef n={quoteattr(tag)}/>" for tag in tags if tag) or '<sdef n="n"/>'
    yield (
        f"{DECLARATION}<dictionary>\n<alphabet/>\n<sdefs>{symbols}</sdefs>\n"
        '<section id="main" type="standard">\n'
    )
    for entry in dictionary.entries:
        tag = _apertium_tag(entry)
        symbol = f"<s n={quoteattr(tag)}/>" if tag else ""
        note = entry.note(without=("part_of_speech",))
        comment = f" c={quoteattr(note)}" if note else ""
        left, right = (escape(word).replace(" ", "<b/>") for word in (entry.source, entry.target))
        yield f"<e{comment}><p><l>{left}{symbol}</l><r>{right}{symbol}</r></p></e>\n"
    yield "</section>\n</dictionary>\n"


def _apertium_tag(entry: Entry) -> str:
    """The symbol for a part of speech; none where it is not known, so that the entry fits any."""
    speech = entry.part_of_speech.casefold()
    return _TAGS.get(speech, re.sub(r"\W+", "_", speech).strip("_"))


APERTIUM = DictionaryFormat(
    name="apertium",
    description="a bilingual dictionary of Apertium, with the part of speech where it is known",
    suffixes=(".dix",),
    noun="an Apertium dictionary",
    read=reader("apertium", _apertium_units, "an <e> with <p><l>…</l><r>…</r></p>", units="entries"),
    pieces=_apertium_pieces,
    fault=xml_fault,
)
