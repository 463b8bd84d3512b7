"""XML of dictionaries: parsed one entry at a time, with bounds, and the base class of its formats.

Expat parses; a declaration of an entity ends the reading, external ones are never opened, and the depth, the
size of one entry and the length of one tag are bounded, so that memory is too.
"""

from __future__ import annotations

import contextlib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, ClassVar
from xml.parsers import expat
from xml.sax.saxutils import escape

from bilex.core import files
from bilex.core.errors import BilexError
from bilex.lexicon.entries import Entry
from bilex.lexicon.formats.base import DictionaryFormat

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_DEEPEST = 64
_LARGEST_ENTRY, _LONGEST_TAG = 1 << 20, 4 << 20
_CHUNK = 1 << 16
_NODE_COST = 64
_BLANKS = re.compile("[ \t\r\n]+")


@dataclass
class Node:
    """An element: its name without namespace, attributes, line, and content in order."""

    name: str
    attributes: dict[str, str]
    line: int
    content: list[Node | str] = field(default_factory=list)

    def children(self, *names: str) -> Iterator[Node]:
        """The child elements with some names."""
        return (part for part in self.content if isinstance(part, Node) and part.name in names)

    def within(self, *names: str) -> Iterator[Node]:
        """All elements with some names at any depth, in order."""
        for part in self.content:
            if isinstance(part, Node):
                if part.name in names:
                    yield part
                yield from part.within(*names)

    def text(self, *, without: tuple[str, ...] = (), fold: bool = True) -> str:
        """All text in it but that of some elements; by default with runs of blanks as one space."""
        parts = (p for p in self.content if isinstance(p, str) or p.name not in without)
        text = "".join(p if isinstance(p, str) else p.text(without=without, fold=False) for p in parts)
        return folded(text) if fold else text

    def language(self) -> str:
        """The language that it is marked with, in lower case, or nothing."""
        return self.attributes.get("lang", "").strip().lower()


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
        root = _root_of(head)
        if root in self._all_roots:
            return root in self.roots
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
) -> Iterator[Node]:
    """The elements with some names in a file, or in a `part` of an archive, each whole, one after the other.

    One inside another is a part of that one. `opened` are elements around them, which are given when they
    begin, with attributes but without content; `roots` are names that the outermost element may have.
    """
    parser = _Parser(path, roots, names, opened)
    with files.opened(path) as whole, part or whole as file:
        while chunk := file.read(_CHUNK):
            yield from parser.feed(chunk)
        yield from parser.feed(b"")


def element(name: str, text: str, attributes: str = "") -> str:
    """A text as an element of XML with that name; nothing if there is no text."""
    return f"<{name}{attributes}>{escape(text)}</{name}>" if text else ""


def folded(text: str) -> str:
    """A text with runs of XML's blanks as one space, and none at its ends."""
    return _BLANKS.sub(" ", text).strip()


def _root_of(head: bytes) -> str:
    """The name, without namespace, of the outermost element of XML that begins so; empty if none is seen."""
    parser = _Parser(Path(), (), (), ())
    with contextlib.suppress(BilexError):
        parser.feed(head)
    return parser.root


def _local(name: str) -> str:
    return name.rpartition(":")[2]


class _Parser:
    """Expat with the bounds, collecting finished elements."""

    def __init__(
        self, path: Path, roots: tuple[str, ...], names: tuple[str, ...], opened: tuple[str, ...]
    ) -> None:
        self.path, self.roots, self.names, self.opened = path, roots, names, opened
        self.depth = self.fed = self.size = 0
        self.root = ""
        self.stack: list[Node] = []
        self.finished: list[Node] = []
        self.expat = expat.ParserCreate()
        self.expat.buffer_text = True
        self.expat.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.CharacterDataHandler = self._characters
        self.expat.EntityDeclHandler = self._entity
        self.expat.SkippedEntityHandler = self._skipped

    def feed(self, chunk: bytes) -> list[Node]:
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
        name = _local(name)
        self.depth += 1
        self.root = self.root or name
        if self.depth == 1 and self.roots and name not in self.roots:
            raise self._refusal(
                f"the outermost element is '{name[:40]}' where '{self.roots[0]}' is expected",
                "name the format with --from",
            )
        if self.depth > _DEEPEST:
            raise self._refusal(f"elements are nested more than {_DEEPEST} deep")
        if not self.stack and name not in self.names + self.opened:
            return
        local = {_local(key): value for key, value in attributes.items()}
        node = Node(name, local, self.expat.CurrentLineNumber)
        if self.stack:
            self._grow(_NODE_COST + sum(len(key) + len(value) for key, value in attributes.items()))
            self.stack[-1].content.append(node)
        elif name in self.opened:
            self.finished.append(node)
            return
        else:
            self.size = 0
        self.stack.append(node)

    def _entity(self, *declaration: object) -> None:
        raise self._refusal("it declares an entity", "files that do are not read")

    def _end(self, name: str) -> None:
        self.depth -= 1
        if self.stack:
            node = self.stack.pop()
            if not self.stack:
                self.finished.append(node)

    def _characters(self, text: str) -> None:
        if self.stack:
            self._grow(len(text))
            self.stack[-1].content.append(text)

    def _grow(self, cost: int) -> None:
        self.size += cost
        if self.size > _LARGEST_ENTRY:
            raise self._refusal("an entry of more than 1 MB")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        """A reference to an entity of a DTD that is not read: a character that HTML names."""
        if is_parameter:
            return
        text = html.unescape(f"&{name};")
        if text == f"&{name};":
            raise self._refusal(f"the entity '&{name[:40]};' is not known", "write the character itself")
        self._characters(text)
