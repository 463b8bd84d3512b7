"""Writing XML: escaping, and which words XML cannot hold."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from bilex.lexicon.entries import Entry

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_FOLDED_BLANKS = re.compile("[\t\r\n]|  ")

__all__ = ["DECLARATION", "escape", "quoteattr", "xml_fault"]


def xml_fault(entry: Entry) -> str:
    """Why XML would not give a word back as it is; empty if it would.

    Blanks are folded when dictionaries are read, since programs break and indent lines.
    """
    for word in (entry.source, entry.target):
        if _FORBIDDEN.search(word):
            return "a control character in a word"
        if _FOLDED_BLANKS.search(word):
            return "a tab, a line end or two spaces in a word"
    return ""
