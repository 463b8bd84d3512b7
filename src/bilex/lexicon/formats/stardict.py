"""StarDict (`.ifo`, `.idx`, `.dict.dz`) and dictd as FreeDict has it (`.index`, `.dict.dz`)."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file
from bilex.lexicon.articles import Place, articles, dictzip, file_blocks, read_article
from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats import DictionaryFormat, WriteOptions, grouped, line_fault, stem_of
from bilex.lexicon.formats.tei import read_tei
from bilex.lexicon.reading import (
    MOST_PAIRS_PER_UNIT,
    TOO_MANY_PAIRS,
    Layout,
    Reading,
    Units,
    decode,
    reader,
    text_lines,
)

_FIRST_LINE = "StarDict's dict ifo file"
_DESCRIPTION = "One translation per line, written by bilex"
_OUR_DESCRIPTIONS = (_DESCRIPTION, "One translation a line, written by bilex")  # the second until version 0.2
_LARGEST_INDEX = 1 << 28
_LONGEST_WORD = 255
_MOST_SHARED = 16 << 20
_TEXT_TYPES, _MARKUP_TYPES, _BINARY_TYPES = (frozenset("mtyln"), frozenset("ghxk"), frozenset("WPX"))
_NO_ARTICLE = "an article that is not there or larger than 1 MB"
_NO_TRANSLATION = "no translation, only explanations"
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"  # of numbers in dictd's index
_MOST_DIGITS = 10
_ABOUT_THE_DATABASE = ("00database", "00-database")


def _read_stardict(path: Path, layout: Layout) -> Reading:
    """Read a dictionary by the path of any of its files."""
    expected = "a word with translations"
    read = reader("stardict", _stardict_units, expected, units="entries", place="entry")
    return read(_beside(path, ".ifo"), layout)


def _stardict_units(path: Path, layout: Layout) -> Units:
    facts = _facts(path)
    ours = facts.get("description", "") in _OUR_DESCRIPTIONS
    by_place: dict[Place, list[tuple[int, str]]] = {}
    for number, (word, place) in enumerate(_index(path, facts), 1):
        by_place.setdefault(place, []).append((number, word))
    for place, data in articles(_articles_file(path), by_place):
        words = by_place[place]
        text, markup = (None, False) if data is None else _text(data, facts.get("sametypesequence", ""))
        for number, word in words:
            found: list[Entry] | str
            if data is None:
                found = _NO_ARTICLE
            elif text is None:
                found = "an article that is not text"
            elif len(data) * len(words) > _MOST_SHARED:
                found = "a large article that too many words share"
            else:
                found = _entries(word, text, ours, markup) or _NO_TRANSLATION
                if not isinstance(found, str) and len(found) * len(words) > MOST_PAIRS_PER_UNIT:
                    found = TOO_MANY_PAIRS
            yield number, found
    return None


def _beside(path: Path, suffix: str) -> Path:
    """Another file of the same dictionary."""
    stem = stem_of(path)
    return stem.with_name(stem.name + suffix)


def _articles_file(path: Path) -> Path:
    packed = _beside(path, ".dict.dz")
    return packed if packed.exists() else _beside(path, ".dict")


def _facts(path: Path) -> dict[str, str]:
    lines = decode(path).split("\n")
    if lines[0].strip() != _FIRST_LINE:
        raise BilexError(
            f'{path}: line 1 does not say "{_FIRST_LINE}"; give the .ifo of a StarDict dictionary.'
        )
    pairs = (line.partition("=") for line in lines[1:])
    return {name.strip(): value.strip() for name, mark, value in pairs if mark}


def _index(path: Path, facts: dict[str, str]) -> Iterator[tuple[str, Place]]:
    """Words with the offsets and sizes of their articles."""
    plain, packed = _beside(path, ".idx"), _beside(path, ".idx.gz")
    chosen = plain if plain.exists() or not packed.exists() else packed
    data = b"".join(file_blocks(chosen, _LARGEST_INDEX, whole=True))
    numbers = struct.Struct(">QI" if facts.get("idxoffsetbits") == "64" else ">II")
    at = entry = 0
    while at < len(data):
        entry += 1
        end = data.find(b"\0", at, at + 4096)
        if end < 0 or end + 1 + numbers.size > len(data):
            raise BilexError(f"{plain}: entry {entry} is cut off or no word; the index is damaged.")
        try:
            word = data[at:end].decode("utf-8")
        except UnicodeDecodeError as error:
            raise BilexError(f"{plain}: entry {entry} is not UTF-8 text; the index is damaged.") from error
        offset, size = numbers.unpack_from(data, end + 1)
        yield word, (offset, size)
        at = end + 1 + numbers.size


def _text(data: bytes, types: str) -> tuple[str | None, bool]:
    """The first text of an article, and whether it is marked up."""
    if not types:
        return _marked_text(data)
    for place, kind in enumerate(types):
        last = place == len(types) - 1
        if kind in _TEXT_TYPES | _MARKUP_TYPES:
            part = data if last else data.partition(b"\0")[0]
            return part.decode("utf-8", "replace"), kind in _MARKUP_TYPES
        data = data.partition(b"\0")[2]
    return None, False


def _marked_text(data: bytes) -> tuple[str | None, bool]:
    """The first text of an article of which every part says itself what it is."""
    at = 0
    while at < len(data):
        kind, at = chr(data[at]), at + 1
        end = data.find(b"\0", at)
        end = len(data) if end < 0 else end
        if kind in _TEXT_TYPES | _MARKUP_TYPES:
            return data[at:end].decode("utf-8", "replace"), kind in _MARKUP_TYPES
        at = at + 4 + int.from_bytes(data[at : at + 4], "big") if kind in _BINARY_TYPES else end + 1
    return None, False


def _entries(word: str, text: str, ours: bool, markup: bool) -> list[Entry]:
    """The entries of an article; those that bilex wrote have one translation per line."""
    if ours:
        translations = (line.partition("\t")[0] for line in text.split("\n"))
        return [Entry(word, translation) for translation in translations if translation]
    return [dataclasses.replace(found, source=word) for found in read_article(text, word, markup=markup)]


def _save_stardict(path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
    """Write the three files, all before the first takes its name; the `.ifo` takes its name last."""
    if path.suffix != ".ifo":
        raise BilexError(
            f"{path}: a StarDict dictionary is named by its .ifo file; choose a name that ends so."
        )
    index, packed = _beside(path, ".idx"), _beside(path, ".dict.dz")
    _refuse_others(path, index, packed, _beside(path, ".dict"))
    # StarDict searches by ASCII letters without case, then by bytes.
    by_word = {word.encode("utf-8"): entries for word, entries in grouped(dictionary.entries).items()}
    words = sorted(by_word.items(), key=lambda item: (item[0].lower(), item[0]))
    listed, text = bytearray(), bytearray()
    for word, entries in words:
        lines = ("\t".join(filter(None, (entry.target, entry.remark()))) for entry in entries)
        article = "\n".join(lines).encode("utf-8")
        listed += word + b"\0" + struct.pack(">II", len(text), len(article))
        text += article
    facts = {
        "version": "2.4.2",
        "wordcount": len(words),
        "idxfilesize": len(listed),
        "bookname": dictionary.title(),
        "description": _DESCRIPTION,
        "sametypesequence": "m",
    }
    lines_of_facts = [_FIRST_LINE, *(f"{name}={value}" for name, value in facts.items())]
    with atomic_file(path) as new_facts, atomic_file(index) as new_index, atomic_file(packed) as new_articles:
        new_articles.write_bytes(dictzip(packed, bytes(text)))
        new_index.write_bytes(listed)
        new_facts.write_bytes(("\n".join(lines_of_facts) + "\n").encode("utf-8"))


def _refuse_others(path: Path, *others: Path) -> None:
    """Files beside the `.ifo` are replaced only if an `.ifo` of ours is there already."""
    ours = {f"description={text}" for text in _OUR_DESCRIPTIONS}
    if path.exists() and ours & set(decode(path).split("\n")):
        return
    for other in others:
        if other.exists():
            raise BilexError(f"{other}: is there already and bilex did not write it; choose another name.")


def _stardict_fault(entry: Entry) -> str:
    if len(entry.source.encode("utf-8")) > _LONGEST_WORD:
        return f"a source word of more than {_LONGEST_WORD} bytes"
    return line_fault(entry, "\t")


STARDICT = DictionaryFormat(
    name="stardict",
    description="StarDict: .ifo, .idx and .dict.dz, one translation per line",
    suffixes=(".ifo",),
    noun="a StarDict dictionary",
    read=_read_stardict,
    save=_save_stardict,
    fault=_stardict_fault,
)


def _read_dictd(path: Path, layout: Layout) -> Reading:
    """Read a dictionary by the path of any of its files, or its TEI source if that lies beside it."""
    index = _beside(path, ".index")
    for name in (index.stem, index.stem.removeprefix("freedict-")):
        if (source := index.with_name(f"{name}.tei")).exists():
            return read_tei(source, layout)
    read = reader("dictd", _dictd_units, "a word with translations", units="entries")
    return read(index, layout)


def _dictd_units(index: Path, layout: Layout) -> Units:
    """Every article once, with the line and the word of the index that names it first."""
    by_place: dict[Place, tuple[int, str]] = {}
    for number, line in text_lines(index):
        cells = line.split("\t")
        if not line.strip() or cells[0].startswith(_ABOUT_THE_DATABASE):
            continue
        try:
            place = (_number(cells[1]), _number(cells[2]))
        except (IndexError, ValueError) as error:
            raise BilexError(
                f"{index}: line {number} is not a word, an offset and a size; the index is damaged."
            ) from error
        by_place.setdefault(place, (number, cells[0]))
    for found, data in articles(_articles_file(index), by_place):
        number, word = by_place[found]
        text = "" if data is None else data.decode("utf-8", "replace")
        yield number, _NO_ARTICLE if data is None else read_article(text, word) or _NO_TRANSLATION
    return None


def _number(text: str) -> int:
    """A number in dictd's own base 64."""
    if not 0 < len(text) <= _MOST_DIGITS:
        raise ValueError(text)
    value = 0
    for char in text:
        value = 64 * value + _DIGITS.index(char)
    return value


DICTD = DictionaryFormat(
    name="dictd",
    description="dictd (FreeDict): .index and .dict.dz; translations are taken out of the articles",
    suffixes=(".index",),
    noun="a dictd dictionary",
    read=_read_dictd,
)
