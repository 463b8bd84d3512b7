"""The articles of StarDict and dictd: where they stand in a file, plain or packed, and what they translate.

Articles are read in the order in which they stand in the file, so that a packed one is unpacked once, from
its beginning, with no more in memory than one article and one block.

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
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import check_ordinary
from bilex.lexicon.entries import Entry
from bilex.lexicon.reading import GZIP, LARGEST_UNPACKED, check_unpacked, open_dictionary, unescaped

Place = tuple[int, int]  # offset and size

_LARGEST_ARTICLE = 1 << 20
_BLOCK = 1 << 16
_MOST_OVERLAP = 16
_CHUNK = 58315  # as dictzip has it: the most that never packs into more than 65,535 bytes
_MOST_CHUNKS = (0xFFFF - 10) // 2
_MOST_WORDS, _MOST_LETTERS = 5, 60
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


def file_blocks(path: Path, largest: int = LARGEST_UNPACKED, *, whole: bool = False) -> Iterator[bytes]:
    """The bytes of a file, unpacked if it is gzip, block by block; if `whole`, all of it must be there."""
    check_ordinary(path)
    unpacker, total = zlib.decompressobj(zlib.MAX_WBITS | 16), 0
    with open_dictionary(path) as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        try:
            while (block := file.read(_BLOCK)) and not unpacker.eof:
                while block:
                    part = unpacker.decompress(block, _BLOCK) if packed else block
                    total += len(part)
                    if packed or whole:
                        check_unpacked(path, total, file.tell(), largest)
                    if part:
                        yield part
                    block = unpacker.unconsumed_tail if packed else b""
            yield unpacker.flush(_BLOCK)
            if packed and whole and (unpacker.unused_data or not unpacker.eof):
                raise zlib.error("it is cut off, or more follows")
        except zlib.error as error:
            raise BilexError(f"{path}: cannot be unpacked ({error}); it is damaged.") from error


def articles(path: Path, places: Iterable[Place]) -> Iterator[tuple[Place, bytes | None]]:
    """The bytes at some places of a file, plain or packed, each place once, in the order of the file.

    None where the file ends before, or the article is larger than 1 MB.
    """
    blocks = file_blocks(path)
    held, start, taken = bytearray(), 0, 0
    for offset, size in sorted(set(places)):
        if size > _LARGEST_ARTICLE or offset + size > LARGEST_UNPACKED:
            yield (offset, size), None
            continue
        while start + len(held) < offset + size:
            if start + len(held) <= offset:  # nothing that is held is needed any more
                start += len(held)
                held.clear()
            block = next(blocks, b"")
            if not block:
                break
            held += block
        if offset > start:
            cut = min(offset - start, len(held))
            del held[:cut]
            start += cut
        taken += size
        if taken > _MOST_OVERLAP * (start + len(held) + _LARGEST_ARTICLE):
            raise BilexError(f"{path}: articles overlap many times over; the index is damaged.")
        whole = start == offset and len(held) >= size
        yield (offset, size), bytes(held[:size]) if whole else None


def dictzip(path: Path, content: bytes) -> bytes:
    """The content of a file packed by dictzip: a gzip that says in its header where each chunk begins."""
    if len(content) > _MOST_CHUNKS * _CHUNK:
        raise BilexError(
            f"{path}: articles of {len(content):,} bytes are more than dictzip can hold; write fewer pairs."
        )
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    chunks = [
        packer.compress(content[at : at + _CHUNK]) + packer.flush(zlib.Z_FULL_FLUSH)
        for at in range(0, len(content), _CHUNK)
    ]
    sizes = struct.pack(f"<HHH{len(chunks)}H", 1, _CHUNK, len(chunks), *map(len, chunks))
    extra = b"RA" + struct.pack("<H", len(sizes)) + sizes
    header = GZIP + struct.pack("<BBIBBH", 8, 4, 0, 2, 3, len(extra)) + extra
    checks = struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF)
    return header + b"".join(chunks) + packer.flush(zlib.Z_FINISH) + checks


def read_article(text: str, word: str, *, markup: bool = False) -> list[Entry]:
    """The translations in an article, HTML or XDXF if `markup`, that an index lists under a word.

    The source of the entries is the headword as the article itself spells it, if it does.
    """
    if markup:
        text = unescaped(_MARKUP.sub("", _MARKUP_BREAKS.sub("\n", _HEADWORD_MARKUP.sub("", text))))
    lines = [line for line in text.split("\n")[:_MOST_LINES] if line.strip()]
    head, speech = lines and _head(lines[0], word), ""
    if head:
        marks = [mark.strip() for found in _SPEECH.findall(lines[0])[:1] for mark in found.split(",")]
        speech = next((mark for mark in marks if mark not in _GENDER_AND_NUMBER), "")
        lines = _groups(lines[1:])
    found = dict.fromkeys(translation for line in lines for translation in _translations(line))
    return [Entry(head or word, translation, part_of_speech=speech) for translation in found]


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
    return [
        word
        for word in words
        if not _ONLY_SIGNS.fullmatch(word) and len(word) <= _MOST_LETTERS and len(word.split()) <= _MOST_WORDS
    ]
