"""StarDict: an `.ifo` with facts, an `.idx` of words, and articles in `.dict` or `.dict.dz`."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file, check_ordinary
from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats.articles import read_article
from bilex.lexicon.formats.base import DictionaryFormat, WriteOptions, grouped, line_fault
from bilex.lexicon.formats.decoding import cannot_be_read, check_unpacked, decode
from bilex.lexicon.formats.dictzip import Place, articles, write_packed
from bilex.lexicon.reading import MOST_PAIRS_PER_UNIT, Collector, Layout, Reading

_FIRST_LINE = "StarDict's dict ifo file"
_OURS = "One translation per line, written by bilex"
_WRITTEN = (_OURS, "One translation a line, written by bilex")  # the second until version 0.2
_LARGEST_INDEX = 1 << 28
_LONGEST_WORD = 255
_MOST_SHARED = 16 << 20
_TEXT_TYPES, _MARKUP_TYPES = frozenset("mtyln"), frozenset("ghxk")
_BINARY_TYPES = frozenset("WPX")


def _read(path: Path, layout: Layout) -> Reading:
    """Read a dictionary by the path of any of its files."""
    stem = stem_of(path)
    path = stem.with_name(stem.name + ".ifo")
    facts = _facts(path)
    ours = facts.get("description", "") in _WRITTEN
    collector = Collector(
        path, "stardict", layout, units="entries", place="entry", expected="a word with translations"
    )
    words = _index(path, facts)
    by_place: dict[Place, list[tuple[int, str]]] = {}
    for number, (word, offset, size) in enumerate(words, 1):
        by_place.setdefault((offset, size), []).append((number, word))
    for place, data in articles(_articles_file(path), by_place):
        words_here = by_place[place]
        text, markup = (None, False) if data is None else _text(data, facts.get("sametypesequence", ""))
        reason = ""
        if data is None:
            reason = "an article that is not there or larger than 1 MB"
        elif text is None:
            reason = "an article that is no text"
        elif len(data) * len(words_here) > _MOST_SHARED:
            reason = "a large article that too many words share"
        for number, word in words_here:
            if reason or text is None:
                collector.leave_out(number, reason)
                continue
            entries = _our_entries(word, text) if ours else _entries(word, text, markup)
            if len(entries) * len(words_here) > MOST_PAIRS_PER_UNIT:
                collector.leave_out(number, f"more than {MOST_PAIRS_PER_UNIT:,} pairs in one place")
            elif entries:
                collector.add(number, entries)
            else:
                collector.leave_out(number, "no translation, only explanations")
    return collector.finished()


def stem_of(path: Path) -> Path:
    """The path without what the files of a dictionary end in."""
    name = path.name
    for suffix in (".ifo", ".idx", ".idx.gz", ".dict", ".dict.dz", ".index", ".syn"):
        if name.endswith(suffix):
            return path.with_name(name.removesuffix(suffix))
    return path


def _facts(path: Path) -> dict[str, str]:
    lines = decode(path).split("\n")
    if lines[0].strip() != _FIRST_LINE:
        raise BilexError(
            f'{path}: line 1 does not say "{_FIRST_LINE}"; give the .ifo of a StarDict dictionary.'
        )
    pairs = (line.partition("=") for line in lines[1:])
    return {name.strip(): value.strip() for name, mark, value in pairs if mark}


def _index(path: Path, facts: dict[str, str]) -> Iterator[tuple[str, int, int]]:
    """Words with the offsets and sizes of their articles."""
    plain, packed = path.with_suffix(".idx"), path.with_name(path.stem + ".idx.gz")
    data = _index_bytes(plain if plain.exists() or not packed.exists() else packed)
    wide = facts.get("idxoffsetbits") == "64"
    numbers = struct.Struct(">QI" if wide else ">II")
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
        yield word, offset, size
        at = end + 1 + numbers.size


def _index_bytes(path: Path) -> bytes:
    check_ordinary(path)
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                parts = []
                while part := file.read(1 << 20):
                    parts.append(part)
                    check_unpacked(path, file.tell(), path.stat().st_size, _LARGEST_INDEX)
                data = b"".join(parts)
        else:
            with path.open("rb") as plain:
                data = plain.read(_LARGEST_INDEX + 1)
    except (zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise BilexError(f"{path}: cannot be unpacked ({error}); it is damaged.") from error
    except OSError as error:
        raise cannot_be_read(path, error) from error
    if len(data) > _LARGEST_INDEX:
        raise BilexError(
            f"{path}: unpacks into more than 256 MB, which no index does; give another dictionary."
        )
    return data


def _articles_file(path: Path) -> Path:
    packed, plain = path.with_name(path.stem + ".dict.dz"), path.with_suffix(".dict")
    return packed if packed.exists() else plain


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


def _entries(word: str, text: str, markup: bool) -> list[Entry]:
    article = read_article(text, word, markup=markup)
    return [Entry(word, found, part_of_speech=article.part_of_speech) for found in article.translations]


def _our_entries(word: str, text: str) -> list[Entry]:
    found = []
    for line in text.split("\n"):
        translation = line.partition("\t")[0]
        if translation:
            found.append(Entry(word, translation))
    return found


def _save(path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
    """Write the three files, all before the first takes its name; the `.ifo` takes its name last."""
    if path.suffix != ".ifo":
        raise BilexError(
            f"{path}: a StarDict dictionary is named by its .ifo file; choose a name that ends so."
        )
    index, packed = path.with_suffix(".idx"), path.with_name(path.stem + ".dict.dz")
    _refuse_others(path, index, packed)
    words = sorted(grouped(dictionary.entries).items(), key=lambda item: _order(item[0]))
    texts = [_article(entries) for _, entries in words]
    offset, listed = 0, bytearray()
    for (word, _), text in zip(words, texts, strict=True):
        listed += word.encode("utf-8") + b"\0" + struct.pack(">II", offset, len(text))
        offset += len(text)
    facts = {
        "version": "2.4.2",
        "wordcount": len(words),
        "idxfilesize": len(listed),
        "bookname": dictionary.title(),
        "description": _OURS,
        "sametypesequence": "m",
    }
    lines = [_FIRST_LINE, *(f"{name}={value}" for name, value in facts.items())]
    with atomic_file(path) as new_facts, atomic_file(index) as new_index, atomic_file(packed) as new_articles:
        write_packed(new_articles, texts)
        new_index.write_bytes(listed)
        new_facts.write_bytes(("\n".join(lines) + "\n").encode("utf-8"))


def _refuse_others(path: Path, *others: Path) -> None:
    """Files beside the `.ifo` are replaced only if an `.ifo` of ours is there already."""
    if path.exists() and {f"description={text}" for text in _WRITTEN} & set(decode(path).split("\n")):
        return
    for other in (*others, path.with_suffix(".dict")):
        if other.exists():
            raise BilexError(f"{other}: is there already and bilex did not write it; choose another name.")


def _order(word: str) -> tuple[bytes, bytes]:
    """The order that StarDict searches by: ASCII letters without case, then bytes."""
    encoded = word.encode("utf-8")
    return encoded.lower(), encoded


def _article(entries: list[Entry]) -> bytes:
    lines = []
    for entry in entries:
        note = entry.remark()
        lines.append(f"{entry.target}\t{note}" if note else entry.target)
    return "\n".join(lines).encode("utf-8")


def _fault(entry: Entry) -> str:
    if len(entry.source.encode("utf-8")) > _LONGEST_WORD:
        return f"a source word of more than {_LONGEST_WORD} bytes"
    return line_fault(entry, "\t")


FORMAT = DictionaryFormat(
    name="stardict",
    description="StarDict: .ifo, .idx and .dict.dz, a translation per line",
    suffixes=(".ifo",),
    noun="a StarDict dictionary",
    read=_read,
    save=_save,
    fault=_fault,
)
