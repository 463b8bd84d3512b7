"""dictd, as FreeDict's Debian packages have it: an `.index` and articles in `.dict` or `.dict.dz`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.lexicon.entries import Entry
from bilex.lexicon.formats.articles import read_article
from bilex.lexicon.formats.base import DictionaryFormat
from bilex.lexicon.formats.decoding import text_lines
from bilex.lexicon.formats.dictzip import Place, articles
from bilex.lexicon.formats.stardict import stem_of
from bilex.lexicon.reading import MOST_PAIRS_PER_UNIT, Collector, Layout, Reading

_DIGITS = {
    char: value
    for value, char in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}
_ABOUT_THE_DATABASE = ("00database", "00-database")
_MOST_DIGITS = 10


def _read(path: Path, layout: Layout) -> Reading:
    """Read a dictionary by the path of any of its files, or its TEI source if that lies beside it."""
    if (source := _tei_source(_index_of(path))) is not None:
        from bilex.lexicon.formats.tei import FORMAT as TEI

        assert TEI.read is not None
        return TEI.read(source, layout)
    collector = Collector(
        _index_of(path), "dictd", layout, units="entries", expected="a word with translations"
    )
    for number, word, data in indexed_articles(path):
        if data is None:
            collector.leave_out(number, "an article that is not there or larger than 1 MB")
            continue
        article = read_article(data.decode("utf-8", "replace"), word)
        if len(article.translations) > MOST_PAIRS_PER_UNIT:
            collector.leave_out(number, f"more than {MOST_PAIRS_PER_UNIT:,} pairs in one place")
        elif article.translations:
            speech = article.part_of_speech
            collector.add(
                number, [Entry(article.head, found, part_of_speech=speech) for found in article.translations]
            )
        else:
            collector.leave_out(number, "no translation, only explanations")
    return collector.finished()


def indexed_articles(path: Path) -> Iterator[tuple[int, str, bytes | None]]:
    """Every article once, with the line and the word of the index that names it first.

    Args:
        path: Any of the dictionary's files.

    Yields:
        Line, word and article; None for an article that is not there or larger than 1 MB.

    Raises:
        BilexError: The files cannot be read or are damaged.
    """
    index = _index_of(path)
    by_place: dict[Place, tuple[int, str]] = {}
    for number, line in text_lines(index):
        cells = line.split("\t")
        if not line.strip() or cells[0].startswith(_ABOUT_THE_DATABASE):
            continue
        place = (_number(cells[1]), _number(cells[2])) if len(cells) > 2 else None
        if place is None or place[0] is None or place[1] is None:
            raise BilexError(f"{index}: line {number} is no word, offset and size; the index is damaged.")
        by_place.setdefault((place[0], place[1]), (number, cells[0]))
    plain, packed = (index.with_name(index.stem + end) for end in (".dict", ".dict.dz"))
    for found, data in articles(packed if packed.exists() else plain, by_place):
        yield *by_place[found], data


def _tei_source(index: Path) -> Path | None:
    """The TEI file that a dictionary of FreeDict was made from: nld-spa.tei for freedict-nld-spa.index."""
    names = (f"{index.stem}.tei", f"{index.stem.removeprefix('freedict-')}.tei")
    return next((path for name in names if (path := index.with_name(name)).exists()), None)


def _index_of(path: Path) -> Path:
    stem = stem_of(path)
    return stem.with_name(stem.name + ".index")


def _number(text: str) -> int | None:
    """A number in dictd's own base 64."""
    if not 0 < len(text) <= _MOST_DIGITS or any(char not in _DIGITS for char in text):
        return None
    value = 0
    for char in text:
        value = 64 * value + _DIGITS[char]
    return value


FORMAT = DictionaryFormat(
    name="dictd",
    description="dictd (FreeDict): .index and .dict.dz; translations are taken out of the articles",
    suffixes=(".index",),
    noun="a dictd dictionary",
    read=_read,
)
