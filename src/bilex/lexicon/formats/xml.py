"""XML of dictionaries: parsed one entry at a time, with bounds, and the base class of its formats.

Expat parses, and an entry becomes an element of the standard library's ElementTree, whose names have lost
their namespaces. A declaration of an entity ends the reading, external ones are never opened, and the depth,
the size of one entry and the length of one tag are bounded, so that memory is too.
"""

from __future__ import annotations

import contextlib
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, ClassVar
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

from bilex.core import files
from bilex.core.errors import BilexError
from bilex.lexicon.entries import Entry
from bilex.lexicon.files import DictionaryFormat

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_DEEPEST = 64
_LARGEST_ENTRY, _LONGEST_TAG = 1 << 20, 4 << 20
_CHUNK = 1 << 16
_NODE_COST = 64
_BLANKS = re.compile("[ \t\r\n]+")


class XmlFormat(DictionaryFormat):
    """A format of XML, whose words cannot hold two spaces in a row: programs break and indent lines."""

    units = "entries"
    roots: ClassVar[tuple[str, ...]] = ()  # names that the outermost element may have
    folded_texts: ClassVar[tuple[str, ...]] = ()  # fields of an entry that are elements too
    _all_roots: ClassVar[set[str]] = set()

    def __init_subclass__(cls) -> None:
        XmlFormat._all_roots.update(cls.roots)

    def recognizes(self, path: Path, head: bytes) -> bool:
        """By the outermost element, or, if no format has that, by the suffix."""
        parser = _Parser(path)
        with contextlib.suppress(BilexError):
            parser.feed(head)
        if parser.root in self._all_roots:
            return parser.root in self.roots
        return super().recognizes(path, head) and head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"", b"<")

    def _fault(self, entry: Entry) -> str:
        texts = (getattr(entry, name) for name in ("source", "target", *self.folded_texts))
        return "two spaces in a word" if any("  " in text for text in texts) else ""


def elements(
    path: Path,
    roots: tuple[str, ...],
    names: tuple[str, ...],
    opened: tuple[str, ...] = (),
    part: IO[bytes] | None = None,
) -> Iterator[tuple[int, Element]]:
    """The elements with some names in a file, or in a `part` of an archive, each whole, with its line.

    One inside another is a part of that one. `opened` are elements around them, which are given when they
    begin, with attributes but without content; `roots` are names that the outermost element may have.
    """
    parser = _Parser(path, roots, names, opened)
    with files.opened(path) as whole, part or whole as file:
        while chunk := file.read(_CHUNK):
            yield from parser.feed(chunk)
        yield from parser.feed(b"")


def whole_text(node: Element, without: tuple[str, ...] = ()) -> str:
    """All text in an element but that of some elements in it."""
    parts = [node.text or ""]
    for child in node:
        parts += ["" if child.tag in without else whole_text(child, without), child.tail or ""]
    return "".join(parts)


def folded_text(node: Element, without: tuple[str, ...] = ()) -> str:
    """The same with runs of blanks as one space."""
    return folded(whole_text(node, without))


def folded(text: str) -> str:
    """A text with runs of XML's blanks as one space, and none at its ends."""
    return _BLANKS.sub(" ", text).strip()


def language_of(node: Element) -> str:
    """The language that an element is marked with, in lower case, or nothing."""
    return node.get("lang", "").strip().lower()


def element(name: str, text: str, attributes: str = "") -> str:
    """A text as an element of XML with that name; nothing if there is no text."""
    return f"<{name}{attributes}>{escape(text)}</{name}>" if text else ""


class _Parser:
    """Expat with the bounds, collecting finished elements."""

    def __init__(
        self,
        path: Path,
        roots: tuple[str, ...] = (),
        names: tuple[str, ...] = (),
        opened: tuple[str, ...] = (),
    ) -> None:
        self.path, self.roots, self.names, self.opened = path, roots, names, opened
        self.root = ""
        self.fed = self.depth = 0
        self.inside = 0  # the depth inside the entry that is being built
        self.size = self.line = 0  # of that entry
        self.builder = TreeBuilder()
        self.finished: list[tuple[int, Element]] = []
        self.expat = expat.ParserCreate()
        self.expat.buffer_text = True
        self.expat.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.CharacterDataHandler = self._characters
        self.expat.EntityDeclHandler = self._entity
        self.expat.SkippedEntityHandler = self._skipped

    def feed(self, chunk: bytes) -> list[tuple[int, Element]]:
        """The elements that a chunk finishes; an empty chunk is the end of the file."""
        self.fed += len(chunk)
        try:
            self.expat.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            raise BilexError(
                f"{self.path}: line {error.lineno} is not XML ({expat.ErrorString(error.code)}); repair the "
                "file there."
            ) from error
        except (ValueError, LookupError) as error:  # an encoding that there is not
            raise self._refusal("its encoding is not known", "save it as UTF-8") from error
        if self.fed - max(self.expat.CurrentByteIndex, 0) > _LONGEST_TAG:
            raise self._refusal("a tag of more than 4 MB")
        finished, self.finished = self.finished, []
        return finished

    def _refusal(self, what: str, advice: str = "give another file") -> BilexError:
        return BilexError(f"{self.path}: line {self.expat.CurrentLineNumber}: {what}; {advice}.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self.depth += 1
        self.root = self.root or name
        if self.depth == 1 and self.roots and name not in self.roots:
            raise self._refusal(
                f"the outermost element is '{name[:40]}' where '{self.roots[0]}' is expected",
                "name the format with --from",
            )
        if self.depth > _DEEPEST:
            raise self._refusal(f"elements are nested more than {_DEEPEST} deep")
        local = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        if self.inside:
            self._grow(_NODE_COST + sum(len(key) + len(value) for key, value in attributes.items()))
        elif name in self.names:
            self.builder, self.size, self.line = TreeBuilder(), 0, self.expat.CurrentLineNumber
        else:
            if name in self.opened:
                self.finished.append((self.expat.CurrentLineNumber, Element(name, local)))
            return
        self.inside += 1
        self.builder.start(name, local)

    def _end(self, name: str) -> None:
        self.depth -= 1
        if self.inside:
            self.inside -= 1
            self.builder.end(name)
            if not self.inside:
                self.finished.append((self.line, self.builder.close()))

    def _characters(self, text: str) -> None:
        if self.inside:
            self._grow(len(text))
            self.builder.data(text)

    def _grow(self, cost: int) -> None:
        self.size += cost
        if self.size > _LARGEST_ENTRY:
            raise self._refusal("an entry of more than 1 MB")

    def _entity(self, *declaration: object) -> None:
        raise self._refusal("it declares an entity", "files that do are not read")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        """A reference to an entity of a DTD that is not read: a character that HTML names."""
        if is_parameter:
            return
        text = html.unescape(f"&{name};")
        if text == f"&{name};":
            raise self._refusal(f"the entity '&{name[:40]};' is not known", "write the character itself")
        self._characters(text)
