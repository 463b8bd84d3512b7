"""Plain text with one entry per line: MUSE, OmegaT, hunalign, bicleaner, and synonyms for search engines."""

from __future__ import annotations

import gzip
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bilex.core.files import atomic_file
from bilex.lexicon.entries import Dictionary, Entry
from bilex.lexicon.formats import DictionaryFormat, WriteOptions, grouped, is_probability, line_fault
from bilex.lexicon.reading import Layout, Units, reader, text_lines


def _line_format(
    parse: Callable[[str], Iterable[Entry] | str],
    expected: str,
    *,
    name: str,
    line: Callable[[Entry], str] | None = None,
    comment: str = "",
    **rest: Any,
) -> DictionaryFormat:
    """A format whose lines `parse` turns into entries, or into the reason why there are none."""

    def units(path: Path, layout: Layout) -> Units:
        for number, text in text_lines(path, packed=name == "bicleaner"):
            if comment and text.startswith(comment):
                yield number, None
            elif text.strip():
                yield number, parse(text)
        return None

    if line is not None:
        rest["pieces"] = lambda dictionary, options: (f"{line(entry)}\n" for entry in dictionary.entries)
    return DictionaryFormat(name=name, read=reader(name, units, expected, strict=True), **rest)


def _muse_entries(text: str) -> list[Entry] | str:
    """Two words divided by a space or a tab; there are no comments or headers."""
    words = [word for word in text.replace("\t", " ").split(" ") if word.strip()]
    return [Entry(words[0], words[1])] if len(words) == 2 else f"{len(words)} words where two are expected"


MUSE = _line_format(
    _muse_entries,
    "source word, space, target word",
    name="muse",
    description="MUSE and VecMap: two words per line, divided by a space",
    suffixes=(".muse",),
    noun="a MUSE file",
    line=lambda entry: f"{entry.source} {entry.target}",
    fault=lambda entry: line_fault(entry, " \t"),
    single_words=True,
)


def _omegat_entries(text: str) -> list[Entry] | str:
    cells = text.split("\t")
    return [Entry(cells[0], cells[1])] if len(cells) > 1 else "no tab in it"


def _omegat_fault(entry: Entry) -> str:
    comment = "'#' before a word, which begins a comment" if entry.source.startswith("#") else ""
    return comment or line_fault(entry, "\t")


OMEGAT = _line_format(
    _omegat_entries,
    "source term, tab, target term, and perhaps a tab and a comment",
    name="omegat",
    comment="#",
    description="a glossary for OmegaT: both words and a comment on the confidence",
    suffixes=(".utf8", ".tab"),
    noun="an OmegaT glossary",
    line=lambda entry: "\t".join(filter(None, (entry.source, entry.target, entry.remark()))),
    fault=_omegat_fault,
)


def _hunalign_entries(text: str) -> list[Entry] | str:
    words = text.split(" @ ")
    return [Entry(words[1], words[0])] if len(words) == 2 else "not exactly one ' @ ' in it"


def _hunalign_fault(entry: Entry) -> str:
    alone = any("@" in word.split(" ") for word in (entry.source, entry.target))
    return "'@' as a word" if alone else line_fault(entry, "\t")


HUNALIGN = _line_format(
    _hunalign_entries,
    "target words, space, @, space, source words",
    name="hunalign",
    description="a dictionary for hunalign: target, ' @ ', source",
    suffixes=(".dic",),
    noun="a hunalign dictionary",
    line=lambda entry: f"{entry.target} @ {entry.source}",
    fault=_hunalign_fault,
)


def _bicleaner_entries(text: str) -> list[Entry] | str:
    """The pair alone: how often a translation is chosen is not how likely it is to be right."""
    parts = text.split()
    if len(parts) != 3 or not is_probability(parts[2]):
        return "not two words and a probability"
    return [Entry(parts[1], parts[0])]


def _save_bicleaner(path: Path, dictionary: Dictionary, options: WriteOptions) -> None:
    """Write gzipped lines of target, source and P(target | source): by confidence where all have one."""
    with (
        atomic_file(path) as temporary,
        temporary.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
    ):
        for entries in grouped(dictionary.entries).values():
            weights = [entry.confidence for entry in entries if entry.confidence is not None]
            if len(weights) < len(entries) or sum(weights) <= 0:
                weights = [1.0] * len(entries)
            for entry, weight in zip(entries, weights, strict=True):
                packed.write(f"{entry.target} {entry.source} {weight / sum(weights):.7f}\n".encode())


def _bicleaner_fault(entry: Entry) -> str:
    return "a blank in a word" if any(len(word.split()) > 1 for word in (entry.source, entry.target)) else ""


BICLEANER = _line_format(
    _bicleaner_entries,
    "target word, space, source word, space, probability",
    name="bicleaner",
    description="a probabilistic dictionary for bicleaner: gzipped target, source, probability",
    suffixes=(),
    noun="a bicleaner dictionary",
    save=_save_bicleaner,
    fault=_bicleaner_fault,
    single_words=True,
)


def _synonyms_entries(text: str) -> Iterator[Entry] | str:
    """Explicit mappings; lists of equivalent words ("dog, hound") have no direction.

    A backslash before a character takes its meaning away, as Lucene's parser of this format has it.
    """
    sides = _divided(text, "=>")
    if len(sides) != 2:
        return "not exactly one '=>' in it"
    sources, targets = (
        [re.sub(r"\\(.?)", r"\1", word.strip(), flags=re.DOTALL) for word in _divided(side, ",")]
        for side in sides
    )
    return itertools.starmap(Entry, itertools.product(sources, targets))


def _divided(text: str, mark: str) -> list[str]:
    """The parts of a text between marks that no backslash stands before."""
    return re.findall(rf"(?:^|{mark})((?:\\.|(?!{mark})[^\\]|\\$)*)", text, re.DOTALL)


def _synonyms_pieces(dictionary: Dictionary, options: WriteOptions) -> Iterator[str]:
    for source, entries in grouped(dictionary.entries).items():
        words = (re.sub(r"[\\,=>#]", r"\\\g<0>", word) for word in (source, *(e.target for e in entries)))
        yield f"{next(words)} => {', '.join(words)}\n"


SYNONYMS = _line_format(
    _synonyms_entries,
    "source word => target word, target word",
    name="synonyms",
    comment="#",
    description="synonyms for Solr, Elasticsearch and OpenSearch: word => translation, translation",
    suffixes=(".synonyms",),
    noun="a file of synonyms",
    pieces=_synonyms_pieces,
    fault=line_fault,
)
