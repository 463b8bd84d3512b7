"""Translations out of the articles of dictionaries that were made to be read by people.

An article has lines such as these, which FreeDict writes:

    battre /batʀ/ <v>
    1. beat, hit, strike
    2.  [cul] whisk

The first line is the headword with its pronunciation and part of speech where it begins with the headword.
The next line, and every line that begins with a number, holds translations divided by commas or semicolons;
other lines are explanations. Remarks in brackets are taken out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bilex.lexicon.formats.decoding import unescaped

MOST_WORDS, MOST_LETTERS = 5, 60
_MOST_LINES = 200
_NUMBERED = re.compile(r"\s*+\(?\d{1,2}[.)]\s+")
_BARE_NUMBER = re.compile(r"(?:^|\s)\d{1,2}[.)]\s*$")
_SPEECH = re.compile(r"<([^<>/]{1,40})>")
_PRONUNCIATION = re.compile(r"(?<!/)/++[^/\n]{1,200}/+|\[[^\[\]\n]{1,200}\]")
_REMARKS = re.compile(r"<[^<>\n]*>|\([^()\n]*\)|\[[^\[\]\n]*\]|\{[^{}\n]*\}")
_MARKUP_BREAKS = re.compile(r"<(?:br|/?p|/?div|/?li|/?ol|/?ul|/?tr|/?dd|/?dt|/?dtrn)\b[^<>]*>", re.IGNORECASE)
_HEADWORD_MARKUP = re.compile(r"<k>[^<]*</k>", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]*>")
_BETWEEN = re.compile(r"[,;،、；，]")
_GENDER_AND_NUMBER = ("masc", "fem", "neut", "com", "sg", "pl", "m", "f", "nt", "n pl")
_TRIMMED = ' \t.:;,-–—*•"“”'
_ONLY_SIGNS = re.compile(r"[\W\d_]*")


@dataclass(frozen=True)
class Article:
    """What an article says: its headword, the part of speech, and the translations."""

    head: str
    part_of_speech: str
    translations: tuple[str, ...]


def read_article(text: str, word: str, *, markup: bool = False) -> Article:
    """Read an article.

    Args:
        text: Its text.
        word: The word that an index lists it under, in whatever spelling.
        markup: Whether the text is HTML or XDXF.
    """
    if markup:
        text = unescaped(_MARKUP.sub("", _MARKUP_BREAKS.sub("\n", _HEADWORD_MARKUP.sub("", text))))
    lines = [line for line in text.split("\n")[:_MOST_LINES] if line.strip()]
    head, speech, begun = word, "", False
    if lines and _is_head(lines[0], word):
        first = lines.pop(0)
        speech = _part_of_speech(first)
        head = _bare(_PRONUNCIATION.sub(" ", first)) or word
        begun = True
    found: dict[str, None] = {}
    for number, line in enumerate(lines):
        if not begun or number == 0 or _NUMBERED.match(line):
            found.update(dict.fromkeys(_translations(line)))
    return Article(head, speech, tuple(found))


def _part_of_speech(line: str) -> str:
    """The part of speech in a line such as "Haus <neut, n, sg>"; gender and number are none."""
    named = _SPEECH.search(line)
    marks = [mark.strip() for mark in named[1].split(",")] if named else []
    return next((mark for mark in marks if mark not in _GENDER_AND_NUMBER), "")


def _is_head(line: str, word: str) -> bool:
    """Whether a line is the headword; an index may have it without capitals and signs."""
    letters, wanted = _letters(_bare(_PRONUNCIATION.sub(" ", line))), _letters(word)
    return bool(wanted) and letters == wanted and line[:1] not in " \t"


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _bare(text: str) -> str:
    """A text without remarks in brackets."""
    return " ".join(_REMARKS.sub(" ", text).split())


def _translations(line: str) -> list[str]:
    numbered = _NUMBERED.match(line)
    line = _BARE_NUMBER.sub("", line[numbered.end() :] if numbered else line)
    parts = _BETWEEN.split(_bare(_PRONUNCIATION.sub(" ", line)))
    words = (part.strip(_TRIMMED) for part in parts if ":" not in part)  # "Synonym: ..." is a remark
    return [word for word in words if _is_translation(word)]


def _is_translation(word: str) -> bool:
    """Whether it is short enough to be one, and not only signs or numbers."""
    return not _ONLY_SIGNS.fullmatch(word) and len(word) <= MOST_LETTERS and len(word.split()) <= MOST_WORDS
