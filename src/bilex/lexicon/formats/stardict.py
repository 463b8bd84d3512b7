"""StarDict (`.ifo`, `.idx`, `.dict.dz`) and dictd as FreeDict has it (`.index`, `.dict.dz`).

Articles are read in the order of the file, so that a packed file is unpacked once, from its beginning, with
no more in memory than one article and one block. An article of FreeDict looks like one of
these two:

    sonde /sˈɔndə/ <n>                          bord //bɔrt// <n>
    sonda, catéter 2.                           1. lousa
    1. een peilstift om te verkennen            2. een vlak voorwerp aan een muur
     3.                                         2. prato
    3. een onbemand ruimtevaartuig              1. een schijfvormig voorwerp

The first line is the headword with its pronunciation and part of speech. The second line holds translations.
If it begins with "1.", there are several groups, numbered in order; else it is the only line of translations.
All other lines are explanations in the language of the headword, one per sense, which may be numbered too;
the number of a group's second sense is at the end of its translations, further ones are on separate lines.
Remarks in brackets are removed.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file, check_input
from bilex.core.reading import GZIP, LARGEST_UNPACKED, check_unpacked, open_source, text_lines
from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.files import DictionaryFormat, Layout, Reading, WriteOptions, all_lines, grouped, unescaped
from bilex.lexicon.formats.exchange import TEI

Place = tuple[int, int]  # offset and size of an article

_PARTS = (".ifo", ".idx", ".idx.gz", ".dict", ".dict.dz", ".index", ".syn")
_FIRST_LINE = "StarDict's dict ifo file"
_DESCRIPTION = "One translation per line, written by bilex"
_OUR_DESCRIPTIONS = (_DESCRIPTION, "One translation a line, written by bilex")  # the second until version 0.2
_LARGEST_INDEX = 1 << 28
_LONGEST_WORD = 255
_MOST_SHARED = 16 << 20
_TEXT_TYPES, _MARKUP_TYPES, _BINARY_TYPES = "mtyln", "ghxk", "WPX"
_NO_ARTICLE = "an article that is not there or larger than 1 MB"
_NO_TRANSLATION = "no translation, only explanations"
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"  # of numbers in dictd's index
_MOST_DIGITS = 10
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
_NO_LETTERS = re.compile(r"[\W\d_]*")


class ArticleFormat(DictionaryFormat):
    """A format of several files, any of which names the dictionary; the one with `suffixes` is read first."""

    expected, units = "a word with translations", "entries"

    def recognizes(self, path: Path, head: bytes) -> bool:
        """By the names of its files."""
        main = self.suffixes[0]
        return path.name.endswith(_PARTS) and (path.suffix == main or _beside(path, main).exists())

    def read(self, path: Path, layout: Layout) -> Reading:
        """Read a dictionary by the path of any of its files."""
        return super().read(_beside(path, self.suffixes[0]), layout)


def _beside(path: Path, suffix: str) -> Path:
    """Another file of the same dictionary."""
    found = (part for part in _PARTS if path.name.endswith(part))
    return path.with_name(path.name.removesuffix(next(found, "")) + suffix)


class StarDict(ArticleFormat):
    """StarDict: .ifo, .idx and .dict.dz, one translation per line."""

    name, noun, suffixes = "stardict", "a StarDict dictionary", (".ifo",)
    unit = "entry"

    def _parse(self, reading: Reading) -> None:
        lines = all_lines(reading.path)
        if lines[0].strip() != _FIRST_LINE:
            raise BilexError(
                f'{reading.path}: line 1 is not "{_FIRST_LINE}"; give the .ifo of a StarDict dictionary.'
            )
        pairs = (line.partition("=") for line in lines[1:])
        facts = {name.strip(): value.strip() for name, mark, value in pairs if mark}
        ours = facts.get("description", "") in _OUR_DESCRIPTIONS
        by_place: dict[Place, list[tuple[int, str]]] = {}
        for number, (word, place) in enumerate(_index(reading.path, facts), 1):
            by_place.setdefault(place, []).append((number, word))
        for place, data in _articles(reading.path, by_place):
            words = by_place[place]
            text, markup = _text(data or b"", facts.get("sametypesequence", ""))
            for number, word in words:
                found: list[Entry] | str
                if data is None:
                    found = _NO_ARTICLE
                elif text is None:
                    found = "an article that is not text"
                elif len(data) * len(words) > _MOST_SHARED:
                    found = "a large article that too many words share"
                elif ours:
                    found = [Entry(word, line.partition("\t")[0]) for line in text.split("\n")]
                else:
                    translated = read_article(text, word, markup=markup)
                    found = [replace(entry, source=word) for entry in translated] or _NO_TRANSLATION
                reading.add(number, found, shared_by=len(words))

    def save(self, path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
        """Write the three files, all before the first is put in place; the `.ifo` is put in place last."""
        if path.suffix != ".ifo":
            raise BilexError(
                f"{path}: a StarDict dictionary is named by its .ifo file; choose a name that ends so."
            )
        index, packed = _beside(path, ".idx"), _beside(path, ".dict.dz")
        ours = {f"description={text}" for text in _OUR_DESCRIPTIONS}
        if not path.exists() or ours.isdisjoint(all_lines(path)):
            for other in (index, packed, _beside(path, ".dict")):
                if other.exists():
                    raise BilexError(
                        f"{other}: is there already and bilex did not write it; choose another name."
                    )
        # StarDict searches by ASCII letters without case, then by bytes.
        by_word = {word.encode(): entries for word, entries in grouped(dictionary.entries).items()}
        listed, text = bytearray(), bytearray()
        for word, entries in sorted(by_word.items(), key=lambda item: (item[0].lower(), item[0])):
            lines = ("\t".join(filter(None, (entry.target, entry.remark()))) for entry in entries)
            article = "\n".join(lines).encode()
            listed += word + b"\0" + struct.pack(">II", len(text), len(article))
            text += article
        facts = (
            f"{_FIRST_LINE}\nversion=2.4.2\nwordcount={len(by_word)}\nidxfilesize={len(listed)}\n"
            f"bookname={dictionary.title()}\ndescription={_DESCRIPTION}\nsametypesequence=m\n"
        )
        with (
            atomic_file(path) as new_facts,
            atomic_file(index) as new_index,
            atomic_file(packed) as new_articles,
        ):
            new_articles.write_bytes(dictzip(packed, bytes(text)))
            new_index.write_bytes(listed)
            new_facts.write_bytes(facts.encode())

    def _fault(self, entry: Entry) -> str:
        too_long = len(entry.source.encode()) > _LONGEST_WORD
        return f"a source word of more than {_LONGEST_WORD} bytes" if too_long else ""


def _index(path: Path, facts: dict[str, str]) -> Iterator[tuple[str, Place]]:
    """Words with the offsets and sizes of their articles."""
    plain, packed = _beside(path, ".idx"), _beside(path, ".idx.gz")
    chosen = plain if plain.exists() or not packed.exists() else packed
    check_input(chosen)
    with open_source(chosen, _LARGEST_INDEX) as source:
        check_unpacked(chosen, source.size, source.size, _LARGEST_INDEX)  # it is held whole
        data = b"".join(iter(lambda: source.read(_BLOCK), b""))
    numbers = struct.Struct(">QI" if facts.get("idxoffsetbits") == "64" else ">II")
    item = re.compile(rb"([^\0]{0,4095})\0(.{%d})" % numbers.size, re.DOTALL)
    at = entry = 0
    while at < len(data):
        entry += 1
        found = item.match(data, at)
        if found is None:
            raise BilexError(f"{plain}: entry {entry} is cut off or no word; the index is damaged.")
        try:
            yield found[1].decode(), numbers.unpack(found[2])
        except UnicodeDecodeError as error:
            raise BilexError(f"{plain}: entry {entry} is not UTF-8 text; the index is damaged.") from error
        at = found.end()


def _text(data: bytes, types: str) -> tuple[str | None, bool]:
    """The first text of an article, and whether it has markup; without `types` each part begins with its."""
    at = place = 0
    while place < len(types) if types else at < len(data):
        kind = types[place] if types else chr(data[at])
        at, place = at if types else at + 1, place + 1
        end = data.find(b"\0", at)
        if end < 0 or place == len(types):
            end = len(data)
        if kind in _TEXT_TYPES + _MARKUP_TYPES:
            return data[at:end].decode("utf-8", "replace"), kind in _MARKUP_TYPES
        sized = kind in _BINARY_TYPES and not types
        at = at + 4 + int.from_bytes(data[at : at + 4], "big") if sized else end + 1
    return None, False


class Dictd(ArticleFormat):
    """dictd (FreeDict): .index and .dict.dz; translations are taken out of the articles."""

    name, noun, suffixes = "dictd", "a dictd dictionary", (".index",)
    writable = False

    def read(self, path: Path, layout: Layout) -> Reading:
        """Read a dictionary by the path of any of its files, or its TEI source if that lies beside it."""
        index = _beside(path, ".index")
        for name in (index.stem, index.stem.removeprefix("freedict-")):
            if (source := index.with_name(f"{name}.tei")).exists():
                return TEI().read(source, layout)
        return super().read(index, layout)

    def _parse(self, reading: Reading) -> None:
        """Every article once, with the line and the word of the index that names it first."""
        by_place: dict[Place, tuple[int, str]] = {}
        for number, line in text_lines(reading.path):
            cells = line.split("\t")
            if not line.strip() or cells[0].startswith(("00database", "00-database")):
                continue
            try:
                place = (_number(cells[1]), _number(cells[2]))
            except (IndexError, ValueError) as error:
                raise BilexError(
                    f"{reading.path}: line {number} is not word, offset and size; the index is damaged."
                ) from error
            by_place.setdefault(place, (number, cells[0]))
        for found, data in _articles(reading.path, by_place):
            number, word = by_place[found]
            entries = read_article((data or b"").decode("utf-8", "replace"), word)
            reading.add(number, _NO_ARTICLE if data is None else entries or _NO_TRANSLATION)


def _number(text: str) -> int:
    """A number in dictd's base 64."""
    if not 0 < len(text) <= _MOST_DIGITS:
        raise ValueError(text)
    value = 0
    for char in text:
        value = 64 * value + _DIGITS.index(char)
    return value


def _articles(path: Path, places: Iterable[Place]) -> Iterator[tuple[Place, bytes | None]]:
    """The articles at some places of a dictionary, each place once, in the order of the file.

    None if the file ends before, or the article is larger than 1 MB.
    """
    packed = _beside(path, ".dict.dz")
    path = packed if packed.exists() else _beside(path, ".dict")
    check_input(path)
    held, start, taken = bytearray(), 0, 0
    with open_source(path, LARGEST_UNPACKED) as source:
        for offset, size in sorted(set(places)):
            if size > _LARGEST_ARTICLE or offset + size > LARGEST_UNPACKED:
                yield (offset, size), None
                continue
            while True:
                passed = min(max(offset - start, 0), len(held))
                del held[:passed]
                start += passed
                if start + len(held) >= offset + size or not (block := source.read(_BLOCK)):
                    break
                held += block
            taken += size
            if taken > _MOST_OVERLAP * (start + len(held) + _LARGEST_ARTICLE):
                raise BilexError(f"{path}: articles overlap many times over; the index is damaged.")
            whole = start == offset and len(held) >= size
            yield (offset, size), bytes(held[:size]) if whole else None


def dictzip(path: Path, content: bytes) -> bytes:
    """The content of a file packed by dictzip: a gzip whose header has the size of each chunk."""
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
    numbers = [int(match[1]) if (match := _NUMBERED.match(line)) else 0 for line in lines]
    found: list[str] = []
    explained = True  # whether the last line of translations has its explanation
    for place, line in enumerate(lines):
        following = len(found) + 1
        later = (number for number in numbers[place + 1 :] if number in (following, following + 1))
        # An explanation may have the number of the next group itself; then that number comes again.
        if numbers[place] == following and (explained or next(later, None) != following):
            found.append(line)
            explained = False
        else:
            explained = True
    return found


def _head(line: str, word: str) -> str:
    """The headword of a line that begins with it, else nothing; an index has no capitals and punctuation."""
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
    # "Synonym: ..." is a remark, "-lle" an ending that translates a separate word.
    words = (part.strip(_TRIMMED) for part in parts if ":" not in part and part.strip()[:1] not in ("-", "‐"))
    return [
        word
        for word in words
        if not _NO_LETTERS.fullmatch(word) and len(word) <= _MOST_LETTERS and len(word.split()) <= _MOST_WORDS
    ]
