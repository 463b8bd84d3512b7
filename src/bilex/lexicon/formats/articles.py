"""Translations out of the articles of dictionaries that were made to be read by people.

An article of FreeDict has one of these two forms:

    sonde /sˈɔndə/ <n>                          bord //bɔrt// <n>
    sonda, catéter 2.                           1. lousa
    1. een peilstift om te verkennen            2. een vlak voorwerp aan een muur
     3.                                         2. prato
    3. een onbemand ruimtevaartuig              1. een schijfvormig voorwerp

The first line is the headword with its pronunciation and part of speech. The second line holds translations.
If it begins with "1.", there are several groups, numbered in order; else it is the only line of translations.
All other lines are explanations in the language of the headword, one per sense, which may have numbers of
their own; the number of a group's second sense stands at the end of its translations, further ones on lines
of their own.
Remarks in brackets are taken out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bilex.lexicon.formats.decoding import unescaped

MOST_WORDS, MOST_LETTERS = 5, 60
_MOST_LINES = 200
_NUMBERED = re.compile(r"\s*+\(?(\d{1,2})[.)]\s+")
_AFTER_HEAD = re.compile(r"\s(?=[/<\[])|\t")
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
    if lines and (head := _head(lines[0], word)):
        speech, lines = _part_of_speech(lines[0]), _groups(lines[1:])
    else:
        head, speech = word, ""
    found = dict.fromkeys(translation for line in lines for translation in _translations(line))
    return Article(head, speech, tuple(found))


def _groups(lines: list[str]) -> list[str]:
    """The lines that hold translations."""
    if not lines or not lines[0].lstrip().startswith("1."):
        return lines[:1]
    found: list[str] = []
    explained = True  # whether the last line of translations has its explanation
    for place, line in enumerate(lines):
        numbered = _NUMBERED.match(line)
        if numbered is None or int(numbered[1]) != len(found) + 1:
            explained = True
        elif not explained and _comes_again(lines[place + 1 :], len(found) + 1):
            explained = True  # an explanation whose own number is that of the next group
        else:
            found.append(line)
            explained = False
    return found


def _comes_again(lines: list[str], number: int) -> bool:
    """Whether a line has a number before any has the one after it."""
    for line in lines:
        numbered = _NUMBERED.match(line)
        if numbered and int(numbered[1]) in (number, number + 1):
            return int(numbered[1]) == number
    return False


def _part_of_speech(line: str) -> str:
    """The part of speech in a line such as "Haus <neut, n, sg>"; gender and number are none."""
    named = _SPEECH.search(line)
    marks = [mark.strip() for mark in named[1].split(",")] if named else []
    return next((mark for mark in marks if mark not in _GENDER_AND_NUMBER), "")


def _head(line: str, word: str) -> str:
    """The headword of a line that begins with it, else nothing; an index has no capitals and signs."""
    head = _bare(_AFTER_HEAD.split(line, maxsplit=1)[0])
    wanted = _letters(word)
    return head if wanted and _letters(head) == wanted and line[:1] not in " \t" else ""


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _bare(text: str) -> str:
    """A text without remarks in brackets."""
    return " ".join(_REMARKS.sub(" ", text).split())


def _translations(line: str) -> list[str]:
    numbered = _NUMBERED.match(line)
    line = _BARE_NUMBER.sub("", line[numbered.end() :] if numbered else line)
    parts = _BETWEEN.split(_bare(_PRONUNCIATION.sub(" ", line)))
    # "Synonym: ..." is a remark, "-lle" an ending that translates a word of its own.
    words = (part.strip(_TRIMMED) for part in parts if ":" not in part and part.strip()[:1] not in ("-", "‐"))
    return [word for word in words if _is_translation(word)]


def _is_translation(word: str) -> bool:
    """Whether it is short enough to be one, and not only signs or numbers."""
    return not _ONLY_SIGNS.fullmatch(word) and len(word) <= MOST_LETTERS and len(word.split()) <= MOST_WORDS
