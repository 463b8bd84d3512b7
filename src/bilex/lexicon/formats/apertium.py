"""Bilingual dictionaries of Apertium (bidix): an element a pair, with tags for the part of speech."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions
from bilex.lexicon.formats.xml_reading import (
    DECLARATION,
    Node,
    elements,
    escape,
    folded,
    quoteattr,
    xml_fault,
)
from bilex.lexicon.reading import Collector, Layout, Reading

_BLANKS = {"b": " ", "j": " "}
_NOT_WORDS = ("par", "re")
# Apertium's tags by what others call the part of speech.
_TAGS = {
    **dict.fromkeys(("n", "noun"), "n"),
    **dict.fromkeys(("pn", "np", "propn", "proper noun"), "np"),
    **dict.fromkeys(("v", "verb"), "vblex"),
    **dict.fromkeys(("adj", "adjective"), "adj"),
    **dict.fromkeys(("adv", "adverb"), "adv"),
}


def _read(path: Path, layout: Layout) -> Reading:
    """Read the entries of the sections, whichever direction they are for; paradigms are not expanded."""
    expected = "an <e> with <p><l>…</l><r>…</r></p>"
    collector = Collector(path, "apertium", layout, units="entries", expected=expected)
    for node in elements(path, ("dictionary",), ("e", "pardef")):
        if node.name == "pardef":
            continue
        if node.attributes.get("i") == "yes":
            collector.leave_out(node.line, "marked to be ignored")
        elif any(True for _ in node.within(*_NOT_WORDS)):
            collector.leave_out(node.line, "a paradigm or an expression, not words")
        else:
            collector.add(node.line, [_entry(node)])
    return collector.finished()


def _entry(node: Node) -> Entry:
    sides: tuple[list[str], list[str]] = ([], [])
    for part in node.children("p", "i"):
        lefts, rights = (part.children("l"), part.children("r")) if part.name == "p" else ([part], [part])
        for side, found in zip(sides, (lefts, rights), strict=True):
            side.extend(_words(word) for word in found)
    tags = [tag.attributes.get("n", "") for tag in node.within("s")]
    source, target = (folded("".join(side)) for side in sides)
    return Entry(source, target, part_of_speech=tags[0] if tags else "").with_note(
        node.attributes.get("c", "")
    )


def _words(node: Node) -> str:
    pieces = []
    for part in node.content:
        if isinstance(part, str):
            pieces.append(part)
        elif part.name in _BLANKS:
            pieces.append(_BLANKS[part.name])
        elif part.name == "g":
            pieces.append(_words(part))
    return "".join(pieces)


def _pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    tags = dict.fromkeys(_tag(entry) for entry in dictionary.entries)
    symbols = "".join(f"<sdef n={quoteattr(tag)}/>" for tag in tags if tag) or '<sdef n="n"/>'
    yield (
        f"{DECLARATION}<dictionary>\n<alphabet/>\n<sdefs>{symbols}</sdefs>\n"
        '<section id="main" type="standard">\n'
    )
    for entry in dictionary.entries:
        tag = _tag(entry)
        symbol = f"<s n={quoteattr(tag)}/>" if tag else ""
        note = entry.note(without=("part_of_speech",))
        comment = f" c={quoteattr(note)}" if note else ""
        left, right = (escape(word).replace(" ", "<b/>") for word in (entry.source, entry.target))
        yield f"<e{comment}><p><l>{left}{symbol}</l><r>{right}{symbol}</r></p></e>\n"
    yield "</section>\n</dictionary>\n"


def _tag(entry: Entry) -> str:
    """The symbol for a part of speech; none where it is not known, so that the entry fits any."""
    speech = entry.part_of_speech.casefold()
    return _TAGS.get(speech, re.sub(r"\W+", "_", speech).strip("_"))


FORMAT = DictionaryFormat(
    name="apertium",
    description="a bilingual dictionary of Apertium, with the part of speech where it is known",
    suffixes=(".dix",),
    noun="an Apertium dictionary",
    read=_read,
    pieces=_pieces,
    fault=xml_fault,
)
