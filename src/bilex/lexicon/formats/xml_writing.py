"""Writing XML: escaping, and which words XML cannot hold."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from bilex.lexicon.entries import Entry

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

__all__ = ["DECLARATION", "escape", "quoteattr", "xml_fault"]


def xml_fault(entry: Entry) -> str:
    """Why XML would not give a word back as it is; empty if it would.

    Blanks are folded when dictionaries are read, since programs break and indent lines.
    """
    return "two spaces in a word" if "  " in entry.source or "  " in entry.target else ""
